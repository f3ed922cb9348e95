"""The queue with several people at it: notices, seats, the way back to what is finished, figures of reviewers."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from grading import wake
from grading.models import Role
from grading.review import blind, decisions, notices, queue, reviews
from tests.browser.looking import picture
from tests.browser.rooms import enter, make_held, make_room, meanwhile
from tests.factories import make_user

STUB = """
window.toldNotices = [];
window.Notification = class extends EventTarget {
  constructor(title, options) { super(); window.toldNotices.push([title, options.tag]); }
  static permission = "default";
  static async requestPermission() { return (Notification.permission = "granted"); }
};"""


@pytest.fixture
def room():
    user, run = make_room(reviews_wanted=2, blind_share=0.25)
    return user, run, make_held(run)


def come_near(group) -> None:
    now = timezone.now()
    group.graded_at, group.review_by = now - timedelta(hours=1), now + timedelta(seconds=200)
    group.save()
    wake.pages(group.run_id)


def test_a_group_near_its_deadline_is_told_live_on_the_page_and_by_the_browser_once(page, server, room):
    user, _, group = room
    page.add_init_script(STUB)
    enter(page, server, user)
    page.goto(f"{server}/queue/")
    page.get_by_role("button", name="Notify me").click()
    expect(page.get_by_role("button", name="Notices are on")).to_be_visible()
    expect(page.locator("[data-live-dot]")).to_be_visible()
    meanwhile(lambda: come_near(group))
    expect(page.locator("#near-deadlines")).to_contain_text("1 group near its deadline")
    page.wait_for_function("() => window.toldNotices.length === 1")
    meanwhile(notices.send_due)
    expect(page.locator("#near-deadlines")).to_be_visible()
    assert page.evaluate("() => window.toldNotices") == [["answers: about 3 min left", f"group-{group.pk}"]]


def test_the_number_at_the_queue_in_the_head_follows_on_any_page(page, server, room):
    user, run, group = room
    enter(page, server, user)
    page.goto(f"{server}/runs/{run.public_id}/")
    expect(page.locator("#queue-count")).to_have_text("1")
    expect(page.locator("[data-live-dot]")).to_be_visible()
    meanwhile(lambda: make_held(run, task="another"))
    meanwhile(lambda: wake.pages(run.pk))
    expect(page.locator("#queue-count")).to_have_text("2")
    meanwhile(lambda: decisions.fall_back(group, user=user, reason="seen"))
    expect(page.locator("#queue-count")).to_have_text("1")


def test_a_group_near_its_deadline_is_said_on_every_page_but_its_own(page, server, room):
    user, run, group = room
    come_near(group)
    enter(page, server, user)
    for path in ("/groups/", f"/runs/{run.public_id}/", "/tasks/"):
        page.goto(server + path)
        expect(page.locator("#near-deadlines")).to_contain_text("1 group near its deadline: answers, step")
    page.locator("#near-deadlines").get_by_role("link", name="answers").click()
    expect(page).to_have_url(f"{server}/groups/{group.pk}/")
    expect(page.locator("#advantage-panel .sum-check")).to_be_visible()
    expect(page.locator("#near-deadlines")).to_have_count(0)


def test_seats_answers_and_finished_reviews_are_seen(page, server, room):
    user, run, group = room
    shared = make_held(run, task="shared", reviews_wanted=2)
    hidden = make_held(run, task="hidden", is_blind=True, hold_reason="policy manual")
    otto = make_user(username="otto", role=Role.REVIEWER, team=run.team)
    come_near(group)

    def work():
        queue.claim(shared, user=otto)
        seen = decisions.newest_verdict(shared).pk
        reviews.submit(shared, parent=seen, user=user, reason="", scores={}, flags={}, is_right=True, attention_s=90)
        done = make_held(run, task="done", is_blind=True)
        ids = dict(done.trajectories.values_list("letter", "external_id"))
        blind.give_order(done, user=user, order=[[ids["A"]], [ids["B"], ids["C"]]])
        reviews.approve(done, seen_verdict=decisions.newest_verdict(done).pk, user=user, attention_s=150)

    meanwhile(work)
    enter(page, server, user)
    page.goto(f"{server}/queue/")
    expect(page.locator(f"#group-{shared.pk}")).to_contain_text("1 of 2 reviews, yours is in")
    expect(page.locator(f"#group-{shared.pk}").get_by_title("otto has one of its reviews")).to_be_visible()
    expect(page.locator(f"#group-{hidden.pk}")).to_contain_text("blind first")
    picture(page, "queue-reviews")
    page.get_by_role("link", name="My finished reviews").click()
    expect(page.get_by_role("heading", name="My finished reviews")).to_be_visible()
    expect(page.locator("tbody tr", has_text="shared")).to_contain_text("found it right")
    expect(page.locator("tbody tr", has_text="done")).to_contain_text("after a blind order")
    picture(page, "reviewer")
    page.goto(f"{server}/runs/{run.public_id}/reviews")
    expect(page.get_by_role("heading", name="Anchoring")).to_be_visible()
    expect(page.locator("tr", has_text="before the verdict was shown")).to_contain_text("1")
    picture(page, "run-reviews")


def test_a_comment_is_written_and_is_there_for_the_next_reader(page, server, room):
    user, run, group = room
    enter(page, server, user)
    page.goto(f"{server}/groups/{group.pk}/")
    page.locator("#comments summary").click()
    page.get_by_label("Comment", exact=True).last.fill("B rewrites the parser, see its second file")
    page.get_by_role("button", name="Comment").click()
    expect(page.locator("#comments")).to_contain_text("B rewrites the parser, see its second file")
    enter(page, server, make_user(username="vera", role=Role.VIEWER, team=run.team))
    page.goto(f"{server}/groups/{group.pk}/")
    expect(page.locator("#comments li")).to_contain_text("rita")
