"""Cards of a ranking are dragged inside their tier; a tier itself follows from scores and flags."""

import pytest
from playwright.sync_api import expect

from tests.browser.rooms import enter, make_held, make_room, open_group

PLACES = "() => Object.fromEntries(['A', 'B', 'C'].map((l) => [l, document.querySelector(`[name=place-${l}]`).value]))"


@pytest.fixture
def ranking(page, server):
    """A and C tied in tier 1, B alone in tier 2."""
    user, run = make_room()
    group = make_held(run)
    enter(page, server, user)
    open_group(page, server, group, "?left=A&right=B")
    assert page.evaluate(PLACES) == {"A": "1", "B": "1", "C": "1"}
    return page


def drag(page, letter: str, to: str, part: float) -> None:
    page.locator(f"#card-{letter}").hover()
    handle = page.locator(f"#card-{letter} [data-drag]").bounding_box()
    box = page.locator(f"#card-{to}").bounding_box()
    page.mouse.move(handle["x"] + 4, handle["y"] + handle["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + box["height"] * part, steps=4)
    page.mouse.up()


def test_a_tie_is_split_and_made_again_by_dragging(ranking):
    drag(ranking, "A", "C", 0.95)
    assert ranking.evaluate(PLACES) == {"A": "2", "B": "1", "C": "1"}
    expect(ranking.locator(".ranking-head")).to_contain_text("your draft, not saved")
    drag(ranking, "A", "C", 0.5)
    assert ranking.evaluate(PLACES) == {"A": "1", "B": "1", "C": "1"}
    expect(ranking.locator("[data-edit-list] li")).to_have_count(0)


def touch_drag(page, letter: str, to: str, part: float) -> None:
    """With one finger, as the browser itself hears it."""
    devtools = page.context.new_cdp_session(page)
    handle = page.locator(f"#card-{letter} [data-drag]").bounding_box()
    box = page.locator(f"#card-{to}").bounding_box()
    start = (handle["x"] + 4, handle["y"] + handle["height"] / 2)
    end = (box["x"] + 60, box["y"] + box["height"] * part)

    def touch(kind: str, *places) -> None:
        points = [{"x": x, "y": y} for x, y in places]
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", start)
    for n in range(1, 5):
        touch("touchMove", tuple(a + (b - a) * n / 4 for a, b in zip(start, end, strict=True)))
    touch("touchEnd")


def test_a_finger_splits_a_tie_and_makes_it_again(new_context, watch, server):
    user, run = make_room()
    group = make_held(run)
    context = new_context(has_touch=True)
    watch.over(context)
    page = context.new_page()
    enter(page, server, user)
    open_group(page, server, group, "?left=A&right=B")
    expect(page.locator("#card-A [data-drag]")).to_be_visible()  # nothing hovers there, so it must show by itself
    touch_drag(page, "A", "C", 0.95)
    assert page.evaluate(PLACES) == {"A": "2", "B": "1", "C": "1"}
    expect(page.locator(".ranking-head")).to_contain_text("your draft, not saved")
    touch_drag(page, "A", "C", 0.5)
    assert page.evaluate(PLACES) == {"A": "1", "B": "1", "C": "1"}
    page.locator("#card-B .candidate-letter").tap()
    expect(page.locator("#workbench")).to_have_attribute("data-right", "B")


def test_a_card_dropped_in_another_tier_stays_where_it_is(ranking):
    drag(ranking, "A", "B", 0.1)
    assert ranking.evaluate(PLACES) == {"A": "1", "B": "1", "C": "1"}
    expect(ranking.locator(".tier-1 #card-A")).to_be_visible()
