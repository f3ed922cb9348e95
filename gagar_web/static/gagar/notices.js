/* The browser's own notice, for who asked for it: groups near their deadline ([data-near] in the queue's rows) and what a
   page says with [data-notice], as the banner of a run does. Live updates fetch both anew; each is told once in this tab. */
(() => {
  const WANTED = "notices";
  const TOLD = "notices-told";
  if (!("Notification" in window)) return;
  const told = new Set(JSON.parse(sessionStorage.getItem(TOLD) || "[]"));
  const isWanted = () => localStorage.getItem(WANTED) === "1" && Notification.permission === "granted";

  function show() {
    const button = document.querySelector("[data-notify]");
    if (!button) return;
    button.hidden = false;
    button.setAttribute("aria-pressed", String(isWanted()));
    const words = isWanted() ? "Notices are on" : Notification.permission === "denied" ? "Notices are blocked" : "Notify me";
    button.querySelector("span").textContent = words;
    button.disabled = Notification.permission === "denied";
  }

  function once(key, title, body, link) {
    if (told.has(key)) return;
    told.add(key);
    const notice = new Notification(title, { body, tag: key });
    notice.addEventListener("click", () => { window.focus(); location.href = link.href; });
  }

  function tell() {
    if (!isWanted()) return;
    for (const link of document.querySelectorAll("[data-near]")) {
      const minutes = Math.max(1, Math.round(Number(link.dataset.left) / 60));
      once(`group-${link.dataset.near}`, `${link.dataset.task}: about ${minutes} min left`, "A held group is near its deadline.", link);
    }
    for (const link of document.querySelectorAll("[data-notice]")) {
      once(link.dataset.notice, link.dataset.title, link.dataset.body, link);
    }
    sessionStorage.setItem(TOLD, JSON.stringify([...told]));
  }

  document.addEventListener("click", async (event) => {
    if (!event.target.closest("[data-notify]")) return;
    if (isWanted()) localStorage.removeItem(WANTED);
    else if (await Notification.requestPermission() === "granted") localStorage.setItem(WANTED, "1");
    show();
    tell();
  });
  document.addEventListener("DOMContentLoaded", () => { show(); tell(); });
  document.addEventListener("htmx:afterSettle", tell);
  setInterval(() => document.querySelector("#queue-rows") && document.body.dispatchEvent(new CustomEvent("live-changed", { bubbles: true, detail: { kinds: ["clock"] } })), 30_000);
})();
