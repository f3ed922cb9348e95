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
    document.body.dispatchEvent(new CustomEvent("live-hint", { bubbles: true })); // curves are quicker than whole parts
    kinds.add(kind);
    if (!waiting) waiting = setTimeout(tell, Math.max(0, MIN_GAP_MS - (performance.now() - last)));
  }

  /* A filter replaces a part with what the server read when it was asked: of a hint since then the new part knows nothing,
     and what the old one asked for goes with it. */
  document.body?.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (detail.elt.matches("form.filters")) detail.xhr.askedAt = performance.now();
  });
  document.body?.addEventListener("htmx:afterSettle", ({ detail }) => {
    if (last > detail.xhr?.askedAt) changed("all");
  });

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
    const left = socket;
    socket = null; // its close is ours and needs no words
    left?.close();
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const mine = new WebSocket(`${scheme}//${location.host}${path}`);
    socket = mine;
    mine.addEventListener("open", () => {
      const again = tries > 0;
      tries = 0;
      show("live");
      if (again) changed("all"); // what happened meanwhile was not hinted
    });
    mine.addEventListener("message", (event) => {
      let hint = {};
      try { hint = JSON.parse(event.data); } catch { /* a hint needs no content */ }
      seenAt = new Date();
      changed(hint.type || "all");
    });
    mine.addEventListener("close", (event) => {
      if (socket !== mine) return;
      if ([4401, 4403, 4404].includes(event.code)) return show("lost");
      tries += 1;
      const pause = Math.min(15000, 500 * 2 ** Math.min(tries, 5)) * (0.75 + Math.random() / 2);
      retryAt = Date.now() + pause;
      if (tries > 1) show("lost"); // one quick reconnect needs no words
      retry = setTimeout(open, pause);
    });
  }

  /* After sleep a socket can look open for ever, though the server gave it up: it is opened anew, and all is asked again. */
  const ASLEEP_MS = 10_000; // no tick for so long: the machine slept, or the tab did
  let ticked = Date.now();
  function wake() {
    if (document.visibilityState !== "visible") return;
    const slept = Date.now() - ticked;
    ticked = Date.now();
    if (slept > ASLEEP_MS) again();
  }
  function again() {
    tries = Math.max(tries, 1);
    open();
  }

  if (path) {
    open();
    setInterval(wake, 1000);
    document.addEventListener("visibilitychange", wake);
    addEventListener("online", again);
    addEventListener("offline", () => { retryAt = Date.now() + 1000; show("lost"); });
    setInterval(() => { if (banner && !banner.hidden) show("lost"); }, 1000);
    banner?.querySelector("[data-retry-now]")?.addEventListener("click", open);
  }

  // --- a part that could not be fetched: in the words of the refusal where there are some
  let lost = null; // what asked: its words stay until it is answered
  function failed(element, words, isOld) {
    const alert = document.getElementById("request-failed");
    if (!alert) return;
    lost = element;
    if (words) alert.querySelector("[data-refusal-words]").textContent = words;
    alert.querySelector("[data-reload-now]").hidden = !isOld;
    alert.hidden = false;
  }
  document.querySelector("[data-reload-now]")?.addEventListener("click", () => {
    if (window.gagarReview) window.gagarReview.isLeaving = true; // what was typed is kept in this tab
    location.reload();
  });
  let leaving = -Infinity;
  addEventListener("beforeunload", () => { leaving = performance.now(); });
  const isQuiet = (event) => event.detail.elt?.hasAttribute?.("data-quiet"); // asks by itself, and again: nothing was lost
  document.body?.addEventListener("htmx:sendError", (event) => {
    if (isQuiet(event)) return;
    if (performance.now() - leaving < 3000) return; // the next page cancels what this one still asked for
    failed(event.detail.elt, "The server did not answer. Nothing was saved; try again.");
  });
  document.body?.addEventListener("htmx:responseError", (event) => {
    if (isQuiet(event)) return;
    const page = new DOMParser().parseFromString(event.detail.xhr.responseText || "", "text/html");
    const said = page.querySelector("[data-refusal] p");
    const words = said?.textContent.trim() || `The server answered ${event.detail.xhr.status}. Nothing was saved.`;
    failed(event.detail.elt, words, Boolean(said?.hasAttribute("data-reload")));
  });
  document.body?.addEventListener("htmx:afterOnLoad", (event) => {
    if (!event.detail.successful || (lost?.isConnected && lost !== event.detail.elt)) return; // said after refusals too
    document.getElementById("request-failed")?.setAttribute("hidden", "");
  });
})();
