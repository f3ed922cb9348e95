"""Reading a long trajectory: pages of events, opened bodies, links, search."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.rooms import enter, make_held, make_room, open_group, small_patch

MANY = [
    {"kind": "action" if n % 2 else "observation", "text": f"line {n} of the log" + (" needle" if n == 180 else "")}
    for n in range(260)
]


@pytest.fixture
def room():
    user, run = make_room()
    return user, make_held(run, outcomes="PP", patches=[small_patch(), small_patch("40 + 2")], events=MANY, scores={})


@pytest.fixture
def reading(page, server, room):
    enter(page, server, room[0])
    page.goto(f"{server}/groups/{room[1].pk}/candidates/A/")
    return page


def test_events_come_page_by_page_and_open_in_place(reading):
    rows = reading.locator(".event-row")
    expect(rows).to_have_count(100)
    reading.locator("#e99").scroll_into_view_if_needed()
    expect(rows).to_have_count(200)
    reading.locator("#e150").scroll_into_view_if_needed()
    reading.locator("#e150 .event-line").click()
    expect(reading.locator("#e150 + .event-body")).to_contain_text("line 150 of the log")
    reading.locator("#e199").scroll_into_view_if_needed()
    expect(rows).to_have_count(260)
    expect(reading.locator(".event-run")).to_have_count(0)


def test_a_search_leads_to_the_event_and_a_quote_to_the_correction(reading, server, room):
    reading.get_by_label("Search events").fill("NEEDLE")
    reading.get_by_label("Search events").press("Enter")
    expect(reading.get_by_text("1 event with “NEEDLE”")).to_be_visible()
    reading.get_by_role("link", name=re.compile("line 180")).click()
    event = reading.locator("#e180")
    expect(event).to_be_in_viewport()
    expect(event).to_have_class(re.compile("is-target"))
    reading.get_by_role("link", name=re.compile("Cite")).click()
    expect(reading.locator("[data-cite-row]").first.get_by_label("place", exact=True)).to_have_value("180")
    expect(reading.locator("[data-cite-row]").first.get_by_label("kind of place")).to_have_value("event")


def test_both_trajectories_stand_side_by_side(page, server, room):
    enter(page, server, room[0])
    open_group(page, server, room[1], "?left=A&right=B&tab=events")
    for place, side in enumerate("LR"):
        column = page.locator(".diff-column").nth(place)
        expect(column.locator(".event-row")).to_have_count(100)
        column.locator(f"#{side}e7 .event-line").click()
        expect(column.locator(f"#{side}e7 + .event-body")).to_contain_text("line 7 of the log")
