/* An order given before the verdict is shown. The places live in the number fields, so that the plain form posts the same:
   empty is not placed, equal is tied. This file moves cards between the two lists and keeps the fields in step. */
(() => {
  const form = () => document.getElementById("blind-order");
  const cards = () => [...document.querySelectorAll("[data-card]")];
  const field = (card) => card.querySelector("input.place");
  const undone = [];
  let typed = {}; // letter -> place before the last change

  const places = () => Object.fromEntries(cards().map((card) => [card.dataset.letter, field(card).value]));

  function groups() {
    const found = new Map();
    for (const card of cards()) {
      const place = Number(field(card).value);
      if (place >= 1) found.set(place, [...(found.get(place) || []), card]);
    }
    return [...found.keys()].sort((a, b) => a - b).map((place) => found.get(place));
  }

  function draw() {
    const placed = document.querySelector("[data-placed]");
    const rest = document.querySelector("[data-unplaced]");
    const order = groups();
    for (const group of order) {
      group.forEach((card, n) => {
        placed.append(card);
        card.classList.toggle("is-tied", group.length > 1);
        card.classList.toggle("tie-first", group.length > 1 && n === 0);
        card.classList.toggle("tie-last", group.length > 1 && n === group.length - 1);
      });
    }
    for (const card of cards().filter((one) => !(Number(field(one).value) >= 1))) {
      rest.append(card);
      card.classList.remove("is-tied", "tie-first", "tie-last");
    }
    const count = order.flat().length;
    const all = cards().length;
    document.querySelector("[data-placed-words]").textContent = `${count} of ${all} placed`;
    document.querySelector("[data-none-placed]").hidden = count > 0;
    rest.parentElement.hidden = count === all;
    for (const submit of document.querySelectorAll("[data-submit-order]")) {
      submit.setAttribute("aria-disabled", String(count < all));
      if (count < all) submit.title = `${all - count} not placed yet`;
      else submit.removeAttribute("title");
    }
    document.dispatchEvent(new CustomEvent("draft-typed"));
  }

  function change(make) {
    const before = places();
    make();
    if (JSON.stringify(before) !== JSON.stringify(places())) undone.push(before);
    typed = places();
    draw();
  }

  function write(order) {
    const kept = order.filter((group) => group.length);
    const here = new Map(kept.flatMap((group, n) => group.map((card) => [card, n + 1])));
    for (const card of cards()) field(card).value = here.has(card) ? String(here.get(card)) : "";
  }

  const without = (order, card) => order.map((group) => group.filter((one) => one !== card));

  function move(card, how) {
    if (!card) return;
    const order = groups();
    const at = order.findIndex((group) => group.includes(card));
    const tied = at >= 0 && order[at].length > 1;
    change(() => {
      const rest = without(order, card);
      if (how === "out") return write(rest);
      if (at < 0) rest.push([card]); // whatever is pressed first: it becomes the last
      else if (how === "tie" && at > 0) rest[at - 1].push(card);
      else if (how === "split" && tied) rest.splice(at + 1, 0, [card]);
      else if (how === "up") rest.splice(tied ? at : Math.max(0, at - 1), 0, [card]);
      else if (how === "down") rest.splice(tied ? at + 1 : at + 2, 0, [card]);
      else rest[at].push(card);
      return write(rest);
    });
    window.gagarKeys.focus(card);
  }

  function drop({ card, target, where }) {
    const order = groups();
    const rest = without(order, card);
    const at = target ? order.findIndex((group) => group.includes(target)) : -1;
    change(() => {
      if (at < 0 && where === "out") return write(rest);
      if (at < 0) rest.push([card]);
      else if (where === "tie") rest[at].push(card);
      else rest.splice(where === "before" ? at : at + 1, 0, [card]);
      return write(rest);
    });
    window.gagarKeys.focus(card);
  }

  function undo() {
    const before = undone.pop();
    if (!before) return;
    for (const card of cards()) field(card).value = before[card.dataset.letter] ?? "";
    typed = places();
    draw();
  }

  document.addEventListener("keydown", (event) => {
    if (!form() || !window.gagarKeys || window.gagarKeys.rests(event)) return;
    const card = window.gagarKeys.focused()?.closest("[data-card]");
    if (!card) return;
    const how = { "=": "tie", "/": "split", 0: "out", Backspace: "out" }[event.key];
    const arrow = event.shiftKey && { ArrowUp: "up", ArrowDown: "down" }[event.key];
    if (!how && !arrow) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    move(card, how || arrow);
  }, true);
  document.addEventListener("click", (event) => {
    if (!form()) return;
    const button = event.target.closest("[data-blind-move]");
    if (button) move(button.closest("[data-card]"), button.dataset.blindMove);
    if (event.target.closest("[data-blind-undo]")) undo();
    const submit = event.target.closest("[data-submit-order]");
    if (submit && submit.getAttribute("aria-disabled") === "true") event.preventDefault();
  });
  document.addEventListener("change", (event) => {
    const card = event.target.matches("[data-card] input.place") && event.target.closest("[data-card]");
    if (!card) return;
    undone.push(typed);
    typed = places();
    draw();
  });
  document.addEventListener("card-dropped", (event) => {
    if (event.detail.card.matches("[data-card]")) drop(event.detail);
  });
  document.addEventListener("DOMContentLoaded", () => {
    if (!form()) return;
    typed = places();
    draw();
  });
})();
