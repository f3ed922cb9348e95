/* Every key has a visible button or link with data-key; a key clicks it. j and k walk the items of a [data-roving] list.
   Keys rest in fields, behind whatever lies over the page and with Ctrl, Alt, Meta. A score is a field that only eats
   digits. */
(() => {
  const OVER = "dialog[open], .target-overlay:target"; // the latter open without scripts too, so they are no dialogs
  const FIELD = "input:not(.score):not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]";
  const rests = (event) =>
    event.ctrlKey || event.metaKey || event.altKey || event.isComposing ||
    Boolean(event.target.closest?.(FIELD) || document.querySelector(OVER));

  const visible = (element) => element.getClientRects().length > 0;
  const ready = (element) => !element.disabled && element.getAttribute("aria-disabled") !== "true";
  let first = ""; // the first half of a pair such as "g q"
  let firstAt = 0;
  let coming = []; // requests for the workbench whose answer is not drawn yet
  const waiting = []; // keys for its links meanwhile: a link there leads on from what is about to go
  let lastId = ""; // the item that was focused last: parts are swapped, the reader's place stays

  function isComing() {
    coming = coming.filter((request) => request.readyState !== XMLHttpRequest.DONE);
    return coming.length > 0;
  }

  function pressWaiting() {
    while (waiting.length && !isComing()) press(waiting.shift());
  }

  function press(key) {
    const all = [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)];
    const inRow = focused()?.querySelector(`[data-key="${CSS.escape(key)}"]`);
    const element = inRow || all.find((one) => visible(one) && !one.closest("[data-item]")) || null;
    if (!element) return false;
    if (element.matches("input, textarea") && !element.matches("[type=checkbox]")) element.focus();
    else if (element.matches("#workbench a[hx-get]") && isComing()) waiting.push(key);
    else if (ready(element)) element.click();
    return true;
  }

  const items = () => [...document.querySelectorAll("[data-roving] [data-item]")].filter(visible);
  const focused = () => document.querySelector("[data-roving] [data-item].is-focused");

  function mark(item) {
    for (const other of document.querySelectorAll("[data-roving] [data-item]")) {
      other.classList.remove("is-focused");
      other.tabIndex = -1;
    }
    item.classList.add("is-focused");
    item.tabIndex = 0;
    lastId = item.id;
  }

  function markAgain() {
    const item = !focused() && lastId && document.getElementById(lastId);
    if (!item || !item.closest("[data-roving]")) return;
    mark(item);
    if (document.activeElement === document.body) item.focus({ preventScroll: true });
  }

  function focus(item) {
    mark(item);
    item.focus({ preventScroll: true });
    item.scrollIntoView({ block: "nearest" });
    item.dispatchEvent(new CustomEvent("item-focused", { bubbles: true }));
  }

  function walk(by) {
    const list = items();
    if (!list.length) return false;
    const at = list.findIndex((item) => item.classList.contains("is-focused"));
    focus(list[Math.min(list.length - 1, Math.max(0, at + by))]);
    return true;
  }

  function showKeys() {
    const dialog = document.getElementById("keys");
    if (dialog && !dialog.open) dialog.showModal();
    return Boolean(dialog);
  }

  function handle(event) {
    const pair = first && performance.now() - firstAt < 1200 ? `${first} ${event.key}` : "";
    first = "";
    if (pair && press(pair)) return true;
    if (event.key === "?") return showKeys();
    if (event.key === "j") return walk(1);
    if (event.key === "k") return walk(-1);
    if (event.key === "Enter" && event.target.matches("[data-item]")) {
      const link = event.target.querySelector("a[data-open]");
      link?.click();
      return Boolean(link);
    }
    if (event.key === "g") {
      first = "g";
      firstAt = performance.now();
      return true;
    }
    return press(event.key);
  }

  /* Out of a field, back to the item in hand, so that the other keys work again. */
  function leave(field) {
    field.blur();
    const item = focused() || document.getElementById(lastId);
    item?.focus({ preventScroll: true });
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
      if (document.querySelector(".target-overlay:target")) location.hash = "";
      if (event.target.closest?.(FIELD) || event.target.matches?.("input")) leave(event.target);
    }
    if (event.defaultPrevented || rests(event)) return;
    if (handle(event)) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-keys-open]")) {
      if (showKeys()) event.preventDefault();
      return;
    }
    const item = event.target.closest("[data-roving] [data-item]");
    if (item && !event.target.closest("a, button, input, select, label, summary")) focus(item);
  });
  document.addEventListener("htmx:beforeSend", ({ detail }) => {
    if (detail.target?.id === "workbench") coming.push(detail.xhr);
  });
  document.addEventListener("htmx:afterRequest", pressWaiting); // after the swap: parts are drawn at once
  document.addEventListener("htmx:afterSettle", markAgain);
  window.gagarKeys = { rests, items, focused, focus };
})();
