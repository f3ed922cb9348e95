/* A ranking is drawn anew under the reader's hands: a newer value, the caret, open details and a draft that never
   reached the server stay. */
(() => {
  const review = window.gagarReview;
  const isRanking = (event) => (event.detail?.target || event.target)?.id === "ranking";
  let asked = new Map(); // what the fields said when the draft was asked for
  let newer = [];
  let caret = null;
  let open = [];
  let isLost = false;

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.id === "ranking") asked = new Map(review.fields().map((field) => [review.idOf(field), review.value(field)]));
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!isRanking(event) || !event.detail.shouldSwap) return;
    isLost = false;
    const since = review.fields().filter((field) => asked.has(review.idOf(field)) && asked.get(review.idOf(field)) !== review.value(field));
    newer = since.map((field) => [review.idOf(field), review.value(field)]);
    open = [...document.querySelectorAll("#ranking details[open]")].map((one) => one.id);
    const field = document.activeElement;
    const isText = field?.matches?.("input.score");
    caret = field?.closest?.("#ranking") ? [field.id, isText && [field.selectionStart, field.selectionEnd]] : null;
    review.isDrawing = true;
  });

  document.addEventListener("htmx:afterSwap", (event) => {
    if (!review.isDrawing || !isRanking(event)) return;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    for (const [id, last] of newer) {
      const field = review.find(id);
      if (field) review.put(field, last);
    }
    newer = [];
    review.drawn();
    const field = caret && document.getElementById(caret[0]);
    if (field && document.activeElement !== field) field.focus({ preventScroll: true }); // it was in closed details
    if (field && caret[1]) field.setSelectionRange(...caret[1]);
    caret = null;
    review.isDrawing = false;
  });

  // --- a draft that the server never heard of is asked for again once it is there
  for (const name of ["htmx:sendError", "htmx:responseError"]) {
    document.addEventListener(name, (event) => { isLost ||= event.target.id === "ranking"; });
  }
  document.addEventListener("live-changed", () => {
    if (!isLost) return;
    isLost = false;
    document.body.dispatchEvent(new CustomEvent("draft-changed", { bubbles: true }));
  });
})();
