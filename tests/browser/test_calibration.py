"""From ten corrections by keys to a what-if, to a published version, to a group that the run grades under it."""

from django.db import transaction
from django.test import Client
from django.utils import timezone
from playwright.sync_api import expect

from grading.grader import job
from grading.ingest import completing
from grading.models import Role, RolloutGroup, Run, Verdict
from tests.browser.hands import correct_one, open_the_queue
from tests.browser.looking import picture
from tests.browser.rooms import EVENTS, make_held, make_room, meanwhile, open_group, small_patch, wide_patch
from tests.factories import make_group

CORRECTIONS = 10


def test_ten_corrections_by_keys_become_a_version_that_a_run_grades_by(page, server, watch):
    user, run = make_room(role=Role.ADMIN, grader="static")
    for n in range(CORRECTIONS):
        make_held(run, task=f"answers-{n}", scores={"A": 5 - n % 2, "B": 4, "C": 5}, graded_at=timezone.now())
    meanwhile(lambda: warm(user, run))
    hands = open_the_queue(page, server, user)
    for n in range(CORRECTIONS):
        seen = hands.arrive()
        correct_one(hands)
        hands.press("a")
        hands.see(".alerts", "Approved: version 1")
        hands.press("n")
        if n + 1 < CORRECTIONS:
            page.wait_for_function(f"() => !location.pathname.includes('/groups/{seen}/')")
    hands.see("#queue-rows", "The queue is empty")
    assert Verdict.objects.filter(author=user).count() == CORRECTIONS
    page.get_by_role("link", name="Calibration").click()
    publish_by_hand(page)
    page.get_by_role("button", name=f"v2 for {run.name}").click()
    expect(page.get_by_text("for groups that become complete from now on")).to_be_visible()
    page.goto(f"{server}/calibration/fit/?run={run.public_id}")
    expect(page.get_by_text("Nothing is fitted yet")).to_be_visible()
    picture(page, "calibration-fit")
    next_groups = []
    meanwhile(lambda: next_groups.append(graded_next(run)))
    open_group(page, server, next_groups[0])
    expect(page.locator(".task-head")).to_contain_text("v2")


def publish_by_hand(page) -> None:
    """Other numbers typed, looked at, published."""
    expect(page.get_by_role("row", name="f min constant")).to_be_visible()
    picture(page, "calibration-knobs")
    page.get_by_role("textbox", name="f max", exact=True).fill("0.80")
    page.get_by_label("new weight of approach").fill("0.20")
    page.get_by_label("new weight of minimality").fill("0.30")
    page.get_by_role("button", name="What if").click()
    expect(page.get_by_role("heading", name="What training would get")).to_be_visible()
    expect(page.get_by_role("cell", name="|advantage| that moves")).to_be_visible()
    picture(page, "calibration-what-if")
    page.locator("#publish").get_by_label("Reason").fill("ten corrections: wide patches")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("v2 is published and frozen")).to_be_visible()
    picture(page, "calibration-versions")


def warm(user, run: Run) -> None:
    """What pages import is not in the time of a page."""
    client = Client()
    client.force_login(user)
    for address in ("/queue/", f"/calibration/?run={run.public_id}"):
        assert client.get(address).status_code == 200


def graded_next(run: Run) -> RolloutGroup:
    """The job's next group is in, and graded as a worker does it."""
    patches = [small_patch(), wide_patch(), small_patch("43")]
    group = make_group(run=Run.objects.get(pk=run.pk), outcomes="PPF", patches=patches, events=EVENTS)
    with transaction.atomic():
        completing.complete(completing.locked(group), by="job", reason="all rollouts are in")
    job.drain()
    group.refresh_from_db()
    assert group.state == "graded" and group.verdicts.get().rubric.number == 2
    return group
