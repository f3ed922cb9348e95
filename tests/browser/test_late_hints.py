"""A hint that comes while a part is being fetched again: what it told of appears, with nothing else to help it."""

import pytest
from playwright.sync_api import expect

from grading import wake
from grading.models import Role
from grading.review import queue
from tests.browser.rooms import enter, make_held, make_room, meanwhile
from tests.factories import make_user

COUNT_HINTS = "() => { window.hints = 0; document.addEventListener('live-changed', () => { window.hints += 1; }); }"


def claimed_by_another(run, group):
    queue.claim(group, user=make_user(username="otto", role=Role.REVIEWER, team=run.team))


@pytest.mark.parametrize(
    "where, change, told",
    [
        (("/queue/", "**/queue/"), lambda run, _: make_held(run, task="newer"), "#queue-rows :text('newer')"),
        (("/groups/{}/", "**/news?*"), claimed_by_another, "#group-news [data-news=claim]"),
    ],
    ids=["queue", "group"],
)
def test_a_hint_behind_a_slow_refetch_is_not_lost(page, server, where, change, told):
    (path, part), (user, run) = where, make_room()
    group = make_held(run)
    enter(page, server, user)
    page.goto(server + path.format(group.pk))
    expect(page.locator("[data-live-dot]")).to_have_text("live")
    page.evaluate(COUNT_HINTS)
    slow = []

    def hold_the_first(route):
        if slow:
            return route.continue_()
        slow.append((route, route.fetch()))

    page.route(part, hold_the_first)
    meanwhile(lambda: wake.pages(run.pk))
    page.wait_for_function("() => window.hints === 1")
    while not slow:
        page.wait_for_timeout(50)
    meanwhile(lambda: (change(run, group), wake.pages(run.pk)))
    page.wait_for_function("() => window.hints >= 2")
    [(route, old)] = slow
    route.fulfill(response=old)
    expect(page.locator(told)).to_be_visible()


NO_TICKS = """const kept = setInterval;
window.setInterval = (call, pause, ...more) => (pause === 30_000 ? 0 : kept(call, pause, ...more));"""


def test_a_hint_behind_a_slow_filter_is_not_lost(page, server):
    user, run = make_room()
    make_held(run)
    page.add_init_script(NO_TICKS)
    enter(page, server, user)
    page.goto(f"{server}/queue/")
    expect(page.locator("[data-live-dot]")).to_have_text("live")
    slow = []
    page.route("**/queue/?*", lambda route: route.continue_() if slow else slow.append((route, route.fetch())))
    page.get_by_label("claimed by").select_option("open to me")
    while not slow:
        page.wait_for_timeout(50)
    meanwhile(lambda: (make_held(run, task="newer"), wake.pages(run.pk)))
    newer = page.locator("#queue-rows :text('newer')")
    expect(newer).to_be_visible()
    [(route, old)] = slow
    route.fulfill(response=old)
    page.wait_for_url("**/queue/?*claimed=free*")
    expect(newer).to_be_visible()
