"""Pages with more to say than fits: nothing is printed over something else, and what is cut can be read."""

import pytest
from playwright.sync_api import expect

from grading.models import Task
from tests.browser.looking import SIZES, picture
from tests.browser.rooms import enter, make_held, make_room, open_group, small_patch

STATEMENT = """`add_months(date(2023, 12, 5), 1)` raises. Two things are wrong: the year does not move on in December
(nor back for a negative number), and the last day of a shorter month is not found.

Nothing else changes.
"""
OVER_EACH_OTHER = """() => {
  const parts = ["score-strip", "candidate-w", "candidate-factor", "candidate-after", "candidate-credit", "twins"];
  const found = [];
  for (const card of document.querySelectorAll(".candidate-card")) {
    const boxes = parts.flatMap((name) => [...card.querySelectorAll(`.${name}`)].map((one) => {
      const range = document.createRange();
      range.selectNodeContents(one);
      const [ink, box] = [range.getBoundingClientRect(), one.getBoundingClientRect()];
      const isClipped = getComputedStyle(one).overflowX !== "visible";
      return { name, left: isClipped ? box.left : Math.min(ink.left, box.left), top: box.top, bottom: box.bottom,
        right: isClipped ? box.right : Math.max(ink.right, box.right) };
    }));
    for (const [n, a] of boxes.entries()) for (const b of boxes.slice(n + 1)) {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 2) found.push(`${card.id}: ${a.name} over ${b.name}`);
    }
  }
  return found;
}"""
CUT = """() => [...document.querySelectorAll(".task-head *")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== "visible")
  .filter((one) => !one.title).map((one) => one.className || one.tagName)"""


@pytest.fixture
def room():
    user, run = make_room(name="Demo 1: a tiny policy mends small modules")
    group = make_held(
        run,
        outcomes="P" * 14 + "FF",
        patches=[small_patch() if n < 12 else small_patch(f"40 + {n}") for n in range(16)],
        scores={letter: 5 if n < 12 else 3 for n, letter in enumerate("ABCDEFGHIJKLMN")},
        hold_reason="drawn with probability 0.1; a strong signal of a detector",
        events=None,
    )
    Task.objects.filter(pk=group.task.pk).update(statement=STATEMENT, base_commit="5a1d0c3")
    return user, group


def test_a_group_of_many_twins_with_a_long_head_can_be_read(page, server, room):
    user, group = room
    enter(page, server, user)
    open_group(page, server, group, "?left=A&right=B")
    page.get_by_role("button", name="Claim", exact=True).click()
    expect(page.locator("#group-head")).to_contain_text("claimed by you")
    expect(page.locator("#advantage-A .candidate-after")).to_be_visible()
    for size in SIZES.values():
        page.set_viewport_size(size)
        assert page.evaluate(OVER_EACH_OTHER) == []
        assert page.evaluate(CUT) == []
        for words in ("held: drawn with probability 0.1; a strong signal of a detector", "graded"):
            expect(page.locator("#group-head .facts")).to_contain_text(words)
    whole = "A submitted the identical patch to B, C, D, E, F, G, H, I, J, K, L"
    expect(page.locator("#card-A .twins")).to_have_attribute("title", whole)
    expect(page.locator("#group-head h1 span")).to_contain_text("(nor back for a negative number), and the last day")
    picture(page, "crowded-group")
