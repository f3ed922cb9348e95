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

  function load(id) {
    const link = document.querySelector(`a[href$="#${CSS.escape(id)}"][data-file]`);
    const file = link && document.getElementById(link.dataset.file);
    if (!file) return;
    const rest = file.querySelector("[data-lazy]");
    if (rest && window.htmx) htmx.trigger(rest, "open-file");
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
