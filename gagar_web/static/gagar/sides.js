/* Who stands left and right in the workbench: picked by a card's letter or by keys, without a reload. */
(() => {
  let wanted = {}; // side -> letter, until the workbench shows it: a key may fall between two answers

  function pick(side, letter) {
    const select = document.querySelector(`select[name=${side}]`);
    if (!select || ![...select.options].some((option) => option.value === letter)) return false;
    wanted[side] = letter;
    select.value = letter;
    select.dispatchEvent(new Event("change", { bubbles: true }));
    return true;
  }

  function cycle(side, by) {
    const select = document.querySelector(`select[name=${side}]`);
    if (!select) return false;
    const other = document.querySelector(`select[name=${side === "left" ? "right" : "left"}]`)?.value; // never twice
    const here = wanted[side] ?? select.value;
    const letters = [...select.options].map((option) => option.value).filter((one) => one !== other || one === here);
    const at = letters.indexOf(here);
    return pick(side, letters[(at + by + letters.length) % letters.length]);
  }

  function catchUp() {
    const bench = document.getElementById("workbench");
    const missed = Object.entries(wanted).filter(([side, letter]) => bench && bench.dataset[side] !== letter);
    wanted = {};
    for (const [side, letter] of missed) pick(side, letter);
  }

  function markSides() {
    const bench = document.getElementById("workbench");
    if (!bench) return;
    const form = document.getElementById("correction");
    for (const name of ["left", "right", "tab"]) { // a page that is refused shows the same again
      const field = form?.elements.namedItem(name);
      if (field) field.value = bench.dataset[name];
    }
    for (const card of document.querySelectorAll(".candidate-card[data-letter]")) {
      for (const side of ["left", "right"]) {
        const on = bench.dataset[side] === card.dataset.letter;
        card.classList.toggle(`is-${side}`, on);
        const mark = card.querySelector(`.side-mark[data-side=${side}]`);
        if (mark) mark.hidden = !on;
      }
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || !window.gagarKeys || window.gagarKeys.rests(event)) return;
    const key = event.key;
    const done =
      ("[]".includes(key) && cycle("left", key === "[" ? -1 : 1)) ||
      ("{}".includes(key) && cycle("right", key === "{" ? -1 : 1));
    if (done) event.preventDefault();
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-pick]");
    if (!link || event.ctrlKey || event.metaKey) return;
    if (pick(event.altKey ? "left" : link.dataset.pick, link.dataset.letter)) event.preventDefault();
  });

  document.addEventListener("htmx:afterSettle", () => { markSides(); catchUp(); });
  document.addEventListener("DOMContentLoaded", markSides);
})();
