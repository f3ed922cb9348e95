/* The websocket of a page ([data-live] on body) only hints that something changed; the page refetches its parts through
   htmx (hx-trigger="live-changed from:body"). A lost connection is said calmly, with the time of what is seen. */
(() => {
  const MIN_GAP_MS = 700; // at most one refetch in this time, however many hints come
  const path = document.body?.dataset.live;
  const dot = document.querySelector("[data-live-dot]");
  const banner = document.getElementById("live-banner");
  let socket = null;
  let tries = 0;
  let seenAt = new Date();
  let retryAt = 0;
  let retry = 0;
  let last = 0;
  let waiting = 0;
  let kinds = new Set();

  function tell() {
    waiting = 0;
    last = performance.now();
    seenAt = new Date();
    document.body.dispatchEvent(new CustomEvent("live-changed", { bubbles: true, detail: { kinds: [...kinds] } }));
    kinds = new Set();
  }

  function changed(kind) {
    kinds.add(kind);
    if (!waiting) waiting = setTimeout(tell, Math.max(0, MIN_GAP_MS - (performance.now() - last)));
  }

  const clock = (date) => date.toTimeString().slice(0, 8);

  function show(state) {
    if (dot) {
      dot.classList.toggle("is-lost", state === "lost");
      dot.textContent = state === "lost" ? "connection lost" : "live";
      dot.hidden = false;
    }
    if (!banner) return;
    banner.hidden = state !== "lost";
    document.body.classList.toggle("is-offline", state === "lost");
    if (state === "lost") {
      banner.querySelector("[data-seen-at]").textContent = clock(seenAt);
      banner.querySelector("[data-retry-in]").textContent = String(Math.max(0, Math.ceil((retryAt - Date.now()) / 1000)));
    }
  }

  function open() {
    clearTimeout(retry);
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(`${scheme}//${location.host}${path}`);
    socket.addEventListener("open", () => {
      const again = tries > 0;
      tries = 0;
      show("live");
      if (again) changed("all"); // what happened meanwhile was not hinted
    });
    socket.addEventListener("message", (event) => {
      let hint = {};
      try { hint = JSON.parse(event.data); } catch { /* a hint needs no content */ }
      seenAt = new Date();
      changed(hint.type || "all");
    });
    socket.addEventListener("close", (event) => {
      if ([4401, 4403, 4404].includes(event.code)) return show("lost");
      tries += 1;
      const pause = Math.min(15000, 500 * 2 ** Math.min(tries, 5)) * (0.75 + Math.random() / 2);
      retryAt = Date.now() + pause;
      if (tries > 1) show("lost"); // one quick reconnect needs no words
      retry = setTimeout(open, pause);
    });
  }

  if (path) {
    open();
    setInterval(() => { if (banner && !banner.hidden) show("lost"); }, 1000);
    banner?.querySelector("[data-retry-now]")?.addEventListener("click", open);
  }

  // --- a part that could not be fetched: in the words of the refusal where there are some
  function failed(words) {
    const alert = document.getElementById("request-failed");
    if (!alert) return;
    if (words) alert.querySelector("[data-refusal-words]").textContent = words;
    alert.hidden = false;
  }
  let leaving = -Infinity;
  addEventListener("beforeunload", () => { leaving = performance.now(); });
  document.body?.addEventListener("htmx:sendError", () => {
    if (performance.now() - leaving < 3000) return; // the next page cancels what this one still asked for
    failed("The server did not answer. Nothing was saved; try again.");
  });
  document.body?.addEventListener("htmx:responseError", (event) => {
    const page = new DOMParser().parseFromString(event.detail.xhr.responseText || "", "text/html");
    const said = page.querySelector("[data-refusal] p")?.textContent.trim();
    failed(said || `The server answered ${event.detail.xhr.status}. Nothing was saved.`);
  });
  document.body?.addEventListener("htmx:afterOnLoad", () => {
    document.getElementById("request-failed")?.setAttribute("hidden", "");
  });
})();
