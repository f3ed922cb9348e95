/* The numbers of one run behind its curves: what series.json answered, what came since, put together for a panel. */
window.gagarCurves = (() => {
  const NONE = { steps: [], values: [] };

  /* First place in a rising list whose step is at least this one. */
  function place(steps, step) {
    let low = 0;
    let high = steps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[middle] < step) low = middle + 1; else high = middle;
    }
    return low;
  }

  class Curves {
    constructor() { this.replace({ grids: [], series: {}, cursor: "0.0" }); }

    /* A snapshot. Series with the same steps share one list, so that a panel has nothing to put together. */
    replace(answer) {
      this.cursor = answer.cursor;
      this.isThinned = Boolean(answer.thinned);
      this.series = new Map();
      for (const [name, [grid, values]] of Object.entries(answer.series)) {
        this.series.set(name, { steps: answer.grids[grid], values });
      }
      this.drawnTo = this.last; // what comes later is appended as it came
      this.added = 0;
    }

    /* What changed since. Returns false where it lies inside what was thinned: only a new snapshot shows it. */
    patch(answer) {
      this.cursor = answer.cursor;
      const grown = new Map(); // steps before -> new grid -> steps after: shared lists stay shared
      let fits = true;
      for (const [name, [grid, values]] of Object.entries(answer.series)) {
        const steps = answer.grids[grid];
        if (!steps.length) continue;
        if (this.isThinned && steps[0] <= this.drawnTo - 64) fits = false;
        this.series.set(name, this.joined(this.series.get(name) ?? NONE, steps, values, grown));
      }
      for (const line of this.series.values()) { // a shared list grew, and this line had no part in it
        if (line.steps.length > line.values.length) line.steps = line.steps.slice(0, line.values.length);
      }
      return fits;
    }

    joined(old, steps, values, grown) {
      const before = grown.get(old.steps) ?? new Map();
      grown.set(old.steps, before);
      if (before.has(steps)) {
        const { after, from, length } = before.get(steps);
        if (from === length) { old.values.push(...values); return { steps: after, values: old.values }; }
      }
      const length = old.values.length;
      if (length === 0) {
        if (!before.has(steps)) before.set(steps, { after: [...steps], from: -1, length });
        return { steps: before.get(steps).after, values: [...values] };
      }
      if (old.steps[length - 1] < steps[0]) {
        old.steps.push(...steps);
        old.values.push(...values);
        this.added += steps.length;
        before.set(steps, { after: old.steps, from: length, length });
        return old;
      }
      const at = new Map(values.map((value, i) => [steps[i], value]));
      const from = place(old.steps, steps[0]);
      const tail = old.steps.slice(from, length);
      const was = new Map(tail.map((step, i) => [step, old.values[from + i]]));
      const all = [...new Set([...tail, ...steps])].sort((a, b) => a - b);
      const known = before.get(steps)?.after ?? [...old.steps.slice(0, from), ...all];
      before.set(steps, { after: known, from: -1, length });
      return { steps: known, values: [...old.values.slice(0, from), ...all.map((s) => (at.has(s) ? at.get(s) : was.get(s)))] };
    }

    get(name) { return this.series.get(name) ?? NONE; }
    get first() { return this.ends((steps) => steps[0], Math.min); }
    get last() { return this.ends((steps) => steps.at(-1), Math.max); }
    ends(end, pick) {
      const found = new Set([...this.series.values()].map(({ steps }) => steps).filter((steps) => steps.length));
      return found.size ? pick(...[...found].map(end)) : undefined;
    }
  }

  /* Lines on one x axis, as uPlot wants them: null is a gap in a line, undefined is no point of it. */
  function onOneAxis(lines) {
    const lists = [...new Set(lines.map((line) => line.steps))].filter((steps) => steps.length);
    if (lists.length === 0) return [[], ...lines.map(() => [])];
    if (lists.length === 1) return [lists[0], ...lines.map((line) => (line.steps.length ? line.values : lists[0].map(() => undefined)))];
    const steps = [...new Set(lists.flat())].sort((a, b) => a - b);
    const index = new Map(steps.map((step, i) => [step, i]));
    return [steps, ...lines.map((line) => {
      const values = new Array(steps.length);
      for (let i = 0; i < line.values.length; i++) values[index.get(line.steps[i])] = line.values[i];
      return values;
    })];
  }

  /* An exponential mean that starts unbiased; gaps stay gaps and do not count. */
  function smoothed(values, weight) {
    let mean = 0;
    let counted = 0;
    return values.map((value) => {
      if (value === null || value === undefined) return value;
      mean = mean * weight + value * (1 - weight);
      counted = counted * weight + (1 - weight);
      return mean / counted;
    });
  }

  return { Curves, onOneAxis, smoothed, place };
})();
