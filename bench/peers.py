"""Diffs drawn by diff2html and by us, in the same Chromium and the same run.

diff2html comes from npm into .venv-peers, on the first run.
"""

import shutil
import statistics
import time
from pathlib import Path

from bench.pages import DRAWN_LINES, ROUNDS, patch_of
from bench.peer_tools import diff2html

VIEWS = {"unified": "line-by-line", "split": "side-by-side"}
THEIRS = """([patch, outputFormat]) => {
  const place = document.getElementById("place");
  place.replaceChildren();
  const began = performance.now();
  const ui = new Diff2HtmlUI(place, patch, { outputFormat, drawFileList: false, matching: "lines" });
  ui.draw();
  ui.highlightCode();
  place.getBoundingClientRect();
  return performance.now() - began;
}"""
OURS = """(html) => {
  const place = document.getElementById("place");
  place.replaceChildren();
  const began = performance.now();
  place.innerHTML = html;
  place.getBoundingClientRect();
  return performance.now() - began;
}"""


def main() -> None:
    chromium, bundles = shutil.which("chromium") or shutil.which("chromium-browser"), diff2html()
    if bundles is None or chromium is None:
        print("diff2html: no Chromium, or no diff2html")
        return
    for line in measure(bundles, chromium):
        print("{what:<66}{ours:>10.1f}{peer:>10.1f}{ratio:>8.2f}  goal < 600 ms; peer: diff2html".format(**line))


def measure(bundles: Path, chromium: str) -> list[dict]:
    """Return a line for each view: what, ours (rows made and put on the page), the peer's, their ratio, in ms."""
    from playwright.sync_api import sync_playwright

    lines = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1640, "height": 1000})
        page.set_content('<!doctype html><div id="place"></div>')
        page.add_style_tag(path=bundles / "css/diff2html.min.css")
        page.add_script_tag(path=bundles / "js/diff2html-ui.min.js")
        patch = patch_of(1, DRAWN_LINES)
        for view, theirs in VIEWS.items():
            peer = statistics.median(page.evaluate(THEIRS, [patch.decode(), theirs]) for _ in range(ROUNDS))
            ours = statistics.median(_ours_ms(page, patch, view) for _ in range(ROUNDS))
            what = f"diff drawn in Chromium, {DRAWN_LINES:,} changed lines, {view}"
            lines.append({"what": what, "ours": ours, "peer": peer, "ratio": ours / peer})
        browser.close()
    return lines


def _ours_ms(page, patch: bytes, view: str) -> float:
    from grading.review.diffs import RowOptions, file_rows_html, parse_patch

    began_s = time.perf_counter()
    files = parse_patch(patch).files
    options = [RowOptions("A", n, view=view) for n in range(len(files))]
    rows = "".join(str(file_rows_html(f, cited={}, options=o)) for f, o in zip(files, options, strict=True))
    made_ms = 1_000 * (time.perf_counter() - began_s)
    return made_ms + page.evaluate(OURS, rows)


if __name__ == "__main__":
    main()
