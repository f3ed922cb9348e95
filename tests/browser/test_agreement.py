"""From a run's figures to the groups behind them: agreement, fleet, drift with its first anchors and round, bias."""

import random

import pytest
from django.test import Client
from playwright.sync_api import expect

from grading.grader import job
from grading.models import Anchor, Grading, Role
from grading.review.decisions import DRAWN
from tests.browser.looking import picture
from tests.browser.rooms import enter, make_room, meanwhile
from tests.factories import make_user
from tests.grading.calibration.said import answered, blind, shown

GROUPS = 24


@pytest.fixture
def room(server):
    rita, run = make_room(role=Role.ADMIN, grader="static")
    people = [make_user(username=name, role=Role.REVIEWER, team=run.team) for name in ("otto", "tina")]
    chance = random.Random(5)
    for n in range(GROUPS):
        scores = {letter: chance.choice((2, 3, 4, 4, 5)) for letter in "ABCD"}
        drawn = {"hold_probability": 0.4, "hold_reason": f"{DRAWN} 0.4"} if n % 2 else {"hold_probability": 0.3}
        group = answered(run, scores, reviews_wanted=2, blind_probability=1.0, is_blind=n % 4 == 1, step=n, **drawn)
        if n % 2 == 0:
            continue
        for person in people:
            felt = {letter: min(5, max(1, score + chance.choice((-1, 0, 0, 1)))) for letter, score in scores.items()}
            order = sorted(felt, key=lambda letter: (-felt[letter], letter))
            if n % 4 == 1:
                blind(group, *order, user=person)
            else:
                tiers = {"T1": [a for a in order if felt[a] >= 4], "T2": [a for a in order if felt[a] == 3]}
                shown(group, felt, tiers | {"T3": [a for a in order if felt[a] < 3]}, user=person)
        fields = {"model": "openai:gpt-x", "order": list("ABCD"), "state": "valid", "flips": 0.25 if n % 3 else 0.0}
        Grading.objects.create(group=group, verdict=group.verdicts.get(), grader="agentic", **fields)
    meanwhile(lambda: warm(rita, run))
    return rita, run


def warm(user, run) -> None:
    """What pages import is not in the time of a page."""
    client = Client()
    client.force_login(user)
    for name in ("agreement", "fleet", "drift", "bias"):
        assert client.get(f"/calibration/{name}?run={run.public_id}").status_code == 200


def test_figures_lead_to_their_groups_and_a_first_round_of_anchors_is_graded(page, server, room):
    rita, run = room
    enter(page, server, rita)
    page.goto(f"{server}/calibration/agreement?run={run.public_id}")
    expect(page.get_by_role("heading", name="Agreement", exact=True)).to_be_visible()
    expect(page.get_by_role("img", name="Agreement with intervals")).to_be_visible()
    picture(page, "calibration-agreement")
    page.locator(".estimates a.link").first.click()
    expect(page.locator("#groups")).to_contain_text("the lowest")
    page.get_by_role("link", name="Fleet").click()
    expect(page.get_by_text("the figure to report").first).to_be_visible()
    picture(page, "calibration-fleet")
    page.get_by_role("link", name="Drift").click()
    page.get_by_label("draw").fill("6")
    page.get_by_role("button", name="Draw anchors").click()
    expect(page.get_by_text("6 anchors drawn with seed 1.")).to_be_visible()
    assert Anchor.objects.count() == 6
    page.goto(f"{server}/calibration/drift?run={run.public_id}")
    page.get_by_role("button", name="Grade the anchors now").click()
    expect(page.get_by_text("6 anchors are graded again")).to_be_visible()
    meanwhile(job.drain)
    page.reload()
    expect(page.get_by_text("6 of 6")).to_be_visible()
    expect(page.get_by_text("the verdicts the anchors had")).to_be_visible()
    picture(page, "calibration-drift")
    page.get_by_role("link", name="Bias").click()
    expect(page.get_by_text("Most flipped")).to_be_visible()
    picture(page, "calibration-bias")
