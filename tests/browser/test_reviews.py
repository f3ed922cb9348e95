"""Three people at one group: two answer without seeing each other, the third compares and decides."""

import pytest
from playwright.sync_api import expect

from grading.models import Decision, Review, Role
from tests.browser.looking import picture
from tests.browser.rooms import enter, lower, make_held, make_room, open_group
from tests.factories import make_user

SIDE_BY_SIDE = "?left=A&right=B"


@pytest.fixture
def room():
    rita, run = make_room()
    others = [make_user(username=name, role=Role.REVIEWER, team=run.team) for name in ("otto", "tina")]
    return make_held(run, reviews_wanted=2), rita, *others


@pytest.fixture
def sitting_down(new_context, server, room, watch):
    """A page of the group in a browser of this person's own."""

    def sit(user):
        context = new_context()
        watch.over(context)
        page = context.new_page()
        enter(page, server, user)
        open_group(page, server, room[0], SIDE_BY_SIDE)
        return page

    return sit


def test_two_answer_alone_and_a_third_decides_between_them(sitting_down, room):
    group, rita, otto, tina = room
    first = sitting_down(rita)
    expect(first.get_by_text("0 of 2 independent reviews")).to_be_visible()
    expect(first.get_by_role("button", name="Approve")).to_have_count(0)
    lower(first, "minimality", "2", "it rewrites more than the task asks")
    # A picture leaves its mark on fields; what is drawn anew after it would copy that mark, which the policy forbids.
    expect(first.locator(".ranking-head")).to_contain_text("your draft, not saved")
    expect(first.locator("#advantage-panel")).to_contain_text("with your draft")
    picture(first, "group-review")
    first.get_by_role("button", name="Submit review").click()
    expect(first.get_by_text("Your review is in.").first).to_be_visible()

    second = sitting_down(otto)
    expect(second.get_by_text("1 of 2 independent reviews")).to_be_visible()
    assert "it rewrites more" not in second.content() and "rita" not in second.locator("main").inner_text()
    second.keyboard.press("a")  # already right
    expect(second.get_by_text("somebody who gave none decides").first).to_be_visible()
    expect(second.locator("[data-approve]")).to_have_count(0)

    third = sitting_down(tina)
    expect(third.get_by_text("you decide").first).to_be_visible()
    table = third.locator(".version-table")
    expect(table).to_contain_text("it rewrites more than the task asks")
    expect(table.locator("tr", has_text="A minimality")).to_contain_text("2")
    picture(third, "group-adjudication")
    third.get_by_role("button", name="Let this count").first.click()
    expect(third.get_by_text("It counts: version 1")).to_be_visible()
    verdict = Decision.objects.get().verdict
    assert verdict.author == tina and verdict.candidates.get(trajectory__letter="A").scores["minimality"] == 2
    assert {r.reviewer.username for r in Review.objects.filter(state="submitted")} == {"rita", "otto"}


def test_an_untouched_ranking_cannot_be_submitted_by_accident(sitting_down, room):
    page = sitting_down(room[1])
    expect(page.locator("[data-save]")).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("o")
    assert not Review.objects.filter(state="submitted").exists()
    page.get_by_role("button", name="Already right").click()
    expect(page.get_by_text("Your review is in.").first).to_be_visible()
    assert Review.objects.get().answer["is_changed"] is False


def test_who_declines_is_not_offered_the_group_again(sitting_down, server, room):
    page = sitting_down(room[1])
    page.get_by_role("button", name="Decline").click()
    expect(page.get_by_text("the queue does not offer you this group again")).to_be_visible()
    expect(page.locator(f"#group-{room[0].pk}")).to_contain_text("declined")
    page.get_by_role("button", name="Claim the first free").click()
    expect(page.get_by_text("Nothing is free to claim.")).to_be_visible()
