/* Cite what is selected: a line or lines of a diff, or an event. It fills the next empty citation of the correction. */
(() => {
  const NOTES = ".cite-mark, .clip, .eol"; // a number of evidence, a clipped tail, a line end

  /* The code of a row that lies in the range, without what the page says of it (NOTES). A triple click ends at offset 0 of the
     next row: nothing of that row is in it. */
  function code(row, range) {
    const cell = row.matches(".code") ? row : row.querySelector(".code"); // of a split diff a half is cited
    const part = document.createRange();
    part.selectNodeContents(cell);
    if (range?.comparePoint(part.startContainer, part.startOffset) < 0) part.setStart(range.startContainer, range.startOffset);
    if (range?.comparePoint(part.endContainer, part.endOffset) > 0) part.setEnd(range.endContainer, range.endOffset);
    const words = part.cloneContents();
    for (const note of words.querySelectorAll(NOTES)) note.remove();
    return words.textContent.replace(/\n+$/, "");
  }

  function lines(range) {
    const column = range.startContainer.parentElement?.closest("[data-letter].diff-side");
    const rows = [...(column?.querySelectorAll(".diff tr, .diff.is-split .code") || [])];
    const touched = (row) => row.matches(".is-add, .is-del") && range.intersectsNode(row) && code(row, range).trim();
    const changed = rows.filter(touched);
    if (!changed.length) return null;
    const file = changed[0].closest("[data-path]");
    const number = (row) => (row.matches(".code") ? row.previousElementSibling.previousElementSibling : row.querySelector(".ln")).textContent.trim();
    const like = changed[0].matches(".is-del") ? ".is-del" : ".is-add";
    const own = changed.filter((row) => row.closest("[data-path]") === file && row.matches(like));
    const from = number(own[0]);
    const to = number(own.at(-1));
    const quote = own.map((row) => code(row)).join("\n").trim();
    const kind = own[0].matches(".is-del") ? "old" : "new";
    const place = `${file.dataset.path}:${from}${to === from ? "" : `-${to}`}`;
    return { letter: column.dataset.letter, kind, place, quote };
  }

  /* In a comparison of two results a row names the line of the candidate's own patch that it comes from. */
  function compared(range) {
    const file = range.startContainer.parentElement?.closest("[data-compared]");
    const rows = [...(file?.querySelectorAll("[data-cites]") || [])];
    const touched = rows.filter((row) => range.intersectsNode(row) && code(row, range).trim());
    if (!touched.length) return null;
    const [letter, kind, from] = touched[0].dataset.cites.split(" ");
    const own = [touched[0]];
    for (const row of touched.slice(1)) {
      if (row.dataset.cites !== `${letter} ${kind} ${Number(from) + own.length}`) break;
      own.push(row);
    }
    const place = `${file.dataset.path}:${from}${own.length > 1 ? `-${Number(from) + own.length - 1}` : ""}`;
    return { letter, kind, place, quote: own.map((row) => code(row)).join("\n").trim() };
  }

  function event(range, text) {
    const part = range.startContainer.parentElement?.closest("[data-event]");
    const owner = part?.closest("[data-letter]");
    return part && { letter: owner?.dataset.letter || "", kind: "event", place: part.dataset.event, quote: text };
  }

  /* By keys alone there is no selection: the changed line or the event that a key led to is meant. */
  function inHand() {
    const row = document.activeElement?.closest?.(".diff tr, [data-event]");
    const words = row?.matches("tr") ? row : row?.querySelector(".event-text, .event-line") || row;
    if (!words) return null;
    const range = document.createRange();
    range.selectNodeContents(words);
    return lines(range) || compared(range) || event(range, "");
  }

  function selected() {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return inHand();
    const range = selection.getRangeAt(0);
    return lines(range) || compared(range) || event(range, selection.toString().trim());
  }

  function freeRow() {
    const list = document.getElementById("citations");
    const rows = [...(list?.querySelectorAll("[data-cite-row]") || [])];
    const free = rows.find((row) => !row.querySelector("[data-cite=place]").value.trim());
    return free || (rows.length ? addRow() : null);
  }

  function addRow() {
    const list = document.getElementById("citations");
    const rows = [...(list?.querySelectorAll("[data-cite-row]") || [])];
    if (!rows.length) return null;
    const copy = rows.at(-1).cloneNode(true);
    for (const field of copy.querySelectorAll("[name]")) {
      field.name = field.name.replace(/^cite-\d+-/, `cite-${rows.length + 1}-`);
      if (field.tagName !== "SELECT") field.value = "";
    }
    list.append(copy);
    return copy;
  }

  /* What the citation is most likely to show: the score of this candidate that was changed and is not cited yet. */
  function editedOf(letter, here) {
    const others = [...document.querySelectorAll("[data-cite-row]")].filter((row) => row !== here && row.querySelector("[data-cite=place]").value.trim());
    const cited = others.map((row) => ["letter", "about"].map((name) => row.querySelector(`[data-cite=${name}]`).value).join("-"));
    const fields = [...document.querySelectorAll(`input.score.is-edited[name^="score-${letter}-"]`)];
    return fields.map((field) => field.name.split("-").slice(2).join("-")).find((about) => !cited.includes(`${letter}-${about}`));
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
    const about = row.querySelector("[data-cite=about]");
    const edited = editedOf(found.letter, row);
    if (about && edited) about.value = edited;
    row.closest("details")?.setAttribute("open", "");
    row.scrollIntoView({ block: "nearest" });
    say(`Cited ${found.letter} ${found.place}`);
    window.gagarReview?.refresh();
  }

  function namedResult() {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return "";
    const lines = [...document.querySelectorAll(".log-line[data-result]")];
    const line = lines.find((one) => selection.getRangeAt(0).intersectsNode(one));
    return line?.querySelector("a.button")?.href || "";
  }

  document.addEventListener("click", (click) => {
    if (click.target.closest("[data-cite-selection]")) cite();
    const link = click.target.closest("a[data-cite-event]"); // on the trajectory page: take the selected words along
    const log = click.target.closest("a[data-cite-log]"); // on a log's page: the result that a selected line names
    const named = log && namedResult();
    if (named) log.href = named;
    const words = getSelection().toString().trim();
    if (link && words) {
      const url = new URL(link.href);
      url.searchParams.set("cite_quote", words.slice(0, 500));
      link.href = url.href;
    }
  });
  window.gagarCite = { addRow };
})();
