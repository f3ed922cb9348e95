"""Texts of the review's pages have the contrast of WCAG AA; whatever takes the focus has a name and shows it."""

import pytest
from playwright.sync_api import expect

from tests.browser.rooms import enter, make_held, make_room

FAINT = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].map((v, i) => (i === 3 ? v / 255 : v));
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const behind = (one) => {
    const layers = [];
    for (let at = one; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const light = (c) => {
    const [r, g, b] = c.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  for (const one of document.querySelectorAll("body *:not(script):not(style):not(svg *)")) {
    const text = [...one.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data.trim()).join(" ").trim();
    if (!text || !one.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (one.closest(":disabled, [aria-disabled=true], .visually-hidden, option, select")) continue;
    const style = getComputedStyle(one);
    const under = behind(one);
    const [a, b] = [light(over(rgba(style.color), under)), light(under)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio >= (isLarge ? 3 : 4.5)) continue;
    found.push(`${ratio.toFixed(2)} ${one.tagName}.${one.className}: ${text.slice(0, 40)}`);
  }
  return [...new Set(found)];
}"""
TAKES_FOCUS = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]"
NAMELESS = """(takesFocus) => [...document.querySelectorAll(takesFocus)]
  .filter((one) => one.checkVisibility())
  .filter((one) => !(one.textContent.trim() || one.getAttribute("aria-label") || one.labels?.length
    || one.getAttribute("aria-labelledby") || one.title))
  .map((one) => one.outerHTML.slice(0, 120))"""
HAS_A_RING = """() => {
  const style = getComputedStyle(document.activeElement);
  const box = document.activeElement.getBoundingClientRect();
  const isRinged = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  return isRinged || style.boxShadow !== "none" || document.activeElement === document.body || box.width === 0
    ? "" : document.activeElement.outerHTML.slice(0, 120);
}"""
PAGES = {
    "queue": ("/queue/", "#queue-rows tbody tr"),
    "groups": ("/groups/", "tbody tr"),
    "group": ("/groups/{pk}/?left=A&right=B", ".sum-check"),
    "split": ("/groups/{pk}/?left=A&right=B&view=split&beside=results", ".sum-check"),
    "interdiff": ("/groups/{pk}/?left=A&right=B&tab=interdiff", ".sum-check"),
    "tests": ("/groups/{pk}/?left=A&right=D&tab=tests", ".sum-check"),
    "checks": ("/groups/{pk}/?left=A&right=B&tab=checks", ".sum-check"),
    "trajectories": ("/groups/{pk}/?left=A&right=B&tab=trajectory", ".sum-check"),
    "history": ("/groups/{pk}/history", "tbody tr"),
    "reviews": ("/runs/small-modules/reviews", "h1"),
    "mine": ("/reviewers/me", "h1"),
    "blind": ("/groups/{blind}/", "[data-placed-words]"),
}


@pytest.fixture
def room():
    user, run = make_room(reviews_wanted=1)
    return user, make_held(run), make_held(run, task="blind", is_blind=True)


def test_texts_are_readable_and_what_takes_the_focus_is_named_and_seen(page, server, room):
    user, group, blind = room
    enter(page, server, user)
    page.emulate_media(reduced_motion="reduce")
    faint, nameless = {}, {}
    for name, (path, sign) in PAGES.items():
        page.goto(server + path.format(pk=group.pk, blind=blind.pk))
        expect(page.locator(sign).first).to_be_visible()
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            if found := page.evaluate(FAINT):
                faint[f"{name}, {theme}"] = found
        if found := page.evaluate(NAMELESS, TAKES_FOCUS):
            nameless[name] = found
    assert not faint
    assert not nameless
    page.goto(f"{server}/groups/{group.pk}/?left=A&right=B")
    expect(page.locator(".sum-check")).to_be_visible()
    unseen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        unseen.add(page.evaluate(HAS_A_RING))
    assert unseen <= {""}


SAYS = {
    "nav.site-nav": """
- navigation "Main":
  - link "Runs"
  - link "Queue 2"
""",
    "#main": """
- main:
  - heading "Queue" [level=1]
  - button "Claim the first free n"
  - combobox "run"
  - combobox "held because"
  - combobox "claimed by"
  - table "Groups that wait for a person":
    - rowgroup:
      - row /Group Run Step Pass Priority/
    - rowgroup:
      - row /answers .* 3 of 4/:
        - cell /answers/:
          - link "answers"
        - cell "Claim":
          - button "Claim"
""",
}
GROUP_SAYS = {
    "#ranking": """
- navigation "Ranking by tier":
  - heading "Ranking" [level=2]
  - heading /Tier 1/ [level=3]
  - list:
    - listitem "Candidate A, W 5.00, factor 1.00":
      - link "A on the left"
      - textbox "A approach": "5"
      - textbox "A minimality": "5"
      - img "advantage +0.250 before, +0.263 after"
  - list:
    - listitem "Candidate B, W 3.00, factor 0.85":
      - link "B on the right"
  - heading /Not passed/ [level=3]
  - list:
    - listitem "Candidate D, failed, 1 test fails"
""",
    "#workbench": """
- main:
  - navigation "What to compare":
    - link "Interdiff"
  - combobox "left"
  - combobox "right"
  - toolbar "How the diffs are shown":
    - button "Previous file"
    - button "Next file"
    - button "Previous change"
    - button "Next change"
  - group "Changes of A and B, file beside file":
    - 'article "A: app.py"':
      - table "Changes of A, unified"
""",
    "section.training-bar": """
- region "What training gets":
  - heading "What training gets" [level=2]
  - button "Approve verdict a"
  - button "Save correction o" [disabled]
  - link "Leak x"
  - link "Broken task b"
  - link "Fall back F"
""",
}


def test_a_screen_reader_says_what_stands_on_the_queue_and_on_a_groups_page(page, server, room):
    user, group, _ = room
    enter(page, server, user)
    for path, says in (("/queue/", SAYS), (f"/groups/{group.pk}/?left=A&right=B", GROUP_SAYS)):
        page.goto(server + path)
        for part, words in says.items():
            expect(page.locator(part)).to_match_aria_snapshot(words)
