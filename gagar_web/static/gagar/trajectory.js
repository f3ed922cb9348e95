/* A body of events: an open event closes by the same key or click, the map shows what is in view, keys walk over marks. */
(() => {
  const list = () => document.querySelector(".event-list");
  const rows = () => [...document.querySelectorAll(".event-page .event-row")];
  const number = (row) => Number(row.dataset.event);

  /* Before htmx hears the click: an event that is open is closed, not asked for again. */
  document.addEventListener("click", (event) => {
    const row = event.target.closest(".event-page .event-row");
    if (!row || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const line = row.querySelector("a.event-line[hx-get]");
    const body = row.nextElementSibling;
    if (!line || getSelection().toString()) return;
    if (!body?.matches(".event-body:not([hidden])")) {
      if (!event.target.closest("a, button")) line.click(); // anywhere on the row opens it
      return;
    }
    body.hidden = true;
    row.setAttribute("aria-expanded", "false");
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.target.matches?.(".event-body")) event.target.previousElementSibling?.setAttribute("aria-expanded", "true");
  });

  let drawn = 0;
  function view() {
    drawn = 0;
    const mark = document.querySelector("[data-map-view]");
    const box = list()?.getBoundingClientRect();
    const all = rows();
    if (!mark || !box || !all.length) return;
    const firstBelow = (y) => { // rows lie in order: halve until the first whose end is below y
      let [from, to] = [0, all.length - 1];
      while (from < to) {
        const middle = (from + to) >> 1;
        if (all[middle].getBoundingClientRect().bottom > y) to = middle; else from = middle + 1;
      }
      return all[from];
    };
    const perCell = Number(mark.closest("svg").dataset.perCell) || 1;
    const [first, last] = [box.top, box.bottom - 2].map((y) => Math.floor(number(firstBelow(y)) / perCell));
    mark.setAttribute("x", first);
    mark.setAttribute("width", Math.max(1, last - first + 1));
  }
  const later = () => { drawn ||= requestAnimationFrame(view); };

  /* From the event in hand to the next marked one; one that is not on this page is gone to. */
  function walk(link) {
    const marks = link.closest("[data-walk]").dataset.walk.split(" ").map(Number);
    const by = Number(link.dataset.walkBy);
    const here = window.gagarKeys?.focused() || document.querySelector(".event-row.is-target");
    const asked = new URLSearchParams(location.search).get("at");
    const at = here?.dataset.event ? number(here) : asked === null ? -1 : Number(asked);
    const wanted = by > 0 ? marks.find((n) => n > at) ?? marks[0] : marks.findLast((n) => n < at) ?? marks.at(-1);
    const row = document.getElementById(`e${wanted}`);
    if (!row) return location.assign(`${location.pathname}?at=${wanted}#e${wanted}`);
    window.gagarKeys?.focus(row);
    row.scrollIntoView({ block: "center" });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-walk-by]");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    walk(link);
  });
  /* On this page alone "c" cites the event with the selection, or the one in hand; on a group's page it cites there. */
  document.addEventListener("keydown", (event) => {
    if (event.key !== "c" || window.gagarKeys?.rests(event)) return;
    const selected = getSelection().anchorNode?.parentElement?.closest(".event-body");
    const body = selected || window.gagarKeys?.focused()?.nextElementSibling;
    const link = body?.matches(".event-body:not([hidden])") && body.querySelector("[data-cite-event]");
    if (!link) return;
    event.preventDefault();
    link.click();
  });

  document.addEventListener("DOMContentLoaded", () => {
    const asked = new URLSearchParams(location.search).get("at");
    const row = asked !== null && document.getElementById(`e${asked}`);
    if (row) window.gagarKeys?.focus(row);
    list()?.addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later, { passive: true });
    later();
  });
  document.addEventListener("htmx:afterSettle", later);
})();
