/* The monitor's page: a snapshot, then what changed after each hint of live.js; one cursor and one range for all panels.
   Numbers: curves.js. Drawing: panel.js. What is looked at stays in the address: look.js. */
(() => {
  const root = document.getElementById("charts");
  if (!root || !window.uPlot) return;
  const { Curves } = window.gagarCurves;
  const { look, keep, toggle } = window.gagarLook;
  const { Panel } = window.gagarPanel;
  const MOST = 4000; // points of a series, as the server caps them
  const GAP_MS = 60; // at least, between two questions: points of one moment come together
  const FAILED_MS = 3000; // until what could not be fetched is asked for again, without a hint
  const AGAIN_MS = 10_000; // between two snapshots that late points ask for
  uPlot.sync("monitor");
  const own = new Curves();
  let zoomed = null; // finer numbers of the zoomed steps, where the whole is thinned
  const others = []; // runs laid over: {id, name, url, curves, shift}
  const panels = [...root.querySelectorAll("[data-panel]")].map((figure) => new Panel(figure, { select, ready }));

  // --- numbers
  const names = [...new Set(panels.flatMap((panel) => panel.items.map((item) => item.dataset.series)))];
  const width = () => Math.min(MOST, Math.max(200, 2 * Math.round(panels[0]?.box.clientWidth || 400)));

  async function ask(url, asked) {
    const where = new URL(url, location.href);
    for (const [name, value] of Object.entries(asked)) where.searchParams.set(name, value);
    for (const name of names) where.searchParams.append("name", name);
    const answer = await fetch(where, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(`the series answered ${answer.status}`);
    return answer.json();
  }

  const snapshot = async (curves, url) => curves.replace(await ask(url, { width: width() }));

  let snappedAt = -Infinity;
  async function catchUp(curves, url) {
    const answer = await ask(url, { after: curves.cursor, width: width() });
    window.gagarMarks?.keep(curves === own ? answer.marks : []);
    if (answer.snapshot) return curves.replace(answer);
    const fits = curves.patch(answer) && curves.added < 4 * width();
    if (!fits && performance.now() - snappedAt > AGAIN_MS) {
      snappedAt = performance.now();
      await snapshot(curves, url);
    }
  }

  async function zoomIn() {
    zoomed = null;
    if (!look.steps || !own.isThinned) return;
    const shift = shiftOf(own);
    const [from, to] = look.steps.map((step) => Math.max(0, Math.round(step + shift)));
    const reach = Math.max(1, Math.round((to - from) / 10));
    const finer = new Curves();
    try { finer.replace(await ask(root.dataset.seriesUrl, { from: Math.max(0, from - reach), to: to + reach, width: width() })); } catch { return; }
    zoomed = finer;
    update();
  }

  let hinted = 0;
  let asked = -Infinity;
  let failed = 0;
  let busy = false;
  let again = false;

  /* The first hint asks at once. */
  function hint() {
    hinted ||= setTimeout(() => { hinted = 0; refresh(); }, Math.max(0, asked + GAP_MS - performance.now()));
  }

  async function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    asked = performance.now();
    try {
      if (own.cursor === "0.0") await snapshot(own, root.dataset.seriesUrl);
      await Promise.all([catchUp(own, root.dataset.seriesUrl), ...others.map((other) => catchUp(other.curves, other.url))]);
      update();
      if (zoomed && look.steps && own.last <= look.steps[1] + shiftOf(own)) await zoomIn();
    } catch { // where the connection is lost, the banner of live.js says so
      failed ||= setTimeout(() => { failed = 0; refresh(); }, FAILED_MS);
    }
    busy = false;
    if (again) { again = false; hint(); }
  }

  // --- one range for all
  const shiftOf = (curves) => (look.align === "start" ? curves.first ?? 0 : 0);

  function bounds() {
    if (look.steps) return look.steps;
    const shift = shiftOf(own);
    const all = [own, ...others.map((other) => other.curves)].filter((curves) => curves.first !== undefined);
    const last = Math.max(...all.map((curves) => curves.last - shiftOf(curves)));
    const least = Math.min(...all.map((curves) => curves.first - shiftOf(curves)));
    const newest = (own.last ?? 0) - shift;
    const first = look.range ? Math.max(least, newest - look.range + 1) : least;
    const end = look.range ? newest : last;
    return [first, end > first ? end : first + 1];
  }

  function controls() {
    for (const button of document.querySelectorAll("button[data-range]")) {
      button.setAttribute("aria-pressed", String(!look.steps && Number(button.dataset.range) === look.range));
    }
    document.querySelector("[data-zoom-out]")?.toggleAttribute("hidden", !look.steps);
    for (const name of ["smooth", "align"]) {
      const select = document.querySelector(`[data-look="${name}"]`);
      if (select) select.value = String(look[name] || "");
    }
    for (const panel of panels) {
      for (const item of panel.items) item.setAttribute("aria-pressed", String(!look.hide.has(item.dataset.series)));
      panel.figure.querySelector("[data-log]")?.setAttribute("aria-pressed", String(panel.isLog));
      const csv = panel.figure.querySelector("[data-csv]");
      const url = new URL(csv.href, location.href);
      for (const end of ["from", "to"]) url.searchParams.delete(end);
      if (look.steps) {
        const [from, to] = look.steps.map((step) => Math.max(0, Math.round(step + shiftOf(own))));
        url.searchParams.set("from", from);
        url.searchParams.set("to", to);
      }
      csv.href = url.href;
    }
    if (look.steps) choose(Math.ceil(look.steps[0]), Math.floor(look.steps[1]));
  }

  function choose(step, last = step) {
    const link = document.querySelector("[data-step-link]");
    if (!link || step === undefined) return;
    const [from, to] = [step, last].map((at) => Math.max(0, Math.round(at + shiftOf(own))));
    const url = new URL(link.dataset.stepLink, location.href);
    url.searchParams.set("step", to > from ? `${from}-${to}` : from);
    link.href = url.href;
    link.textContent = to > from ? `steps ${from} to ${to}: open their groups` : `step ${from}: open its groups`;
  }

  function select(u) {
    if (u.select.width < 4) return;
    look.steps = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    looked();
  }

  function zoomOut() { look.steps = null; looked(); }

  function looked() {
    keep();
    controls();
    for (const { plot } of panels) plot?.setScale("x", { min: bounds()[0], max: bounds()[1] });
    zoomIn().then(() => update());
  }

  function ready(u) {
    u.over.addEventListener("click", () => choose(u.data[0][u.cursor.idx]));
    u.over.addEventListener("dblclick", zoomOut);
  }

  // --- drawing
  function take(panel) { panel.take(zoomed ?? own, others, shiftOf(own)); }

  function draw(only = panels) {
    const isEmpty = own.last === undefined;
    document.querySelector("[data-no-steps]")?.toggleAttribute("hidden", !isEmpty);
    root.hidden = isEmpty;
    if (isEmpty) return;
    for (const other of others) other.shift = shiftOf(other.curves);
    for (const panel of only) { take(panel); panel.draw(others, bounds); }
    controls();
  }

  function update() {
    if (own.last === undefined || !panels[0].plot) return draw();
    for (const other of others) other.shift = shiftOf(other.curves);
    for (const panel of panels) {
      if (panel.isSeen) take(panel);
      panel.update(others);
    }
  }

  // --- runs laid over
  const chips = document.querySelector("[data-overlays]");
  const picker = document.querySelector("[data-overlay]");

  async function lay(id) {
    const option = [...(picker?.options ?? [])].find((one) => one.value === id);
    if (!option || others.some((other) => other.id === id)) return;
    const other = { id, name: option.textContent, url: option.dataset.url, curves: new Curves(), shift: 0 };
    try { await snapshot(other.curves, other.url); } catch { return; }
    others.push(other);
    chips.append(entry("overlay-chip", other, "button"));
    for (const panel of panels) if (!panel.isBands) panel.figure.querySelector(".legend").append(entry("overlay-entry", other, "span"));
  }

  function entry(template, other, tag) {
    const made = document.getElementById(template).content.cloneNode(true).querySelector(tag);
    made.dataset.overlayOf = other.id;
    made.querySelector(".name").textContent = other.name;
    const [name, dash] = window.gagarPanel.RUNS[others.indexOf(other) % window.gagarPanel.RUNS.length];
    made.querySelector("line").style.stroke = `var(--${name})`;
    made.querySelector("line").style.strokeDasharray = dash.join(" ");
    return made;
  }

  picker?.addEventListener("change", async () => {
    const id = picker.value;
    picker.value = "";
    if (!id || look.with.has(id)) return;
    toggle("with", id);
    await lay(id);
    draw();
  });
  chips?.addEventListener("click", (event) => {
    const id = event.target.closest("[data-overlay-of]")?.dataset.overlayOf;
    if (!id) return;
    toggle("with", id);
    others.splice(others.findIndex((other) => other.id === id), 1);
    for (const made of document.querySelectorAll(`[data-overlay-of="${CSS.escape(id)}"]`)) made.remove();
    draw();
  });

  // --- controls
  async function save(panel) {
    const link = Object.assign(document.createElement("a"), { download: `${document.querySelector("h1").textContent} ${panel.key}.png` });
    link.href = URL.createObjectURL(await panel.picture());
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  document.addEventListener("click", (event) => {
    const on = (what) => event.target.closest(what);
    const panel = panels.find(({ figure }) => figure.contains(event.target));
    const range = on("button[data-range]");
    if (range) { look.range = Number(range.dataset.range); look.steps = null; looked(); }
    if (on("[data-zoom-out]")) zoomOut();
    if (on("[data-reload]")) { event.preventDefault(); location.reload(); } // the address has the whole look
    if (panel && on("[data-series]")) { toggle("hide", on("[data-series]").dataset.series); draw(panels.filter((one) => one.items.some((item) => item.dataset.series === on("[data-series]").dataset.series))); }
    if (panel && on("[data-log]")) { toggle("log", panel.key); draw([panel]); }
    if (panel && on("[data-png]") && panel.plot) save(panel);
    if (on(".chart-menu div")) panel.figure.querySelector(".chart-menu").open = false; // it lies over the plot
  });
  for (const name of ["smooth", "align"]) {
    document.querySelector(`[data-look="${name}"]`)?.addEventListener("change", (event) => {
      look[name] = name === "smooth" ? Number(event.target.value) || 0 : event.target.value;
      if (name === "align") { look.steps = null; zoomed = null; }
      keep();
      draw();
    });
  }

  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const panel = panels.find(({ box }) => box === target);
      panel.isSeen = isIntersecting;
      if (isIntersecting && panel.isStale) { take(panel); panel.update(others); }
    }
  }, { rootMargin: "200px" });
  for (const panel of panels) {
    const { box } = panel;
    new ResizeObserver(() => panel.plot?.setSize({ width: box.clientWidth, height: box.clientHeight })).observe(box);
    seen.observe(box);
    box.addEventListener("keydown", (event) => {
      if (!panel.plot) return;
      const steps = panel.plot.data[0];
      const index = panel.plot.cursor.idx;
      if (event.key === "Enter" && typeof index === "number") return document.querySelector("[data-step-link]").click();
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const at = Math.min(steps.length - 1, Math.max(0, (index ?? steps.length) + by));
      panel.plot.setCursor({ left: panel.plot.valToPos(steps[at], "x"), top: 20 });
      choose(steps[at]);
    });
  }
  document.body.addEventListener("htmx:afterSettle", () => {
    const note = document.getElementById("new-panels");
    note.hidden = Number(note.dataset.panels) <= panels.length;
  });
  document.addEventListener("theme-changed", () => draw());
  document.body.addEventListener("live-hint", hint);
  window.gagarMonitor = { feed(answer) { own.patch(answer); update(); }, count: (name) => own.get(name).steps.length,
    at(name, step) { const { steps, values } = own.get(name); return values[steps.indexOf(step)]; } };

  (async () => {
    await refresh();
    for (const id of look.with) await lay(id);
    if (others.length) draw();
    zoomIn();
  })();
})();
