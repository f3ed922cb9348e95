/* Moving in two diffs: by file, by change, with the place kept when the comparison is looked at otherwise. */
(() => {
  const scroller = () => document.querySelector("#diffs.is-aligned, #diffs .diff-column");
  const top = (element) => element.getBoundingClientRect().top;
  const shown = (element) => element.getClientRects().length > 0;
  let here = null; // the change or file a key led to last

  function go(element, block) {
    here = element;
    element.tabIndex = -1;
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block });
  }

  /* The next of `list` (sorted from top to bottom): after the one we went to last if it is still in sight, else by place. */
  function next(list, by) {
    const within = scroller().getBoundingClientRect();
    const inSight = here?.isConnected && top(here) >= within.top - 4 && top(here) < within.bottom;
    const at = inSight ? list.indexOf(here) : -1;
    if (at >= 0) return list[at + by];
    return by > 0 ? list.find((one) => top(one) > within.top + 4) : list.findLast((one) => top(one) < within.top - 4);
  }

  const files = () => [...scroller().querySelectorAll(".file-pair:has(.diff-file), [data-rest-files], .diff-column > .diff-file")];

  function changes() {
    const isChange = (row) => row.matches(".is-add, .is-del") || row.querySelector(".is-add, .is-del, .nothing");
    const starts = [...scroller().querySelectorAll(".diff tr")].filter(
      (row) => isChange(row) && shown(row) && !(row.previousElementSibling && isChange(row.previousElementSibling)),
    );
    const places = [...starts, ...scroller().querySelectorAll("[data-lazy]")].map((row) => [top(row), row]);
    return places.sort(([a], [b]) => a - b).map(([, row]) => row);
  }

  function step(what, by) {
    if (!scroller()) return;
    const found = what === "file" ? next(files(), by) : next(changes(), by);
    if (found) go(found, what === "file" ? "start" : "center");
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-step]");
    if (button) step(button.dataset.step, Number(button.dataset.by));
    const number = event.target.closest(".diff td.ln");
    const row = number && (number.closest("tr[id]") || number.parentElement.querySelector(`.code.${number.matches(".old") ? "old" : "new"}[id]`));
    if (row && getSelection().isCollapsed) location.hash = row.id; // the address of this line
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.matches?.(".file-pair, .diff-file, [data-lazy]")) return;
    for (const rest of event.target.matches("[data-lazy]") ? [event.target] : event.target.querySelectorAll("[data-lazy]")) {
      htmx.trigger(rest, "open-file");
    }
  });

  /* Selecting one half of a split diff takes that half only. */
  document.addEventListener("mousedown", (event) => {
    const cell = event.target.closest(".diff.is-split td");
    if (!cell) return;
    const table = cell.closest(".diff");
    table.classList.toggle("takes-old", cell.matches(".old"));
    table.classList.toggle("takes-new", cell.matches(".new"));
  });

  // --- the place: the file at the top of the window, and how far its beginning is above it
  let place = null;
  const paths = () => [...(scroller()?.querySelectorAll(".diff-file[data-path]") || [])];

  document.addEventListener("htmx:beforeSwap", (event) => {
    place = null;
    if (event.detail.target?.id !== "workbench" || !scroller()) return;
    const edge = top(scroller());
    const first = paths().find((file) => file.getBoundingClientRect().bottom > edge + 40);
    if (first && scroller().scrollTop > 0) place = { path: first.dataset.path, above: Math.min(top(first) - edge, 0) };
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (!place || !scroller()) return;
    const file = paths().find((one) => one.dataset.path === place.path);
    if (file) scroller().scrollTop += top(file) - top(scroller()) - place.above;
    place = null;
  });
})();
