/* Light or dark: the system decides until the reader does. Loaded before the first paint, so nothing flashes. */
(() => {
  const root = document.documentElement;
  const kept = () => {
    try { return localStorage.getItem("theme"); } catch { return null; } // private window
  };
  if (["light", "dark"].includes(kept())) root.dataset.theme = kept();

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* private window */ }
    document.dispatchEvent(new CustomEvent("theme-changed"));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    document.dispatchEvent(new CustomEvent("theme-changed"));
  });
})();
