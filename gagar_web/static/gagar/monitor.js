/* The monitor: uPlot panels with one cursor. The page holds the panels and their legends (data-series, data-color);
   the numbers come from data-series-url on #charts, again after every hint of live.js. */
(() => {
  const root = document.getElementById("charts");
  if (!root || !window.uPlot) return;
  const SYNC = uPlot.sync("monitor");
  const OVERLAP = 25; // steps fetched again: their groups may have been decided meanwhile
  const panels = [...root.querySelectorAll("[data-panel]")].map((figure) => ({ figure, plot: null }));
  let run = { steps: [], series: {} };
  let other = null;
  let range = Number(root.dataset.range) || 0; // 0 = all
  let zoom = null;

  // --- words
  const minus = (text) => (Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−"));
  const FORMATS = {
    number: (v, digits) => {
      return minus(v.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
    },
    plain: (v, digits) => minus(v.toLocaleString("en", { maximumFractionDigits: digits })),
    percent: (v, digits) => `${minus((v * 100).toFixed(digits))} %`,
    seconds: (v, digits) => `${minus(v.toFixed(digits))} s`,
  };
  function format(panel, v) {
    if (v === null || v === undefined || Number.isNaN(v)) return "–";
    const { unit = "number", digits = 3 } = panel.figure.dataset;
    return FORMATS[unit](v, Number(digits));
  }

  // --- colours: tokens are read from the page, so both themes work
  const probe = document.createElement("i");
  root.append(probe);
  function colour(name) {
    probe.style.color = name.includes("(") ? name : `var(--${name})`;
    return getComputedStyle(probe).color;
  }

  const legendOf = (panel) => [...panel.figure.querySelectorAll("[data-series]")];
  const isBands = (panel) => panel.figure.dataset.kind === "bands";

  function union(a, b) {
    return [...new Set([...a, ...b])].sort((x, y) => x - y);
  }

  function aligned(source, key, steps) {
    const at = new Map(source.steps.map((step, i) => [step, source.series[key]?.[i] ?? null]));
    return steps.map((step) => at.get(step) ?? null);
  }

  function dataOf(panel) {
    const steps = other && !isBands(panel) ? union(run.steps, other.steps) : run.steps;
    const lines = legendOf(panel).map((item) => aligned(run, item.dataset.series, steps));
    if (!isBands(panel)) {
      const over = other ? [aligned(other, legendOf(panel)[0].dataset.series, steps)] : [];
      return [steps, ...lines, ...over];
    }
    let below = steps.map(() => 0);
    const stacked = lines.map((line) => {
      below = line.map((v, i) => (v === null ? null : (below[i] ?? 0) + v));
      return below;
    });
    return [steps, ...stacked.reverse()]; // the tallest first, so that the lower ones lie over it
  }

  function seriesOf(panel) {
    const items = legendOf(panel);
    if (isBands(panel)) {
      const band = { stroke: colour("surface"), width: 1, spanGaps: true, points: { show: false } };
      return items.map((item) => ({ ...band, fill: colour(item.dataset.color) })).reverse();
    }
    const lines = items.map((item) => ({
      stroke: colour(item.dataset.color), width: 1.6, dash: item.dataset.dash ? [3, 3] : undefined, spanGaps: true,
      points: { size: 5, fill: colour("surface") },
    }));
    if (other) lines.push({ stroke: colour("ink-3"), width: 1.4, dash: [3, 3], spanGaps: true });
    return lines;
  }

  function legend(panel, index) {
    const items = legendOf(panel);
    const steps = panel.plot.data[0];
    const isNow = index === null || index === undefined;
    const step = steps[isNow ? steps.length - 1 : index];
    const own = run.steps.indexOf(step);
    items.forEach((item, i) => {
      const values = run.series[item.dataset.series] ?? [];
      // the newest steps wait for their groups: "now" is the newest number there is
      const v = (isNow ? values.findLast((value) => value !== null) : values[own]) ?? null;
      item.querySelector(".value").textContent = format(panel, v);
      if (i === 0) panel.figure.querySelector(".now").textContent = format(panel, v);
    });
    const over = panel.figure.querySelector("[data-overlay-value]");
    if (over) over.textContent = other ? format(panel, aligned(other, items[0].dataset.series, [step])[0]) : "";
  }

  // --- one x range for all
  function bounds() {
    if (zoom) return zoom;
    const last = run.steps.at(-1) ?? 1;
    const first = range ? Math.max(run.steps[0] ?? 0, last - range + 1) : run.steps[0] ?? 0;
    return [first, last > first ? last : first + 1];
  }

  function scaleAll() {
    const [min, max] = bounds();
    for (const { plot } of panels) plot?.setScale("x", { min, max });
    for (const button of document.querySelectorAll("[data-range]")) {
      const on = !zoom && Number(button.dataset.range) === range;
      if (button.tagName === "BUTTON") button.setAttribute("aria-pressed", String(on));
    }
    document.querySelector("[data-zoom-out]")?.toggleAttribute("hidden", !zoom);
  }

  function choose(step) {
    const link = document.querySelector("[data-step-link]");
    if (!link || step === undefined) return;
    const url = new URL(link.dataset.stepLink, location.href);
    url.searchParams.set("step", step);
    link.href = url.href;
    link.textContent = `step ${step}: open its groups`;
    link.hidden = false;
  }

  function yRange(panel) {
    const { min, max } = panel.figure.dataset;
    return (u, low, high) => {
      if (isBands(panel)) return [0, 1];
      if (low === null || high === null) return [Number(min ?? 0), Number(max ?? 1)];
      const least = 4 * 10 ** -digitsOf(panel); // a flat line: four ticks that print differently
      if (high - low < least) {
        if (min === undefined) low -= least / 2;
        high = low + least;
      }
      const pad = (high - low || Math.abs(high) || 1) * 0.08;
      const bottom = min === undefined ? low - pad : Math.min(Number(min), low);
      return [bottom, max === undefined ? high + pad : Math.max(Number(max), high)];
    };
  }

  function digitsOf(panel) {
    const { digits = 1, unit } = panel.figure.dataset;
    return unit === "percent" ? 2 : Number(digits); // ticks of a share are whole percents
  }

  function options(panel, box) {
    const grid = { stroke: colour("rule"), width: 1 };
    const text = { stroke: colour("ink-3"), font: "10px system-ui, sans-serif", grid, ticks: { show: false } };
    const digits = Number(panel.figure.dataset.digits ?? 1);
    const isShare = isBands(panel) || panel.figure.dataset.unit === "percent";
    const plain = (v) => minus(v.toLocaleString("en", { maximumFractionDigits: digits }));
    const tick = (v) => (isShare ? `${minus(String(Math.round(v * 100)))} %` : plain(v));
    return {
      width: box.clientWidth, height: box.clientHeight, legend: { show: false }, padding: [6, 6, 0, 0],
      cursor: { sync: { key: SYNC.key }, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
      scales: { x: { time: false, range: () => bounds() }, y: { range: yRange(panel) } },
      axes: [
        { ...text, size: 20, space: 60, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] },
        { ...text, size: 44, space: 26, values: (u, ticks) => ticks.map(tick) },
      ],
      series: [{}, ...seriesOf(panel)],
      hooks: {
        setCursor: [(u) => legend(panel, u.cursor.idx)],
        setSelect: [(u) => {
          if (u.select.width < 4) return;
          zoom = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          scaleAll();
        }],
        ready: [(u) => {
          u.over.addEventListener("click", () => choose(u.data[0][u.cursor.idx]));
          u.over.addEventListener("dblclick", () => { zoom = null; scaleAll(); });
        }],
      },
    };
  }

  function draw() {
    const empty = document.querySelector("[data-no-steps]");
    if (empty) empty.hidden = run.steps.length > 0;
    root.hidden = run.steps.length === 0;
    if (!run.steps.length) return;
    for (const panel of panels) {
      panel.plot?.destroy();
      const box = panel.figure.querySelector(".chart-plot");
      panel.plot = new uPlot(options(panel, box), dataOf(panel), box);
      legend(panel, null);
    }
    scaleAll();
  }

  function update() {
    if (!run.steps.length || !panels[0].plot) return draw();
    for (const panel of panels) {
      panel.plot.setData(dataOf(panel), !zoom);
      legend(panel, panel.plot.cursor.idx);
    }
    scaleAll();
  }

  // --- numbers
  function merge(into, part) {
    const steps = union(into.steps, part.steps);
    const keys = new Set([...Object.keys(into.series), ...Object.keys(part.series)]);
    const fresh = new Set(part.steps);
    const series = {};
    for (const key of keys) {
      const old = aligned(into, key, steps);
      const now = aligned(part, key, steps);
      series[key] = steps.map((step, i) => (fresh.has(step) ? now[i] ?? old[i] : old[i]));
    }
    return { steps, series };
  }

  async function fetchSeries(url, from) {
    const where = new URL(url, location.href);
    if (from !== undefined) where.searchParams.set("from", from);
    const answer = await fetch(where, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(`the series answered ${answer.status}`);
    return answer.json();
  }

  let busy = false;
  let again = false;
  async function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const last = run.steps.at(-1);
      const part = await fetchSeries(root.dataset.seriesUrl, last === undefined ? undefined : Math.max(0, last - OVERLAP));
      run = merge(run, part);
      update();
    } catch { /* the banner of live.js says that the connection is lost; the next hint tries again */ }
    busy = false;
    if (again) { again = false; refresh(); }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-range]");
    if (button) { range = Number(button.dataset.range); zoom = null; scaleAll(); }
    if (event.target.closest("[data-zoom-out]")) { zoom = null; scaleAll(); }
  });
  document.querySelector("[data-overlay]")?.addEventListener("change", async (event) => {
    try { other = event.target.value ? await fetchSeries(event.target.value) : null; } catch { other = null; }
    const name = event.target.selectedOptions[0]?.textContent || "";
    for (const item of root.querySelectorAll("[data-overlay-legend]")) {
      item.hidden = !other;
      item.querySelector("[data-overlay-name]").textContent = name;
    }
    draw();
  });
  for (const panel of panels) {
    const box = panel.figure.querySelector(".chart-plot");
    new ResizeObserver(() => panel.plot?.setSize({ width: box.clientWidth, height: box.clientHeight })).observe(box);
    box.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by || !panel.plot) return;
      event.preventDefault();
      const steps = panel.plot.data[0];
      const at = Math.min(steps.length - 1, Math.max(0, (panel.plot.cursor.idx ?? steps.length) + by));
      panel.plot.setCursor({ left: panel.plot.valToPos(steps[at], "x"), top: 20 });
      choose(steps[at]);
    });
  }
  document.addEventListener("theme-changed", draw);
  document.body.addEventListener("live-changed", refresh);
  refresh();
})();
