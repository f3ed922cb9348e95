"""A page that was overtaken: what was seen, theirs and mine beside each other, and nothing is lost."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from grading import wake
from grading.grader.shape import Cited
from grading.models import Decision, Role, Verdict
from grading.review import decisions, queue, reviews
from tests.browser.looking import picture
from tests.browser.rooms import enter, lower, make_held, make_room, meanwhile, open_group
from tests.factories import make_user
from tests.verdicts import add_verdict, line_of

SIDE_BY_SIDE = "?left=A&right=B"


@pytest.fixture
def room():
    user, run = make_room()
    return user, run, make_held(run)


def test_two_people_see_both_versions_and_the_second_saves_on_top(new_context, page, server, room, watch):
    watch.expected_statuses = {409}
    rita, run, group = room
    enter(page, server, rita)
    open_group(page, server, group, SIDE_BY_SIDE)
    lower(page, "minimality", "2", "it rewrites more than the task asks")
    context = new_context()
    watch.over(context)
    other = context.new_page()
    enter(other, server, make_user(username="otto", role=Role.REVIEWER, team=run.team))
    open_group(other, server, group, SIDE_BY_SIDE)
    lower(other, "approach", "4", "a plainer way was there")
    other.get_by_role("button", name="Save correction").click()
    expect(other.get_by_text("Your correction is saved")).to_be_visible()

    page.get_by_role("button", name="Save correction").click()
    expect(page.get_by_text("otto saved first")).to_be_visible()
    table = page.locator(".version-table")
    expect(table.locator("thead")).to_contain_text("otto")
    cells = table.locator("tr", has_text="A approach").locator("td")
    expect(cells).to_have_text(["5", "4", "4"])  # seen, theirs, mine on top of theirs
    expect(table.locator("tr", has_text="A minimality").locator("td")).to_have_text(["5", "5", "2"])
    expect(table).to_contain_text("a plainer way was there")
    picture(page, "group-conflict")
    page.set_viewport_size({"width": 1640, "height": 1000})
    page.keyboard.press("d")  # the diffs come back, the fields stay
    expect(page.locator("#workbench tr.is-add").first).to_be_visible()
    expect(page.get_by_label("A minimality")).to_have_value("2")
    page.get_by_role("button", name="Save correction").click()
    expect(page.get_by_text("Your correction is saved")).to_be_visible()
    scores = decisions.newest_verdict(group).candidates.get(trajectory__letter="A").scores
    assert (scores["approach"], scores["minimality"]) == (4, 2)
    assert Verdict.objects.filter(group=group).count() == 3


def test_an_approval_of_what_is_no_longer_the_newest_shows_what_came(page, server, room, watch):
    watch.expected_statuses = {409}
    rita, _, group = room
    enter(page, server, rita)
    open_group(page, server, group, SIDE_BY_SIDE)
    add_verdict(group, {"A": 4, "B": 3, "C": 5})
    page.get_by_role("button", name="Approve verdict").click()
    expect(page.get_by_text("nothing was approved")).to_be_visible()
    expect(page.locator(".version-table tr", has_text="A approach").locator("td")).to_have_text(["5", "4"])
    page.get_by_role("button", name="Approve verdict").click()
    expect(page.get_by_text("Approved: version 1")).to_be_visible()


def test_a_claim_that_came_meanwhile_leaves_what_was_typed(page, server, room, watch):
    watch.expected_statuses = {409}
    rita, run, group = room
    enter(page, server, rita)
    open_group(page, server, group, SIDE_BY_SIDE)
    lower(page, "minimality", "2", "it rewrites more than the task asks")
    queue.claim(group, user=make_user(username="otto", role=Role.REVIEWER, team=run.team))
    page.get_by_role("button", name="Save correction").click()
    expect(page.get_by_text("otto holds group")).to_be_visible()
    expect(page.get_by_label("A minimality")).to_have_value("2")
    expect(page.get_by_label("Reason").first).to_have_value("it rewrites more than the task asks")


def test_what_another_person_does_is_told_on_an_open_page_and_swaps_nothing_under_the_hands(page, server, room):
    rita, run, group = room
    otto = make_user(username="otto", role=Role.REVIEWER, team=run.team)
    enter(page, server, rita)
    open_group(page, server, group, SIDE_BY_SIDE)
    lower(page, "minimality", "2", "it rewrites more than the task asks")
    expect(page.locator("[data-live-dot]")).to_be_visible()
    meanwhile(lambda: queue.claim(group, user=otto))
    expect(page.get_by_text("otto holds this group now.")).to_be_visible()
    meanwhile(lambda: queue.release(group, user=otto))
    expect(page.get_by_text("otto holds this group now.")).to_have_count(0)

    def correct():
        a, seen = group.trajectories.get(letter="A"), decisions.newest_verdict(group)
        said = {"scores": {a.external_id: {"approach": 4}}, "flags": {}, "reason": "plainer ways"}
        cited = {a.external_id: [Cited("approach", line_of(a))]}
        made = reviews.correct(group, parent=seen.pk, user=otto, citations=cited, **said)
        wake.pages(run.pk)
        return made

    meanwhile(correct)
    expect(page.get_by_text("There is a newer verdict,")).to_be_visible()
    expect(page.get_by_label("A minimality")).to_have_value("2")
    meanwhile(lambda: reviews.approve(group, seen_verdict=decisions.newest_verdict(group).pk, user=otto))
    expect(page.get_by_text("Decided meanwhile")).to_contain_text("Decided meanwhile")
    expect(page.get_by_label("Reason").first).to_have_value("it rewrites more than the task asks")


def test_a_decision_meanwhile_stops_the_clock_and_dims_the_approval(page, server, room):
    rita, run, group = room
    group.review_by = timezone.now() + timedelta(minutes=20)
    group.save()
    otto = make_user(username="otto", role=Role.REVIEWER, team=run.team)
    enter(page, server, rita)
    open_group(page, server, group, SIDE_BY_SIDE)
    clock = page.locator("#group-head .deadline-clock")
    expect(clock).to_contain_text("then the verdict counts")
    expect(page.locator("[data-approve]")).to_have_attribute("aria-disabled", "false")
    expect(page.locator("[data-live-dot]")).to_be_visible()

    def approve():
        reviews.approve(group, seen_verdict=decisions.newest_verdict(group).pk, user=otto)
        wake.pages(run.pk)

    meanwhile(approve)
    expect(page.get_by_text("Decided meanwhile by otto")).to_be_visible()
    expect(clock).to_have_text("decided meanwhile")
    approval = page.locator("[data-approve]")
    expect(approval).to_have_attribute("aria-disabled", "true")
    expect(approval).to_have_attribute("title", "Somebody decided meanwhile: reload to see what counts")
    page.keyboard.press("a")
    expect(page).to_have_url(f"{server}/groups/{group.pk}/{SIDE_BY_SIDE}")
    assert [decision.by for decision in Decision.objects.all()] == ["otto"]
