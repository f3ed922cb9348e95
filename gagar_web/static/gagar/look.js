/* What of the monitor is looked at, kept in the address: runs beside it, steps, smoothing, logarithms, hidden lines. */
window.gagarLook = (() => {
  const SETS = { log: new Set(), hide: new Set(), with: new Set() };
  const look = { steps: null, range: 0, smooth: 0, align: "", ...SETS };

  function read() {
    const asked = new URLSearchParams(location.search);
    const steps = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(asked.get("steps") ?? "");
    look.steps = steps && Number(steps[2]) > Number(steps[1]) ? [Number(steps[1]), Number(steps[2])] : null;
    look.range = Math.max(0, Number.parseInt(asked.get("range") ?? "0", 10) || 0);
    const smooth = Number(asked.get("smooth"));
    look.smooth = smooth > 0 && smooth < 1 ? smooth : 0;
    look.align = asked.get("align") === "start" ? "start" : "";
    for (const [name, set] of Object.entries(SETS)) for (const value of asked.getAll(name)) set.add(value);
  }

  /* The address is the permanent link; what others put into it stays. */
  function keep() {
    const url = new URL(location.href);
    const put = (name, value) => (value ? url.searchParams.set(name, value) : url.searchParams.delete(name));
    put("steps", look.steps && look.steps.map((step) => Math.round(step * 100) / 100).join("-"));
    put("range", look.range);
    put("smooth", look.smooth);
    put("align", look.align);
    for (const [name, set] of Object.entries(SETS)) {
      url.searchParams.delete(name);
      for (const value of set) url.searchParams.append(name, value);
    }
    history.replaceState(history.state, "", url);
  }

  function toggle(name, value) {
    if (!SETS[name].delete(value)) SETS[name].add(value);
    keep();
  }

  read();
  return { look, keep, toggle };
})();
