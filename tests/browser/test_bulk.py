"""Many groups selected by keys and mouse; findings, hints and flags taken back with one reason."""

import pytest
from playwright.sync_api import expect

from grading.models import Signal, SignalRuling, Trajectory, Verdict
from grading.review import findings
from tests.browser.looking import picture
from tests.browser.rooms import enter, make_held, make_room
from tests.verdicts import add_flag, line_of


@pytest.fixture
def room():
    user, run = make_room()
    for n in range(4):
        group = make_held(run, task=f"task-{n}")
        trajectory = group.trajectories.get(letter="C")
        findings.confirm(trajectory, kind="leak", reason="it looked", citations=[line_of(trajectory)], user=user)
    return user


def test_findings_of_selected_groups_are_withdrawn(page, server, room):
    enter(page, server, room)
    page.goto(f"{server}/groups/?finding=leak")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("[data-selected]")).to_have_text("1 of 4")
    page.locator("[data-select]").nth(2).click(modifiers=["Shift"])
    expect(page.locator("[data-selected]")).to_have_text("3 of 4")
    page.get_by_label("Select all on this page").click()
    expect(page.locator("[data-selected]")).to_have_text("4 of 4")
    page.locator("[data-select]").nth(3).uncheck()
    page.get_by_label("Reason").fill("the detector read a comment")
    picture(page, "groups-bulk")
    page.get_by_role("button", name="Withdraw the findings").click()
    expect(page.get_by_text("3 findings withdrawn in 3 groups.")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(1)
    assert Trajectory.objects.filter(integrity="leak").count() == 1


def select_two(page, server, query: str, *, of: int) -> None:
    page.goto(f"{server}/groups/{query}")
    expect(page.locator("[data-select]")).to_have_count(of)
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    expect(page.locator("[data-selected]")).to_have_text(f"2 of {of}")


def test_hints_of_selected_groups_are_ruled_wrong(page, server, room):
    for trajectory in Trajectory.objects.filter(letter="A"):
        Signal.objects.create(trajectory=trajectory, detector="H7", is_strong=True, words="it looked")
    enter(page, server, room)
    select_two(page, server, "?signal=H7-strong", of=4)
    page.get_by_label("Reason").fill("it reads its own notes")
    page.locator("[name=detector]").select_option("H7")
    page.get_by_role("button", name="Rule the hints wrong").click()
    expect(page.get_by_text("2 hints ruled wrong in 2 groups.")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(2)  # the filter stands; they are no hints any more
    assert [row.reason for row in SignalRuling.objects.all()] == ["it reads its own notes"] * 2


def test_a_flag_of_selected_groups_is_taken_back_and_counts_where_that_is_asked(page, server, room):
    run = room.memberships.get().team.runs.get()
    groups = [make_held(run, task=f"flagged-{n}") for n in range(3)]
    for group in groups:
        add_flag(group)
    enter(page, server, room)
    select_two(page, server, "?task=flagged", of=3)
    page.get_by_label("Reason").fill("the task asks for it")
    page.locator("[name=flag]").select_option("unrequested_rewrite")
    page.get_by_label("and let it count").check()
    page.get_by_role("button", name="Take the flag back").click()
    expect(page.get_by_text("2 flags taken back in 2 groups.")).to_be_visible()
    made = Verdict.objects.filter(author=room, reason="the task asks for it")
    assert sorted(verdict.group.decisions.get().verdict_id for verdict in made) == sorted(one.pk for one in made)
    assert made.count() == 2
