/* One panel of the monitor: uPlot, its legend, its colours from the page's tokens, its picture. */
window.gagarPanel = (() => {
  const { onOneAxis, smoothed } = window.gagarCurves;
  const { look } = window.gagarLook;
  const RUNS = [["ink-3", [3, 3]], ["warn", [6, 2]], ["loss", [1, 3]], ["gain", [8, 3, 2, 3]], ["tier-2", [2, 2]], ["accent", [4, 4]]];
  const minus = (text) => (Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−"));
  const written = new Map(); // a format is slow to make and is used for every tick of every frame
  function inEnglish(v, least, most) {
    const key = `${least} ${most}`;
    if (!written.has(key)) written.set(key, new Intl.NumberFormat("en", { minimumFractionDigits: least, maximumFractionDigits: most }));
    return minus(written.get(key).format(v));
  }
  const plain = (v, digits) => {
    const small = v !== 0 && Math.abs(v) < 10 ** -digits / 2;
    return small ? minus(v.toPrecision(2)) : inEnglish(v, 0, digits);
  };
  const FORMATS = {
    number: (v, digits) => inEnglish(v, digits, digits),
    plain,
    percent: (v, digits) => `${minus((v * 100).toFixed(digits))} %`,
    seconds: (v, digits) => `${minus(v.toFixed(digits))} s`,
  };

  const probe = document.createElement("i");
  function colour(name, alpha) {
    if (!probe.isConnected) document.body.append(probe);
    const plainName = name.includes("(") ? name : `var(--${name})`;
    probe.style.color = alpha ? `color-mix(in srgb, ${plainName} ${alpha}%, var(--surface))` : plainName;
    return getComputedStyle(probe).color;
  }

  class Panel {
    constructor(figure, hooks) {
      this.figure = figure;
      this.hooks = hooks;
      this.box = figure.querySelector(".chart-plot");
      this.items = [...figure.querySelectorAll("[data-series]")];
      this.isBands = figure.dataset.kind === "bands";
      this.key = figure.dataset.panel;
      this.plot = null;
      this.isSeen = true;
      this.isStale = false;
      this.data = [[]];
    }

    get isLog() { return !this.isBands && look.log.has(this.key); }
    get shown() { return this.items.filter((item) => !look.hide.has(item.dataset.series)); }
    format(v) {
      if (v === null || v === undefined || Number.isNaN(v)) return "–";
      const { unit = "number", digits = 3 } = this.figure.dataset;
      return FORMATS[unit](v, Number(digits));
    }

    /* own: the run; others: [{curves, shift}]; shift: what is taken off each step. */
    take(own, others, shift) {
      const moved = (line, by) => (by && line.steps.length ? { steps: line.steps.map((s) => s - by), values: line.values } : line);
      const lines = this.shown.map((item) => moved(own.get(item.dataset.series), shift));
      const first = this.shown[0]?.dataset.series;
      const over = this.isBands ? [] : others.map((other) => moved(other.curves.get(first), other.shift));
      const [steps, ...values] = onOneAxis([...lines, ...over]);
      if (this.isBands) { this.data = [steps, ...this.stacked(values, steps)]; return; }
      const drawn = this.isLog ? values.map((line) => line.map((v) => (v === undefined || v > 0 ? v : null))) : values;
      const soft = look.smooth ? drawn.map((line) => smoothed(line, look.smooth)) : [];
      this.data = [steps, ...drawn, ...soft];
    }

    stacked(values, steps) {
      let below = steps.map(() => 0);
      const bands = values.map((line) => {
        below = line.map((v, i) => (v === null || v === undefined ? null : (below[i] ?? 0) + v));
        return below;
      });
      return bands.reverse(); // the tallest first, so that the lower ones lie over it
    }

    series(others) {
      if (this.isBands) {
        const band = { stroke: colour("surface"), width: 1, spanGaps: true, points: { show: false } };
        return this.shown.map((item) => ({ ...band, fill: colour(item.dataset.color) })).reverse();
      }
      const faint = look.smooth ? 30 : 0;
      const points = { size: 5, fill: colour("surface") };
      const own = this.shown.map((item) => [item.dataset.color, item.dataset.dash ? [3, 3] : undefined, 1.6]);
      const over = others.map((_, i) => [RUNS[i % RUNS.length][0], RUNS[i % RUNS.length][1], 1.4]);
      const line = ([name, dash, width], alpha) => ({ stroke: colour(name, alpha), dash, width, spanGaps: false, points });
      const all = [...own, ...over];
      const raw = all.map((one) => line(one, faint));
      return look.smooth ? [...raw, ...all.map((one) => ({ ...line(one, 0), points: { show: false } }))] : raw;
    }

    /* The legend at a place of the data, or now: the newest number of the first line, and the others' beside it. */
    legend(index, others) {
      const isNow = index === null || index === undefined;
      const newest = (line) => line?.findLast((v) => v !== null && v !== undefined);
      const isBare = this.shown.length > 0 && !this.data.slice(1).some((line) => newest(line) !== undefined);
      this.figure.querySelector("[data-no-number]").hidden = !isBare;
      const lines = this.isBands ? [...this.data.slice(1)].reverse() : this.data.slice(1);
      const last = lines[0]?.findLastIndex((v) => v !== null && v !== undefined) ?? -1;
      const at = (line) => (isNow ? (line?.[last] ?? newest(line)) : line?.[index]);
      let below = 0;
      this.shown.forEach((item, i) => {
        let v = at(lines[i]);
        if (this.isBands && typeof v === "number") [v, below] = [v - below, v];
        const value = item.querySelector(".value");
        value.textContent = this.format(v);
        value.title = v === null ? "not a number, or nothing to divide by" : v === undefined ? "no number at this step" : "";
        if (i === 0) this.figure.querySelector(".now").textContent = this.format(v);
      });
      others.forEach((other, i) => {
        const value = this.figure.querySelector(`[data-overlay-of="${CSS.escape(other.id)}"] .value`);
        if (value) value.textContent = this.format(at(lines[this.shown.length + i]));
      });
    }

    /* More points than pixels: hairlines, which are drawn many times faster than wider ones where no GPU helps. */
    thin(u) {
      this.widths ??= u.series.map((line) => line.width);
      const [from, to] = u.series[0].idxs ?? [0, 0];
      const isDense = to - from > u.bbox.width / devicePixelRatio;
      u.series.forEach((line, i) => { if (i) line.width = isDense ? 1 : this.widths[i]; });
    }

    yRange() {
      const { min, max, digits: asked = 1, unit } = this.figure.dataset;
      const digits = unit === "percent" ? 2 : Number(asked); // ticks of a share are whole percents
      return (u, low, high) => {
        if (this.isBands) return [0, 1];
        if (this.isLog) return low > 0 && high > 0 ? uPlot.rangeLog(low, high, 10, false) : [0.1, 1];
        if (low === null || high === null || low === undefined) return [Number(min ?? 0), Number(max ?? 1)];
        const least = 4 * 10 ** -digits; // a flat line: four ticks that print differently
        if (high - low < least) {
          if (min === undefined) low -= least / 2;
          high = low + least;
        }
        const pad = (high - low || Math.abs(high) || 1) * 0.08;
        const bottom = min === undefined ? low - pad : Math.min(Number(min), low);
        return [bottom, max === undefined ? high + pad : Math.max(Number(max), high)];
      };
    }

    options(others, bounds) {
      const tens = (u, ticks) => (ticks.length > 8 ? ticks.map((v) => (v > 0 && Math.abs(Math.log10(v) % 1) < 1e-9 ? v : null)) : ticks);
      const grid = { stroke: colour("rule"), width: 1 };
      const text = { stroke: colour("ink-3"), font: "10px system-ui, sans-serif", grid, ticks: { show: false } };
      const digits = Number(this.figure.dataset.digits ?? 1);
      const isShare = this.isBands || this.figure.dataset.unit === "percent";
      const tick = (v) => (v === null ? "" : isShare ? `${minus(String(Math.round(v * 1000) / 10))} %` : plain(v, this.isLog ? 9 : digits));
      return {
        width: this.box.clientWidth, height: this.box.clientHeight, legend: { show: false }, padding: [6, 6, 0, 0],
        cursor: { sync: { key: "monitor" }, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
        scales: { x: { time: false, range: bounds }, y: { distr: this.isLog ? 3 : 1, range: this.yRange() } },
        axes: [
          { ...text, size: 20, space: 60, incrs: [1, 2, 5].flatMap((n) => [0, 1, 2, 3, 4, 5, 6, 7, 8].map((p) => n * 10 ** p)).sort((a, b) => a - b),
            values: (u, ticks) => ticks.map((v) => (v >= 1e6 ? `${v / 1e6}M` : v >= 1e4 ? `${v / 1e3}k` : String(v))) },
          { ...text, grid: this.isLog ? { ...grid, filter: tens } : grid, size: 48, space: 26, values: (u, ticks) => ticks.map(tick) },
        ],
        series: [{}, ...this.series(others)],
        hooks: {
          setCursor: [(u) => this.legend(u.cursor.idx, others)],
          setSelect: [(u) => this.hooks.select(u)],
          ready: [(u) => this.hooks.ready(u)],
          drawClear: [(u) => this.thin(u)],
          draw: [(u) => { if (look.align !== "start") window.gagarMarks?.draw(u, this.figure); }],
        },
      };
    }

    draw(others, bounds) {
      this.plot?.destroy();
      this.widths = undefined; // of the new plot's own series
      this.plot = new uPlot(this.options(others, bounds), this.data, this.box);
      this.isStale = false;
      this.legend(null, others);
    }

    update(others) {
      this.isStale = !this.isSeen;
      if (this.isStale || !this.plot) return;
      this.plot.setData(this.data, true);
      this.legend(this.plot.cursor.idx, others);
    }

    /* The panel as a picture: title, legend, plot, on the page's ground. */
    picture() {
      const { canvas } = this.plot.ctx;
      const ratio = devicePixelRatio;
      const head = 44 * ratio;
      const out = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height + head });
      const ctx = out.getContext("2d");
      ctx.fillStyle = colour("surface");
      ctx.fillRect(0, 0, out.width, out.height);
      ctx.drawImage(canvas, 0, head);
      ctx.fillStyle = colour("ink");
      ctx.font = `600 ${13 * ratio}px system-ui, sans-serif`;
      ctx.fillText(`${document.querySelector("h1").textContent}: ${this.figure.querySelector(".chart-title").textContent}`, 8 * ratio, 17 * ratio);
      ctx.font = `${11 * ratio}px system-ui, sans-serif`;
      let x = 8 * ratio;
      const entries = [...this.shown.map((item) => [item.dataset.color, item]), ...[...this.figure.querySelectorAll("[data-overlay-of]")].map((item, i) => [RUNS[i % RUNS.length][0], item])];
      for (const [name, item] of entries) {
        const words = item.querySelector(".name").textContent;
        ctx.fillStyle = colour(name);
        ctx.fillRect(x, 30 * ratio, 12 * ratio, 3 * ratio);
        ctx.fillStyle = colour("ink-2");
        ctx.fillText(words, x + 16 * ratio, 35 * ratio);
        x += ctx.measureText(words).width + 30 * ratio;
      }
      return new Promise((done) => out.toBlob(done, "image/png"));
    }
  }

  return { Panel, colour, RUNS };
})();
