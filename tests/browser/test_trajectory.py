"""Reading a long trajectory: pages of events, opened bodies, links, search."""

import re

import pytest
from playwright.sync_api import expect

from grading import bodies
from grading.models import Signal
from grading.review.anchors import Citation
from grading.review.pages.bodies_read import resolved
from tests.browser.rooms import enter, make_held, make_room, open_group, small_patch

MANY = [
    {"kind": "action" if n % 2 else "observation", "text": f"line {n} of the log" + (" needle" if n == 180 else "")}
    for n in range(260)
]
NEEDLE = "line 180 of the log needle"
PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
PICTURE += "AAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


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
    reading.locator("#e180 + .event-body pre").evaluate("pre => getSelection().selectAllChildren(pre)")
    reading.keyboard.press("c")
    expect(reading.locator("[data-cite-row]").first.get_by_label("place", exact=True)).to_have_value("180")
    expect(reading.locator("[data-cite-row]").first.get_by_label("kind of place")).to_have_value("event")
    expect(reading.locator("[data-cite-row]").first.get_by_label("quoted words")).to_have_value(NEEDLE)


def test_both_trajectories_stand_side_by_side(page, server, room):
    enter(page, server, room[0])
    open_group(page, server, room[1], "?left=A&right=B&tab=events")
    for place, side in enumerate("LR"):
        column = page.locator(".diff-column").nth(place)
        expect(column.locator(".event-row")).to_have_count(100)
        column.locator(f"#{side}e7 .event-line").click()
        expect(column.locator(f"#{side}e7 + .event-body")).to_contain_text("line 7 of the log")


def test_an_open_event_closes_again_and_opens_by_key(reading):
    reading.locator("#e3 .event-line").click()
    body = reading.locator("#e3 + .event-body")
    expect(body).to_contain_text("line 3 of the log")
    expect(reading.locator("#e3")).to_have_attribute("aria-expanded", "true")
    reading.locator("#e3 .event-line").click()
    expect(body).to_be_hidden()
    for _ in range(2):
        reading.keyboard.press("j")
    reading.keyboard.press("o")
    expect(reading.locator(".event-row.is-focused + .event-body")).to_contain_text("of the log")
    reading.keyboard.press("Enter")
    expect(reading.locator(".event-row.is-focused + .event-body")).to_be_hidden()


def test_the_map_leads_to_an_event_and_keys_walk_over_signals(page, server, room):
    rollout = room[1].trajectories.get(letter="A")
    for event in (5, 201):
        place = {"kind": "event", "event": event, "quote": "line"}
        Signal.objects.create(trajectory=rollout, detector="H3", words="it ends", is_strong=True, place=place)
    enter(page, server, room[0])
    page.goto(f"{server}/groups/{room[1].pk}/candidates/A/")
    view = page.locator("[data-map-view]")
    expect(view).not_to_have_attribute("width", "0")
    page.keyboard.press("s")
    expect(page.locator("#e5")).to_have_class(re.compile("is-focused"))
    page.keyboard.press("s")  # that one is not on the page
    expect(page.locator("#e201")).to_have_class(re.compile("is-focused"))
    expect(page.locator("#e201 .flag")).to_contain_text("H3")
    page.keyboard.press("S")
    expect(page.locator("#e5")).to_have_class(re.compile("is-focused"))
    page.locator(".event-map a").nth(120).click(force=True)
    expect(page.locator(".event-row.is-target")).to_be_in_viewport()
    assert re.search(r"at=24\d#e24\d$", page.url)  # 260 events in 130 places


def test_an_image_is_drawn_and_a_picture_that_is_none_is_said(page, server, room):
    drawn = {"kind": "observation", "text": f"a shot: {PICTURE}"}
    fake = {"kind": "observation", "text": f"a shot: {PICTURE.replace('iVBORw0KGgo', 'PHN2ZyB4bWxu')}"}
    stored = bodies.write_events([drawn, fake])
    room[1].trajectories.update(event_body=stored.sha256, event_count=2)
    enter(page, server, room[0])
    page.goto(f"{server}/groups/{room[1].pk}/candidates/A/?at=0#e0")
    image = page.get_by_role("img", name="image of event 0")
    expect(image).to_be_visible()
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    page.locator("#e1 .event-line").click()
    expect(page.locator("#e1 + .event-body")).to_contain_text("not drawn, it is no PNG, JPEG, GIF or WebP")


def test_a_selected_line_of_the_log_is_cited_as_its_result(page, server, room):
    rollout = room[1].trajectories.get(letter="A")
    rollout.log = bodies.write_bytes(b"collected 2 items\n\x1b[31mFAILED test_answer - 41 != 42\x1b[0m\ndone\n")
    rollout.log_bytes = 60
    rollout.save()
    enter(page, server, room[0])
    page.goto(f"{server}/groups/{room[1].pk}/candidates/A/log?line=2#l2")
    expect(page.locator("#l2")).to_have_class(re.compile("is-target"))
    page.locator("#l2 pre").click(click_count=3)
    page.keyboard.press("c")
    row = page.locator("[data-cite-row]").first
    expect(row.get_by_label("place", exact=True)).to_have_value("test_answer")
    expect(row.get_by_label("kind of place")).to_have_value("result")


def test_coloured_words_that_are_selected_resolve_exactly(page, server, room):
    told = [
        {"kind": "test", "text": "run\r\n10 %\r100 %\n\x1b[31m1 failed\x1b[0m, \x1b[32m6 passed\x1b[0m", "exit_code": 1}
    ]
    stored = bodies.write_events(told)
    room[1].trajectories.update(event_body=stored.sha256, event_count=1)
    enter(page, server, room[0])
    open_group(page, server, room[1], "?left=A&right=B&tab=events")
    page.locator("#Le0 .event-line").click()
    page.locator("#Le0 + .event-body pre").evaluate("pre => getSelection().selectAllChildren(pre)")
    page.keyboard.press("c")
    assert "cite_place" not in page.url  # nothing that was typed is left behind
    row = page.locator("[data-cite-row]").first
    expect(row.get_by_label("quoted words")).to_have_value("run\n100 %\n1 failed, 6 passed")
    quote = row.get_by_label("quoted words").input_value()
    citation = Citation("event", "A", event=0, quote=quote)
    assert resolved(citation, room[1].trajectories.get(letter="A")).state == "exact"
