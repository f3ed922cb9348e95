"""An order before the verdict: by keys, with the mouse, with a finger, and without scripts."""

import pytest
from playwright.sync_api import expect

from grading.models import Review
from tests.browser.looking import picture
from tests.browser.rooms import enter, make_held, make_room

ORDER = "() => [...document.querySelectorAll('[data-placed] .candidate-card')].map((card) => card.dataset.letter)"
PLACES = (
    "() => Object.fromEntries([...document.querySelectorAll('input.place')].map((f) => [f.name.slice(6), f.value]))"
)


@pytest.fixture
def room():
    user, run = make_room()
    return user, make_held(run, is_blind=True)


@pytest.fixture
def ranking(page, server, room):
    enter(page, server, room[0])
    page.goto(f"{server}/groups/{room[1].pk}/?left=A&right=B")
    expect(page.locator("[data-placed-words]")).to_have_text("0 of 3 placed")
    return page


def card(page, letter: str):
    return page.locator(f"#card-{letter}")


def drag(page, letter: str, to: str, part: float) -> None:
    handle = card(page, letter).locator("[data-drag]").bounding_box()
    box = page.locator(to).bounding_box()
    page.mouse.move(handle["x"] + 5, handle["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 40, box["y"] + box["height"] * part, steps=4)
    page.mouse.up()


def test_an_order_is_given_with_keys_and_then_the_verdict_is_shown(ranking, room):
    submit = ranking.locator("[data-submit-order]")
    expect(submit).to_have_attribute("aria-disabled", "true")
    for letter in "BAC":  # whatever is placed goes behind the last
        card(ranking, letter).locator(".scores-text").click()
        ranking.keyboard.press("Shift+ArrowUp")
    assert ranking.evaluate(ORDER) == ["B", "A", "C"]
    ranking.keyboard.press("Shift+ArrowUp")
    assert ranking.evaluate(ORDER) == ["B", "C", "A"]
    ranking.keyboard.press("=")
    assert ranking.evaluate(PLACES) == {"A": "2", "B": "1", "C": "1"}
    ranking.keyboard.press("/")
    ranking.keyboard.press("u")
    assert ranking.evaluate(PLACES) == {"A": "2", "B": "1", "C": "1"}
    picture(ranking, "group-blind")
    expect(ranking.locator(".evidence-item, .candidate-factor, .sum-check")).to_have_count(0)
    ranking.keyboard.press("o")
    expect(ranking.get_by_text("Your order is stored as it is")).to_be_visible()
    expect(ranking.locator("#advantage-panel .sum-check")).to_be_visible()
    expect(ranking.locator("#score-A-approach")).to_have_value("5")
    ids = dict(room[1].trajectories.values_list("letter", "external_id"))
    assert [sorted(tied) for tied in Review.objects.get().blind["order"]] == [sorted([ids["B"], ids["C"]]), [ids["A"]]]


def test_cards_are_dragged_before_behind_and_onto_each_other(ranking):
    drag(ranking, "B", "[data-none-placed]", 0.5)
    assert ranking.evaluate(ORDER) == ["B"]
    drag(ranking, "A", "#card-B", 0.1)
    assert ranking.evaluate(ORDER) == ["A", "B"]
    drag(ranking, "C", "#card-B", 0.5)
    assert ranking.evaluate(PLACES) == {"A": "1", "B": "2", "C": "2"}
    drag(ranking, "A", "#card-C", 0.95)
    assert ranking.evaluate(PLACES)["A"] == "2"
    ranking.get_by_role("button", name="Undo").click()
    assert ranking.evaluate(PLACES) == {"A": "1", "B": "2", "C": "2"}


def test_a_finger_places_and_moves_by_the_cards_buttons(new_context, server, room, watch):
    context = new_context(has_touch=True)
    watch.over(context)
    page = context.new_page()
    enter(page, server, room[0])
    page.goto(f"{server}/groups/{room[1].pk}/")
    for letter in "ABC":
        one = card(page, letter)
        one.locator("summary").tap()
        one.get_by_role("button", name="Up").tap()
        one.locator("summary").tap()
    assert page.evaluate(ORDER) == ["A", "B", "C"]
    card(page, "C").locator("summary").tap()
    card(page, "C").get_by_role("button", name="Tie with above").tap()
    assert page.evaluate(PLACES) == {"A": "1", "B": "2", "C": "2"}


def test_places_are_typed_and_posted_without_scripts(new_context, server, room, watch):
    context = new_context(java_script_enabled=False)
    watch.over(context)
    watch.expected_statuses = {400}
    page = context.new_page()
    enter(page, server, room[0])
    page.goto(f"{server}/groups/{room[1].pk}/")
    page.get_by_label("place of A").fill("1")
    page.get_by_label("place of B").fill("1")
    page.get_by_role("button", name="Submit my order").click()
    expect(page.get_by_text("Not placed yet: C")).to_be_visible()
    expect(page.get_by_label("place of A")).to_have_value("1")
    page.get_by_label("place of C").fill("2")
    page.get_by_role("button", name="Submit my order").click()
    expect(page.get_by_text("Your order is stored as it is")).to_be_visible()
    assert len(Review.objects.get().blind["order"]) == 2


def test_the_socket_and_what_the_page_fetches_hold_no_verdict(page, server, room):
    user, group = room
    heard, said = [], []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: heard.append(str(frame))))
    enter(page, server, user)
    page.goto(f"{server}/queue/")
    expect(page.locator(f"#group-{group.pk}")).to_contain_text("blind first")
    page.goto(f"{server}/groups/{group.pk}/?left=A&right=B")
    expect(page.locator("[data-placed-words]")).to_be_visible()
    for key in "tshd":
        page.keyboard.press(key)
        expect(page.locator("#workbench")).to_be_visible()
        said.append(page.content())
    assert said and not any("evidence-item" in text or "score-A-" in text for text in said)
    assert all("verdict" not in frame and "T1" not in frame for frame in heard)
