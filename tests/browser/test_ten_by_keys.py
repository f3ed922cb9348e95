"""A fresh reader, without a mouse: ten held groups in a row, then the same where the order is given blind first."""

import re

import pytest
from playwright.sync_api import expect

from grading.models import Decision, Review, Verdict
from tests.browser.hands import Hands, correct_one, open_the_queue
from tests.browser.rooms import make_held, make_room

GROUPS, BLIND_GROUPS = 10, 4


@pytest.fixture
def room():
    return make_room()


def fall_back_one(hands: Hands) -> None:
    hands.press("F")
    expect(hands.page.locator("#fall-back-reason")).to_be_focused()
    hands.page.keyboard.type("the statement says nothing")
    hands.press("Tab", "Enter")
    hands.see(".alerts", "No verdict counts")


def test_ten_groups_are_finished_with_keys_alone(page, server, room):
    user, run = room
    groups = [make_held(run, task=f"task-{n}") for n in range(GROUPS)]
    hands = open_the_queue(page, server, user)
    seen = []
    for n in range(GROUPS):
        seen.append(hands.arrive())
        hands.read_diffs()
        if n % 3 == 0:
            correct_one(hands)
        if n % 3 == 2:
            fall_back_one(hands)
        else:
            hands.press("a")
            hands.see(".alerts", "Approved: version 1")
        hands.press("n")
        if n + 1 < GROUPS:
            page.wait_for_function(f"() => !location.pathname.includes('/groups/{seen[-1]}/')")
    hands.see("#queue-rows", "The queue is empty")
    assert sorted(seen) == sorted(group.pk for group in groups)
    assert Decision.objects.count() == GROUPS
    assert Verdict.objects.filter(author=user).count() == 4
    assert Decision.objects.filter(kind="fallback").count() == 3


def test_blind_groups_are_finished_with_keys_alone(page, server, room):
    user, run = room
    for n in range(BLIND_GROUPS):
        make_held(run, task=f"task-{n}", is_blind=True)
    hands = open_the_queue(page, server, user)
    last = 0
    for _ in range(BLIND_GROUPS):
        page.wait_for_function(
            f"() => location.pathname.startsWith('/groups/') && location.pathname !== '/groups/{last}/'"
        )
        hands.see("[data-placed-words]", "0 of 3 placed")
        last = int(re.search(r"/groups/(\d+)/", page.url)[1])
        hands.see("#diffs tr.is-add")
        for placed in (1, 2, 3):  # the next card goes behind those that are placed
            hands.press("j", "Shift+ArrowUp")
            hands.see("[data-placed-words]", f"{placed} of 3 placed")
        hands.press("=", "o")
        hands.see(".alerts", "Your order is stored as it is")
        hands.arrive()
        hands.press("a")
        hands.see(".alerts", "Approved: version 1")
        hands.press("n")
    hands.see("#queue-rows", "The queue is empty")
    assert Decision.objects.count() == Review.objects.exclude(blind=None).count() == BLIND_GROUPS
