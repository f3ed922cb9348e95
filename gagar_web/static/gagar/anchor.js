/* A citation is a link to a line. The line scrolls to the middle of its own column and is marked once. Files arrive
   lazily and push lines down, so the target is scrolled to again after every settle, until the reader scrolls. */
(() => {
  let ours = true;
  for (const name of ["wheel", "touchmove", "mousedown"]) {
    addEventListener(name, () => { ours = false; }, { passive: true });
  }
  addEventListener("keydown", (event) => {
    if (["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End", " "].includes(event.key)) ours = false;
  }, { passive: true });

  const wanted = () => location.hash.length > 1 && decodeURIComponent(location.hash.slice(1));

  function reserve(within) {
    const line = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--code-line")) || 18;
    for (const element of within.querySelectorAll("[data-reserve]")) {
      element.style.minHeight = `${Math.min(Number(element.dataset.reserve), 2000) * line}px`;
    }
  }

  function unfold(target) {
    const folded = target.closest("tbody[hidden]");
    if (!folded) return;
    folded.hidden = false;
    folded.previousElementSibling?.querySelector(".fold-toggle")?.setAttribute("aria-expanded", "true");
  }

  const fileOf = (id) => id && id.match(/^(.+-f\d+)-[LR]\d+$/)?.[1];

  /* A line that is not on the page: its file is asked for, or the tab that has its file. */
  function load(id) {
    const name = fileOf(id);
    const file = name && document.getElementById(name);
    const diff = document.querySelector("#workbench:not([data-tab=diff]) .tab[data-key=d]");
    if (name && !file && diff) return location.assign(`${diff.getAttribute("href")}#${id}`);
    const further = document.querySelector("[data-rest-files]"); // of many files the page has the first ones
    if (name && !file && further) return htmx.trigger(further, "open-file");
    if (!file) return;
    const rest = file.querySelector("[data-lazy]");
    if (rest && window.htmx) htmx.trigger(rest, "open-file");
    else file.querySelector("[data-more-rows]")?.click(); // of a long file the part that has the line
    file.scrollIntoView({ block: "center" });
  }

  function land(mark) {
    const id = wanted();
    if (!id || !ours) return;
    const target = document.getElementById(id);
    if (!target) return load(id);
    if (target.matches("dialog")) return;
    if (target.matches(".target-overlay")) return target.querySelector("textarea, input:not([type=hidden])")?.focus();
    unfold(target);
    target.scrollIntoView({ block: "center" });
    if (!mark && target.classList.contains("is-target")) return;
    for (const other of document.querySelectorAll(".is-target")) other.classList.remove("is-target");
    void target.offsetWidth; // restarts the animation
    target.classList.add("is-target");
  }

  /* Of many files those up to the wanted one come at once, with its lines. */
  document.addEventListener("htmx:configRequest", (event) => {
    const name = ours && event.target.matches("[data-rest-files]") && fileOf(wanted());
    if (name && !document.getElementById(name)) event.detail.parameters.to = name;
  });

  addEventListener("hashchange", () => { ours = true; land(true); });
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (!link || link.getAttribute("href") === "#") return;
    ours = true;
    if (link.getAttribute("href") === location.hash) land(true); // hashchange stays silent on the same line
  });
  document.addEventListener("htmx:afterSettle", (event) => { reserve(event.target); land(false); });
  document.addEventListener("DOMContentLoaded", () => { reserve(document); land(true); });
})();
