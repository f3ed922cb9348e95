/* What was typed and not saved stays in this tab, whatever takes the page away: a sign-out, a restart of the server, Back.
   It comes back with the page, and the reader is told. */
(() => {
  const form = () => document.getElementById("correction") || document.getElementById("blind-order");
  const group = location.pathname.match(/^.*\/groups\/\d+\//)?.[0];
  const key = () => `kept:${document.body.dataset.user}:${form().id}:${group}`;
  const verdict = () => form().elements.namedItem("verdict")?.value || "";
  const review = window.gagarReview;
  let isReady = false;
  let isSent = false; // for good: what is drawn while the answer is on its way sends nothing back

  const counts = (field) => field.name && field.type !== "hidden" && field.matches("input, select, textarea");
  const isEdited = (field) => (field.dataset.was === undefined ? Boolean(field.value) : review.edited(field));
  const isOfEmptyRow = (field) => {
    const row = field.closest("[data-cite-row]");
    return row && !["place", "quote"].some((name) => row.querySelector(`[data-cite=${name}]`).value.trim());
  };

  function typed() {
    const fields = [...form().elements].filter((field) => counts(field) && !isOfEmptyRow(field));
    const isOpen = (field) => (field.type === "checkbox" && field.dataset.was === undefined ? field.checked : isEdited(field));
    return fields.filter(isOpen).map((field) => [review.idOf(field), review.value(field)]);
  }

  function keep() {
    if (!isReady || !form()) return;
    const fields = typed();
    if (fields.length) sessionStorage.setItem(key(), JSON.stringify({ verdict: verdict(), isSent, fields }));
    else sessionStorage.removeItem(key());
  }

  function put(id, value) {
    const find = () => [...form().elements].find((field) => counts(field) && review.idOf(field) === id);
    const isCite = /^cite-\d+-/.test(id);
    while (isCite && !find() && window.gagarCite?.addRow());
    const field = find();
    if (!field || field.disabled) return;
    review.put(field, value);
    for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
  }

  function restore() {
    const kept = JSON.parse(sessionStorage.getItem(key()) || "null");
    if (!kept || typed().length) return; // a page that was refused brings the values itself
    if (kept.isSent && kept.verdict !== verdict()) return sessionStorage.removeItem(key()); // it was saved
    for (const [id, value] of kept.fields) put(id, value);
    const banner = document.getElementById("kept-banner");
    if (banner) banner.hidden = false;
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (!form() || !group) return;
    restore();
    isReady = true;
    keep();
  });
  document.addEventListener("draft-typed", () => keep());
  document.addEventListener("input", (event) => { if (event.target.form && event.target.form === form()) keep(); });
  document.addEventListener("change", (event) => { if (event.target.form && event.target.form === form()) keep(); });
  document.addEventListener("submit", (event) => {
    if (event.target !== form()) return;
    isSent = true;
    keep();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-drop-draft]") || !form()) return;
    isReady = false;
    sessionStorage.removeItem(key());
    review.isLeaving = true;
  });
})();
