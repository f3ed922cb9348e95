"""What rollouts and jobs bring is shown and never run."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from grading import bodies
from grading.models import Grading, Signal, TaskEvent
from tests.browser.rooms import enter, make_held, make_room, open_group

SCRIPT = "<img src=x onerror=\"alert('ran')\"><script>alert('ran')</script>"
SVG = "<svg onload=alert('ran')>'\"><a href=\"javascript:alert('ran')\">x</a>{{7*7}}"
TERMINAL = "\x1b]8;;javascript:alert('ran')\x07link\x1b]8;;\x07\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m"
BIDI = "user\u202etxt.exe\u2066 \u200b\ufeff"
IMAGES = "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KCdyYW4nKSIvPg=="
IMAGES += " data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg=="
ALL = f"{SCRIPT} {SVG} {TERMINAL} {BIDI} {IMAGES}"
WHAT_IS_NOT_OURS = """() => [...document.querySelectorAll("img, script:not([src]), iframe, object, embed")]
  .map((element) => element.outerHTML)
  .concat([...document.querySelectorAll("*")].flatMap((element) => element.getAttributeNames()
    .filter((name) => name.startsWith("on") || name === "style"
      || (name === "href" && /^\\s*javascript:/i.test(element.getAttribute(name))))
    .map((name) => `${element.tagName} ${name}`)))"""
RAW_SIGNS = ("\x1b", "\u202e", "\u2066", "\u200b")


def hostile_patch() -> bytes:
    path = "a<img src=x onerror=alert(1)>.py"
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,3 @@ {SCRIPT}\n"
    return (head + f" def answer():\n-    return {SVG}\n+    return {TERMINAL}\n+    {BIDI}{SCRIPT}\n").encode()


@pytest.fixture
def room():
    user, run = make_room(name=f"run {SCRIPT}")
    events = [{"kind": "action", "text": ALL, "tool": ALL, "args": {ALL: ALL}, "role": ALL, "exit_code": 1}] * 3
    group = make_held(
        run, outcomes="PPF", patches=[hostile_patch()] * 3, events=events, scores={}, key=f"key {SCRIPT}",
        hold_reason=SVG,
    )  # fmt: skip
    group.task.statement = f"{BIDI} {TERMINAL} {SCRIPT}\n\n{ALL}"
    group.task.repository_url, group.task.base_commit = SCRIPT, BIDI
    group.task.reference_patch = bodies.write_bytes(hostile_patch())
    group.task.save()
    TaskEvent.objects.create(task=group.task, is_broken=True, by=SCRIPT, reason=ALL)
    log = bodies.write_bytes(f"{ALL}\n{ALL}".encode())
    for trajectory in group.trajectories.all():
        trajectory.tests = [{"name": ALL, "status": "failed", "message": ALL}]
        trajectory.counts, trajectory.problem, trajectory.log = {SCRIPT: SVG}, SCRIPT, log
        trajectory.save()
        Signal.objects.create(trajectory=trajectory, detector="H1", words=SCRIPT, is_strong=True)
    return user, group


def assert_inert(page) -> None:
    assert page.evaluate(WHAT_IS_NOT_OURS) == []
    assert not [sign for sign in RAW_SIGNS if sign in page.locator("body").inner_text()]


def test_nothing_runs_on_the_review_page(page, server, room):
    enter(page, server, room[0])
    open_group(page, server, room[1], "?left=A&right=B")
    expect(page.locator("#A-f0 tr.is-add").first).to_be_attached()
    page.keyboard.press("f")  # both candidates make the same change, so it is folded
    expect(page.locator("#A-f0 tr.is-add").first).to_be_visible()
    assert_inert(page)
    page.keyboard.press("t")
    page.locator("#Le0 .event-line").click()
    expect(page.locator("#Le0 + .event-body")).to_contain_text("alert('ran')")
    assert_inert(page)
    for key, words in (("s", "differ on|agree on"), ("h", "strong")):
        page.keyboard.press(key)
        expect(page.locator("#workbench")).to_contain_text(re.compile(words))
        assert_inert(page)


def test_nothing_runs_where_the_same_words_stand_elsewhere(page, server, room):
    user, group = room
    stored = bodies.write_events([{"kind": "action", "text": ALL, "tool": ALL, "args": {ALL: ALL, "b": IMAGES}}])
    said = {"transcript": stored.sha256, "event_count": 1, "grader": "agentic", "problems": [{"what": ALL, "got": ALL}]}
    grading = Grading.objects.create(group=group, **said)
    enter(page, server, user)
    here = f"{server}/groups/{group.pk}"
    addresses = [f"{here}/candidates/A/?at=1#e1", f"{here}/candidates/A/?q=alert&in=all", f"{here}/history"]
    addresses += [f"{here}/candidates/A/files/0", f"{server}/queue/", f"{server}/groups/", f"{server}/tasks/"]
    addresses += [f"{server}/runs/", f"{server}/runs/{group.run.public_id}/"]
    addresses += [f"{here}/candidates/A/print", f"{here}/candidates/A/log", f"{here}/candidates/A/events/0"]
    addresses += [f"{server}/tasks/{group.task.pk}/", f"{server}/gradings/{grading.pk}/?at=0#e0"]
    addresses += [f"{server}/gradings/{grading.pk}/?q=alert", f"{server}/gradings/{grading.pk}/print"]
    addresses += [f"{server}/groups/?task={quote(SCRIPT)}&repository={quote(SVG)}&signal={quote(SCRIPT)}"]
    for address in addresses:
        page.goto(address)
        expect(page.locator("#main")).to_be_visible()
        assert_inert(page)
