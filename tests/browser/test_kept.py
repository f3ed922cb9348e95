"""What was typed outlives a sign-out, a restart, sleep and a second tab; what happened meanwhile arrives by itself."""

import re
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone
from playwright.sync_api import expect

from grading import wake
from grading.models import Decision, ReviewClaim, Role, Verdict
from grading.review import decisions, queue, reviews
from tests.browser.rooms import REASON, enter, lower, make_held, make_room, meanwhile, open_group
from tests.factories import PASSWORD, make_user

SIDE_BY_SIDE = "?left=A&right=B"


@pytest.fixture
def room():
    user, run = make_room()
    return user, run, make_held(run)


@pytest.fixture
def typing(page, server, room):
    """A correction that is typed and not saved."""
    enter(page, server, room[0])
    open_group(page, server, room[2], SIDE_BY_SIDE)
    type_a_correction(page)
    return page


def type_a_correction(page, letter: str = "A") -> None:
    lower(page, letter=letter)
    expect(page.locator(".ranking-head")).to_contain_text("your draft, not saved")


def assert_it_is_all_there(page, letter: str = "A") -> None:
    expect(page.get_by_label(f"{letter} minimality")).to_have_value("2")
    expect(page.get_by_label("Reason").first).to_have_value(REASON)
    expect(page.locator("[data-cite-row]").first.get_by_label("place", exact=True)).to_have_value("app.py:2")


def test_edits_are_back_after_a_sign_out_in_another_tab_and_then_save(typing, server, room, watch):
    watch.expected_statuses = {401}
    meanwhile(Session.objects.all().delete)
    typing.get_by_label("A approach").fill("4")
    expect(typing.locator("#request-failed")).to_be_visible()
    expect(typing.locator("#request-failed")).to_contain_text("You are signed out. Nothing was saved")
    assert_it_is_all_there(typing)
    typing.get_by_role("button", name="Save correction").click()
    expect(typing.get_by_label("Name")).to_be_visible()
    typing.get_by_label("Name").fill(room[0].username)
    typing.get_by_label("Password").fill(PASSWORD)
    typing.get_by_role("button", name="Sign in").click()
    expect(typing.locator("#kept-banner")).to_be_visible()
    expect(typing.get_by_label("A approach")).to_have_value("4")
    assert_it_is_all_there(typing)
    expect(typing.locator("#advantage-panel")).to_contain_text("with your draft")
    # A part of the page that arrives while the form is on its way keeps nothing that was sent.
    typing.evaluate("() => addEventListener('submit', () => setTimeout(() => gagarReview.refresh()))")
    typing.get_by_role("button", name="Save correction").click()
    expect(typing.get_by_text("Your correction is saved")).to_be_visible()
    expect(typing.locator("#kept-banner")).to_be_hidden()
    typing.reload()
    expect(typing.locator("#kept-banner")).to_be_hidden()


def test_an_approval_of_somebody_signed_out_leads_back_to_the_group(page, server, room, watch):
    watch.expected_statuses = {401}  # parts of the page that still load when the session ends
    user, _, group = room
    enter(page, server, user)
    open_group(page, server, group, SIDE_BY_SIDE)
    meanwhile(Session.objects.all().delete)
    page.get_by_role("button", name="Approve verdict").click()
    page.get_by_label("Name").fill(user.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{server}/groups/{group.pk}/{SIDE_BY_SIDE}")
    assert not Decision.objects.exists()


def test_what_is_dropped_stays_away_and_is_nobody_elses(typing, server, room):
    typing.reload()
    expect(typing.locator("#kept-banner")).to_be_visible()
    assert_it_is_all_there(typing)
    typing.keyboard.press("u")  # each of them can be undone
    enter(typing, server, make_user(username="otto", role=Role.REVIEWER, team=room[1].team))
    typing.reload()
    expect(typing.locator("#advantage-panel .sum-check")).to_be_visible()
    expect(typing.locator("#kept-banner")).to_be_hidden()
    enter(typing, server, room[0])
    typing.reload()
    typing.get_by_role("link", name="Drop them").click()
    expect(typing.locator("#kept-banner")).to_be_hidden()
    expect(typing.get_by_label("A minimality")).to_have_value("5")
    typing.reload()
    expect(typing.locator("#kept-banner")).to_be_hidden()


def test_after_sleep_the_page_catches_up_by_itself(typing, context, room):
    _, run, group = room
    expect(typing.locator("[data-live-dot]")).to_have_text("live")
    context.set_offline(True)
    expect(typing.locator("#live-banner")).to_be_visible()
    otto = make_user(username="otto", role=Role.REVIEWER, team=run.team)

    def work():
        queue.claim(group, user=otto)
        reviews.approve(group, seen_verdict=decisions.newest_verdict(group).pk, user=otto)
        wake.pages(run.pk)

    meanwhile(work)
    expect(typing.get_by_text("Decided meanwhile")).to_have_count(0)
    context.set_offline(False)
    expect(typing.get_by_text("Decided meanwhile")).to_be_visible()
    expect(typing.locator("#live-banner")).to_be_hidden()
    assert_it_is_all_there(typing)


def test_a_machine_that_slept_opens_its_socket_anew(page, server, room, watch):
    watch.expected_texts = ("closed before the connection is established",)  # by the next of many ticks at once
    page.clock.install()
    opened = []
    page.on("websocket", lambda socket: opened.append(socket.url))
    enter(page, server, room[0])
    page.goto(f"{server}/groups/{room[2].pk}/{SIDE_BY_SIDE}")
    page.clock.run_for(2_000)
    expect(page.locator("[data-live-dot]")).to_have_text("live")
    assert len(opened) == 1
    with page.expect_response(re.compile("/news")):
        page.clock.fast_forward(60_000)  # no tick was made meanwhile
        page.clock.run_for(2_000)
    assert len(opened) == 2


def test_a_draft_that_got_no_answer_is_asked_for_again_at_the_next_sign_of_life(typing, room, watch):
    watch.expected_texts = ("net::ERR_FAILED",)
    typing.route("**/draft", lambda route: route.abort())
    typing.get_by_label("A approach").fill("4")
    expect(typing.locator("#request-failed")).to_be_visible()
    expect(typing.locator("#request-failed")).to_contain_text("The server did not answer")
    typing.unroute("**/draft")
    with typing.expect_response("**/draft"):
        meanwhile(lambda: wake.pages(room[1].pk))
    expect(typing.locator("[data-edit-list] li")).to_have_count(2)
    assert_it_is_all_there(typing)


def test_a_claim_that_expires_while_one_types_costs_nothing(typing, room):
    group = room[2]

    def expire():
        queue.claim(group, user=room[0])
        assert ReviewClaim.objects.filter(group=group).update(until=timezone.now() - timedelta(minutes=1))

    meanwhile(expire)
    typing.get_by_role("button", name="Save correction").click()
    expect(typing.get_by_text("Your correction is saved")).to_be_visible()
    assert Verdict.objects.filter(group=group).count() == 2


def test_two_clicks_approve_once(page, server, room):
    enter(page, server, room[0])
    open_group(page, server, room[2], SIDE_BY_SIDE)
    page.evaluate("() => { for (const n of [1, 2, 3]) document.querySelector('[data-approve]').click(); }")
    expect(page.get_by_text("Approved: version 1")).to_be_visible()
    assert Decision.objects.count() == 1


def test_of_an_approval_and_a_fall_back_in_two_tabs_the_second_is_told(page, context, server, room):
    user, _, group = room
    enter(page, server, user)
    open_group(page, server, group, SIDE_BY_SIDE)
    other = context.new_page()
    open_group(other, server, group, SIDE_BY_SIDE)
    other.get_by_role("button", name="Approve verdict").click()
    expect(other.get_by_text("Approved: version 1")).to_be_visible()
    expect(page.get_by_text("Decided meanwhile")).to_be_visible()
    other.go_back()
    expect(other.get_by_text(re.compile("Decided by rita|Decided meanwhile")).first).to_be_visible()
    assert Decision.objects.count() == 1


def test_an_approval_and_a_fall_back_of_stale_tabs_change_nothing(page, context, server, room, watch):
    watch.expected_statuses = {409}
    user, _, group = room
    enter(page, server, user)
    late = [context.new_page() for _ in range(2)]
    for tab in late:
        tab.route_web_socket(re.compile("/ws/"), lambda socket: None)  # no hint reaches them
    for tab in (page, *late):
        open_group(tab, server, group, SIDE_BY_SIDE)
    page.keyboard.press("F")
    page.locator("#fall-back-reason").fill("the statement says nothing")
    page.locator("#fall-back").get_by_role("button", name="Fall back").click()
    expect(page.get_by_text("No verdict counts")).to_be_visible()
    late[0].get_by_role("button", name="Approve verdict").click()
    late[1].keyboard.press("F")
    late[1].locator("#fall-back-reason").fill("so do I think")
    late[1].locator("#fall-back").get_by_role("button", name="Fall back").click()
    for tab in late:
        expect(tab.get_by_text("was decided meanwhile, by rita")).to_be_visible()
        tab.get_by_role("link", name="Back to where you were").click()
        expect(tab).to_have_url(f"{server}/groups/{group.pk}/{SIDE_BY_SIDE}")
    assert [decision.kind for decision in Decision.objects.all()] == ["fallback"]
