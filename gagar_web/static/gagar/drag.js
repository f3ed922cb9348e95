/* Cards are dragged by their handle [data-drag], with mouse, pen or finger. Where one is dropped: body event card-dropped
   with card, target and where (before, tie, after, or out over an empty place of another list). */
(() => {
  const START_PX = 4;
  let drag = null;

  function under(event) {
    const spot = document.elementFromPoint(event.clientX, event.clientY);
    const list = spot?.closest("#ranking section");
    const target = spot?.closest("#ranking .candidate-card:not(.in-context)");
    if (!target || target === drag.card) return { target: null, where: list?.querySelector("[data-unplaced]") ? "out" : "end" };
    const box = target.getBoundingClientRect();
    const part = (event.clientY - box.top) / box.height;
    return { target, where: part < 0.3 ? "before" : part > 0.7 ? "after" : "tie" };
  }

  function mark(found) {
    for (const one of document.querySelectorAll("[data-drop]")) delete one.dataset.drop;
    if (found?.target) found.target.dataset.drop = found.where;
  }

  document.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest?.("[data-drag]");
    if (!handle || event.button !== 0) return;
    drag = { card: handle.closest(".candidate-card"), handle, x: event.clientX, y: event.clientY, isOn: false };
    handle.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  document.addEventListener("pointermove", (event) => {
    if (!drag) return;
    if (!drag.isOn && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < START_PX) return;
    drag.isOn = true;
    drag.card.classList.add("is-dragged");
    mark(under(event));
  });
  function end(event, isDropped) {
    if (!drag) return;
    const found = isDropped && drag.isOn ? under(event) : null;
    const { card } = drag;
    card.classList.remove("is-dragged");
    mark(null);
    drag = null;
    if (found) document.body.dispatchEvent(new CustomEvent("card-dropped", { bubbles: true, detail: { card, ...found } }));
  }
  document.addEventListener("pointerup", (event) => end(event, true));
  document.addEventListener("pointercancel", (event) => end(event, false));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") end(event, false); });
})();
