/* Cite what is selected: a line or lines of a diff, or an event. It fills the next empty citation of the correction. */
(() => {
  const NOTES = ".cite-mark, .clip, .eol"; // a number of evidence, a clipped tail, a line end

  /* The code of a row that lies in the range, without what the page says of it (NOTES). A triple click ends at offset 0 of the
     next row: nothing of that row is in it. */
  function code(row, range) {
    const cell = row.querySelector(".code");
    const part = document.createRange();
    part.selectNodeContents(cell);
    if (range?.comparePoint(part.startContainer, part.startOffset) < 0) part.setStart(range.startContainer, range.startOffset);
    if (range?.comparePoint(part.endContainer, part.endOffset) > 0) part.setEnd(range.endContainer, range.endOffset);
    const words = part.cloneContents();
    for (const note of words.querySelectorAll(NOTES)) note.remove();
    return words.textContent.trim();
  }

  function lines(range) {
    const column = range.startContainer.parentElement?.closest("[data-letter].diff-column");
    const rows = [...(column?.querySelectorAll(".diff tr") || [])];
    const touched = (row) => row.matches(".is-add, .is-del") && range.intersectsNode(row) && code(row, range);
    const changed = rows.filter(touched);
    if (!changed.length) return null;
    const file = changed[0].closest("[data-path]");
    const number = (row) => row.querySelector(".ln").textContent.trim();
    const like = changed[0].matches(".is-del") ? ".is-del" : ".is-add";
    const own = changed.filter((row) => row.closest("[data-path]") === file && row.matches(like));
    const from = number(own[0]);
    const to = number(own.at(-1));
    const quote = own.map((row) => code(row)).join(" ");
    const kind = own[0].matches(".is-del") ? "old" : "new";
    const place = `${file.dataset.path}:${from}${to === from ? "" : `-${to}`}`;
    return { letter: column.dataset.letter, kind, place, quote };
  }

  function event(range, text) {
    const part = range.startContainer.parentElement?.closest("[data-event]");
    const owner = part?.closest("[data-letter]");
    return part && { letter: owner?.dataset.letter || "", kind: "event", place: part.dataset.event, quote: text };
  }

  function selected() {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return null;
    const range = selection.getRangeAt(0);
    return lines(range) || event(range, selection.toString().trim());
  }

  function freeRow() {
    const list = document.getElementById("citations");
    const rows = [...(list?.querySelectorAll("[data-cite-row]") || [])];
    const free = rows.find((row) => !row.querySelector("[data-cite=place]").value.trim());
    if (free || !rows.length) return free;
    const copy = rows.at(-1).cloneNode(true);
    for (const field of copy.querySelectorAll("[name]")) {
      field.name = field.name.replace(/^cite-\d+-/, `cite-${rows.length + 1}-`);
      if (field.tagName !== "SELECT") field.value = "";
    }
    list.append(copy);
    return copy;
  }

  function say(text) {
    const note = document.querySelector("[data-cite-note]");
    if (note) note.textContent = text;
  }

  function cite() {
    const found = selected();
    if (!found) return say("Select changed lines or words of an event first.");
    const row = freeRow();
    if (!row) return say("This group cannot be corrected now.");
    for (const [key, content] of Object.entries(found)) {
      const field = row.querySelector(`[data-cite=${key}]`);
      if (field) field.value = content;
    }
    row.closest("details")?.setAttribute("open", "");
    row.scrollIntoView({ block: "nearest" });
    say(`Cited ${found.letter} ${found.place}`);
    window.gagarReview?.refresh();
  }

  document.addEventListener("click", (click) => {
    if (click.target.closest("[data-cite-selection]")) cite();
    const link = click.target.closest("a[data-cite-event]"); // on the trajectory page: take the selected words along
    const words = getSelection().toString().trim();
    if (link && words) {
      const url = new URL(link.href);
      url.searchParams.set("cite_quote", words.slice(0, 500));
      link.href = url.href;
    }
  });
})();
