"""The same by keyboard alone."""

import re

import pytest
from playwright.sync_api import expect

from grading.models import Verdict
from grading.review import decisions
from tests.browser.rooms import enter, make_held, make_room, open_group
from tests.verdicts import add_verdict

FOCUSED = re.compile("is-focused")
CARD_ORDER = "() => [...document.querySelectorAll('.tier-1 .candidate-card')].map((card) => card.dataset.letter)"


@pytest.fixture
def room():
    user, run = make_room()
    return user, make_held(run)


@pytest.fixture
def reviewing(page, server, room):
    enter(page, server, room[0])
    open_group(page, server, room[1], "?left=A&right=B")
    return page


def first_card(page):
    """The first of tier 1, focused by j."""
    page.keyboard.press("j")
    card = page.locator(".tier-1 .candidate-card").first
    expect(card).to_have_class(FOCUSED)
    return card


def test_j_and_k_walk_and_enter_shows(reviewing):
    cards = reviewing.locator(".candidate-card")
    for place, key in enumerate("jjj"):
        reviewing.keyboard.press(key)
        expect(cards.nth(place)).to_have_class(FOCUSED)
    reviewing.keyboard.press("k")
    expect(cards.nth(1)).to_have_class(FOCUSED)
    letter = cards.nth(1).get_attribute("data-letter")
    reviewing.keyboard.press("Enter")
    expect(reviewing.locator("#workbench")).to_have_attribute("data-right", letter)
    reviewing.keyboard.press("}")
    expect(reviewing.locator("#workbench")).not_to_have_attribute("data-right", letter)


def test_tied_candidates_are_split_moved_and_tied_again(reviewing):
    order = reviewing.evaluate(CARD_ORDER)
    first = reviewing.locator(f"#card-{order[0]}")
    expect(first).to_have_class(re.compile("is-tied"))
    first_card(reviewing)
    reviewing.keyboard.press("/")
    expect(first).not_to_have_class(re.compile("is-tied"))
    expect(reviewing.locator(f"#card-{order[0]}")).to_have_class(FOCUSED)
    expect(reviewing.locator("[data-edit-list]")).to_contain_text("place")
    expect(reviewing.locator(".ranking-head")).to_contain_text("your draft, not saved")
    moved = reviewing.evaluate(CARD_ORDER)
    assert moved == order[::-1]
    reviewing.keyboard.press("Shift+ArrowUp")
    expect(reviewing.locator(".tier-1 .candidate-card").first).to_have_attribute("data-letter", order[0])
    reviewing.keyboard.press("Shift+ArrowDown")
    expect(reviewing.locator(".tier-1 .candidate-card").first).to_have_attribute("data-letter", order[1])
    reviewing.keyboard.press("=")
    expect(reviewing.locator(f"#card-{order[0]}")).to_have_class(re.compile("is-tied"))
    assert Verdict.objects.count() == 1


def test_a_digit_scores_u_undoes_o_saves_and_a_approves(reviewing, room):
    card = first_card(reviewing)
    letter = card.get_attribute("data-letter")
    approach = reviewing.locator(f"#score-{letter}-approach")
    reviewing.keyboard.press("4")
    expect(approach).to_have_value("4")
    reviewing.keyboard.press("u")
    expect(approach).to_have_value("5")
    reviewing.keyboard.press("2")
    expect(approach).to_have_value("2")
    expect(reviewing.locator("section:not(.tier-1) > ol > li .candidate-letter", has_text=letter)).to_be_visible()
    reviewing.get_by_label("Reason").first.fill("another way than the task's")
    cited = reviewing.locator("[data-cite-row]").first
    cited.get_by_label("candidate").select_option(letter)
    cited.get_by_label("what it shows").select_option("approach")
    cited.get_by_label("place", exact=True).fill("app.py:2")
    cited.get_by_label("place", exact=True).blur()
    reviewing.keyboard.press("o")
    expect(reviewing.get_by_text("Your correction is saved")).to_be_visible()
    assert decisions.newest_verdict(room[1]).candidates.get(trajectory__letter=letter).scores["approach"] == 2
    reviewing.keyboard.press("a")
    expect(reviewing.get_by_text("Approved: version 1")).to_be_visible()


def test_a_redraw_between_two_keys_leaves_the_caret_and_what_is_open(reviewing):
    """The answer of a draft arrives while a number is typed: the next key goes on where the last one stood."""
    held = []

    def hold(route):
        held.append(route)

    reviewing.route("**/draft", hold)
    letter = first_card(reviewing).get_attribute("data-letter")
    score = reviewing.locator(f"#score-{letter}-approach")
    score.focus()
    with reviewing.expect_request("**/draft"):
        reviewing.keyboard.type("4")
    reviewing.keyboard.type(".")
    with reviewing.expect_response("**/draft"):
        held[0].continue_()
    expect(reviewing.locator(".ranking-head")).to_contain_text("your draft, not saved")
    reviewing.unroute("**/draft")
    reviewing.keyboard.type("5")
    expect(score).to_have_value("4.5")
    reviewing.keyboard.press("Backspace")
    reviewing.keyboard.press("Backspace")
    reviewing.locator(f"#edit-{letter}-open").focus()
    reviewing.keyboard.press("Enter")
    flag = reviewing.locator(f"#edit-{letter} input[type=checkbox]").first
    flag.focus()
    with reviewing.expect_response("**/draft"):
        reviewing.keyboard.press("Space")
    expect(reviewing.locator(f"#edit-{letter}")).to_have_attribute("open", "")
    expect(flag).to_be_focused()


AT_ONCE = """() => new MutationObserver((_, drawn) => {
  drawn.disconnect();
  document.querySelector("#workbench [data-key=t]").click();
}).observe(document.body, { childList: true })"""


def test_a_key_pressed_the_moment_a_part_is_drawn_reloads_nothing(reviewing):
    """A link that is drawn and not yet taken over by htmx would leave the page, and the next key be lost."""
    left = []
    reviewing.on("request", lambda request: request.is_navigation_request() and left.append(request.url))
    reviewing.evaluate(AT_ONCE)
    reviewing.keyboard.press("p")
    expect(reviewing.locator(".event-line").first).to_be_visible()
    assert left == []


def test_dialogs_open_by_key_and_close_by_escape(reviewing):
    for key, dialog in (("x", "#leak"), ("b", "#broken"), ("F", "#fall-back"), ("?", "#keys")):
        reviewing.keyboard.press(key)
        expect(reviewing.locator(dialog)).to_be_visible()
        reviewing.keyboard.press("Escape")
        expect(reviewing.locator(dialog)).to_be_hidden()


@pytest.mark.parametrize(("key", "overlay"), [("x", "leak"), ("b", "broken"), ("F", "fall-back")])
def test_keys_rest_behind_what_lies_over_the_page_wherever_the_focus_is(reviewing, key, overlay):
    asked = []
    reviewing.on("request", lambda request: request.method == "POST" and asked.append(request.url))
    reviewing.keyboard.press(key)
    reviewing.locator(f"#{overlay}-title").click()
    expect(reviewing.locator(f"#{overlay}-title")).to_be_visible()
    assert reviewing.evaluate("() => document.activeElement.matches('body')")
    for other in ("a", "j", "5", "t", "x"):
        reviewing.keyboard.press(other)
    expect(reviewing.locator(f"#{overlay}")).to_be_visible()
    expect(reviewing.locator(".candidate-card.is-focused, .score.is-edited")).to_have_count(0)
    reviewing.keyboard.press("Escape")
    expect(reviewing.locator(f"#{overlay}")).to_be_hidden()
    reviewing.keyboard.press("t")
    expect(reviewing.locator(".event-line").first).to_be_visible()
    assert asked == []


def test_keys_rest_while_a_reason_is_typed(reviewing):
    reason = reviewing.get_by_label("Reason").first
    reason.click()
    reviewing.keyboard.type("a box? just 5")
    expect(reason).to_have_value("a box? just 5")
    expect(reviewing.locator("#keys")).to_be_hidden()
    assert Verdict.objects.count() == 1


def test_the_queue_is_walked_claimed_and_opened_by_key(page, server, room):
    user, group = room
    other = make_held(group.run, task="later")
    add_verdict(other, {"A": 5, "B": 1, "C": 5})
    enter(page, server, user)
    page.goto(f"{server}/queue/")
    rows = page.locator("#queue-rows tbody tr")
    expect(rows).to_have_count(2)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(rows.nth(1)).to_have_class(FOCUSED)
    page.keyboard.press("Enter")
    expect(page.locator("#advantage-panel .sum-check")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(rows).to_have_count(2)
    page.keyboard.press("j")
    page.keyboard.press("c")
    expect(page.get_by_text("claimed by you")).to_be_visible()
    page.keyboard.press("r")
    expect(page.get_by_text("Released")).to_be_visible()
