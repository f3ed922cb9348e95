/* A list in which many rows are selected: one box for all, a count, and Shift for a range. */
(() => {
  const boxes = () => [...document.querySelectorAll("[data-select]")];
  let last = null;

  function show() {
    const all = document.querySelector("[data-select-all]");
    const on = boxes().filter((box) => box.checked).length;
    const count = document.querySelector("[data-selected]");
    if (count) count.textContent = `${on} of ${boxes().length}`;
    if (!all) return;
    all.hidden = false;
    all.checked = on > 0 && on === boxes().length;
    all.indeterminate = on > 0 && !all.checked;
  }

  document.addEventListener("click", (event) => {
    if (event.target.matches("[data-select-all]")) for (const box of boxes()) box.checked = event.target.checked;
    if (event.target.matches("[data-select]")) {
      const list = boxes();
      const [from, to] = [list.indexOf(last), list.indexOf(event.target)];
      if (event.shiftKey && from >= 0) {
        for (const box of list.slice(Math.min(from, to), Math.max(from, to) + 1)) box.checked = event.target.checked;
      }
      last = event.target;
    }
    show();
  });
  document.addEventListener("DOMContentLoaded", show);
})();
