/* The review page: edits of scores, flags and places live in the fields of #correction, so that the plain form posts the
   same. This file marks what is edited, lists it, undoes it, and asks the server for the draft (body event draft-changed). */
(() => {
  const form = () => document.getElementById("correction");
  const fields = () => [...(form()?.elements || [])].filter((field) => field.dataset.was !== undefined);
  const value = (field) => (field.type === "checkbox" ? String(field.checked) : field.value);
  const edited = (field) => value(field) !== field.dataset.was;
  const seen = new Map(); // name and value of a checkbox, name of the rest -> last value
  const undone = [];
  let announce = 0;

  const idOf = (field) => (field.type === "checkbox" ? `${field.name}=${field.value}` : field.name);
  const find = (id) => fields().find((field) => idOf(field) === id);

  function put(field, next) {
    if (field.type === "checkbox") field.checked = next === "true";
    else field.value = next;
  }

  function remember(several) {
    const step = []; // what one key or click changed: one undo
    for (const field of several) {
      const id = idOf(field);
      const before = seen.has(id) ? seen.get(id) : field.dataset.was;
      if (before === value(field)) continue;
      step.push({ id, before: before === field.dataset.was ? null : before }); // null: no edit, whatever is drawn by then
      seen.set(id, value(field));
    }
    if (step.length) undone.push(step);
    return step.length > 0;
  }

  /* What the server drew is nobody's edit: undo goes back to it. */
  const drawn = () => fields().forEach((field) => seen.set(idOf(field), value(field)));

  function words(field) {
    const name = field.dataset.label || field.name;
    const too = field.dataset.moved ? `, and of ${field.dataset.moved}, the identical patch` : "";
    if (field.type === "checkbox") return `${name}: ${field.checked ? "set" : "removed"}${too}`;
    return `${name} ${field.dataset.was || "–"} → ${field.value || "–"}${too}`;
  }

  const wrong = (field) => window.gagarNumbers.wrong(field);
  const wrongs = () => fields().map(wrong).filter(Boolean);

  const filled = (name) => Boolean(form()?.elements.namedItem(name)?.value?.trim());
  const cited = () => [...document.querySelectorAll("[data-cite=place]")].some((field) => field.value.trim());

  function lacks(edits) {
    if (!edits.length) return "No edits yet";
    if (!filled("reason")) return "A correction needs a reason";
    if (wrongs().length) return "A score or a place is not a number that counts";
    return cited() ? "" : "A correction needs a citation";
  }

  function refuse(button, why) {
    button.setAttribute("aria-disabled", why ? "true" : "false");
    if (why) button.title = why;
    else button.removeAttribute("title");
  }

  function refresh() {
    if (!form()) return;
    const edits = fields().filter(edited);
    for (const field of fields()) {
      field.classList.toggle("is-edited", edited(field));
      if (field.classList.contains("score")) field.dataset.value = field.value;
      if (wrong(field)) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
    }
    const list = document.querySelector("[data-edit-list]");
    const line = (field) => Object.assign(document.createElement("li"), { textContent: words(field) });
    list?.replaceChildren(...edits.map(line));
    const said = document.querySelector("[data-edit-wrong]");
    if (said) said.textContent = wrongs().join(" ");
    for (const save of document.querySelectorAll("[data-save]")) refuse(save, lacks(edits));
    const unsaved = edits.length ? "You have unsaved edits" : "";
    const isDecided = document.querySelector("[data-news=decision]");
    const isPast = document.body.classList.contains("is-past");
    const why = isDecided ? "Somebody decided meanwhile" : isPast ? "The deadline has passed" : "";
    const past = why && `${why}: reload to see what counts`;
    for (const approve of document.querySelectorAll("[data-approve]")) refuse(approve, past || unsaved);
    document.dispatchEvent(new CustomEvent("draft-typed"));
  }

  function tell() {
    clearTimeout(announce);
    if (wrongs().length) return; // the server is asked once every number counts
    announce = setTimeout(() => document.body.dispatchEvent(new CustomEvent("draft-changed", { bubbles: true })), 200);
  }

  function changed(...several) {
    if (remember(several)) tell();
    refresh();
  }

  function undo() {
    const lanes = new Set();
    for (const { id, before } of undone.pop() || []) {
      const field = find(id);
      if (!field) continue;
      put(field, before ?? field.dataset.was);
      seen.set(id, value(field));
      if (field.name.startsWith("place-")) lanes.add(field.closest(".candidate-card").parentElement);
    }
    for (const one of lanes) show(lane(one.firstElementChild));
    refresh();
    tell();
  }

  // --- places inside a tier: groups of equal place are ties
  const placeOf = (card) => card.querySelector("input[name^='place-']");

  function lane(card) {
    const groups = new Map();
    for (const one of card.parentElement.querySelectorAll(":scope > .candidate-card")) {
      const place = Number(placeOf(one)?.value || 0);
      groups.set(place, [...(groups.get(place) || []), one]);
    }
    return [...groups.keys()].sort((a, b) => a - b).map((place) => groups.get(place));
  }

  function show(groups) {
    for (const group of groups) {
      group.forEach((card, index) => {
        card.parentElement.append(card);
        card.classList.toggle("is-tied", group.length > 1);
        card.classList.toggle("tie-first", group.length > 1 && index === 0);
        card.classList.toggle("tie-last", group.length > 1 && index === group.length - 1);
      });
    }
  }

  function arrange(groups) {
    const kept = groups.filter((group) => group.length);
    kept.forEach((group, at) => group.forEach((card) => { placeOf(card).value = String(at + 1); }));
    show(kept);
    changed(...kept.flat().map(placeOf));
  }

  function move(card, how) {
    if (!card || !placeOf(card) || placeOf(card).disabled) return;
    const groups = lane(card);
    const at = groups.findIndex((group) => group.includes(card));
    const rest = groups[at].filter((one) => one !== card);
    if (how === "tie" && at > 0) {
      groups[at] = rest;
      groups[at - 1] = [...groups[at - 1], card];
    } else if (how === "split" && rest.length) {
      groups.splice(at, 1, rest, [card]);
    } else if (how === "up" || how === "down") {
      const step = how === "up" ? -1 : 1;
      groups[at] = rest;
      groups.splice(rest.length ? at + (step > 0 ? 1 : 0) : Math.max(0, at + step + (step > 0 ? 1 : 0)), 0, [card]);
    } else return;
    arrange(groups);
    window.gagarKeys.focus(card);
  }

  function score(key) {
    const active = document.activeElement;
    const card = window.gagarKeys.focused();
    const field = active?.matches?.("input.score") ? active : card?.querySelector("input.score");
    if (!field || field.disabled || field.readOnly) return false;
    if (field === active && /[.,]$/.test(field.value)) return false; // 4.5 is typed to its end, and then refused
    field.value = key;
    field.focus();
    changed(field);
    return true;
  }

  /* Left and right walk over the criteria of the candidate in hand. */
  function criterion(by) {
    const card = document.activeElement?.closest?.(".candidate-card");
    const list = [...(card?.querySelectorAll("input.score:enabled") || [])];
    if (!list.length) return false;
    const at = list.indexOf(document.activeElement);
    list[at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(list.length - 1, Math.max(0, at + by))].focus();
    return true;
  }

  function fold(toggle, open) {
    const rows = toggle.closest("tbody")?.nextElementSibling;
    if (!rows) return;
    toggle.setAttribute("aria-expanded", String(open));
    rows.hidden = !open;
  }

  function stepEvidence(by) {
    const list = [...document.querySelectorAll(".evidence-item")];
    if (!list.length) return false;
    const at = list.findIndex((item) => item.classList.contains("is-focused"));
    for (const item of list) item.classList.remove("is-focused");
    const item = list[(at + by + list.length) % list.length];
    item.classList.add("is-focused");
    item.focus({ preventScroll: true });
    item.scrollIntoView({ block: "nearest" });
    item.querySelector("a.cite-mark")?.click();
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || !window.gagarKeys || window.gagarKeys.rests(event)) return;
    const card = window.gagarKeys.focused();
    const key = event.key;
    const done =
      (/^[1-5]$/.test(key) && score(key)) ||
      (event.shiftKey && key === "ArrowUp" && card && (move(card, "up"), true)) ||
      (event.shiftKey && key === "ArrowDown" && card && (move(card, "down"), true)) ||
      (!event.shiftKey && key === "ArrowLeft" && criterion(-1)) ||
      (!event.shiftKey && key === "ArrowRight" && criterion(1)) ||
      (key === "=" && card && (move(card, "tie"), true)) ||
      (key === "/" && card && !document.querySelector("[data-key='/']") && (move(card, "split"), true)) ||
      ((key === "e" || key === "E") && stepEvidence(key === "e" ? 1 : -1));
    if (done) event.preventDefault();
  });

  document.addEventListener("card-dropped", ({ detail: { card, target, where } }) => {
    const place = placeOf(card);
    if (!target || !place || place.disabled || card.parentElement !== target.parentElement) return; // a tier follows scores
    const groups = lane(card).map((group) => group.filter((one) => one !== card));
    const at = groups.findIndex((group) => group.includes(target));
    if (where === "tie") groups[at].push(card);
    else groups.splice(where === "before" ? at : at + 1, 0, [card]);
    arrange(groups);
    window.gagarKeys.focus(card);
  });

  document.addEventListener("input", (event) => {
    const field = event.target;
    if (!form() || field.form !== form()) return;
    if (field.dataset.was === undefined) refresh();
    else changed(field);
  });

  document.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest(selector);
    if (at("[aria-disabled=true]")) return event.preventDefault();
    if (at("[data-undo]")) undo();
    const toggle = at(".fold-row .fold-toggle");
    if (toggle) fold(toggle, toggle.getAttribute("aria-expanded") !== "true");
    const shift = at("[data-move]");
    if (shift) move(shift.closest(".candidate-card"), shift.dataset.move);
  });

  document.addEventListener("focusin", (event) => {
    if (event.target.matches("input.score") && !window.gagarReview.isDrawing) event.target.select();
  });
  document.addEventListener("submit", () => { window.gagarReview.isLeaving = true; });
  addEventListener("beforeunload", (event) => {
    if (!window.gagarReview.isLeaving && form() && fields().some(edited)) event.preventDefault();
  });
  document.addEventListener("htmx:afterSettle", () => refresh());
  document.addEventListener("DOMContentLoaded", () => refresh());
  window.gagarReview = { refresh, drawn, fields, idOf, value, edited, find, put, isDrawing: false, isLeaving: false };
})();
