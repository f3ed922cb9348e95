"""Every page in both themes, small and large: nothing overflows, nothing is logged, pictures are left to look at."""

import pytest
from playwright.sync_api import expect

from grading import bodies
from grading.models import Grading, Role, Signal, Task
from tests.browser.looking import picture
from tests.browser.rooms import EVENTS, enter, make_held, make_room, meanwhile, small_patch
from tests.factories import make_life
from tests.training_bridge.monitor.rows import Job, deliver_group


@pytest.fixture
def room():
    user, run = make_room(role=Role.ADMIN)
    group = make_held(run)
    dress(group)
    job = Job(make_life(run=run))

    def train():
        for step in range(12):
            job.metrics(step, pass_rate=0.3 + step / 50, entropy=1.1 - step / 40, pg_loss=0.02, turns=4.0, tokens=90.0)
            if step % 4 == 0:
                job.receipt(deliver_group(run, step=step, scores={"A": 5, "B": 3}), "applied", step=step)

    meanwhile(train)
    return user, run, group


def dress(group) -> None:
    """A log, a signal, a reference patch and a grading, so that their pages have something to show."""
    rollout = group.trajectories.get(letter="A")
    rollout.log = bodies.write_bytes(b"collected 7 items\n\x1b[31mFAILED test_answer - 41 != 42\x1b[0m\n" * 20)
    rollout.log_bytes = 940
    rollout.save()
    place = {"kind": "event", "event": 4, "quote": "1 failed"}
    Signal.objects.create(trajectory=rollout, detector="H3", words="it ends early", is_strong=True, place=place)
    Task.objects.filter(pk=group.task.pk).update(
        reference_patch=bodies.write_bytes(small_patch()),
        base_commit="5a1d0c3",
        repository_url="https://git.example/x.git",
    )
    said = bodies.write_events([*EVENTS[:3], {"kind": "system", "role": "retry", "text": "A has no score"}])
    Grading.objects.create(
        group=group, grader="agentic", transcript=said.sha256, event_count=said.events, state="valid"
    )


def test_pages_fit_and_are_pictured(page, server, room, watch):
    watch.expected_statuses = {404}
    user, run, group = room
    page.goto(f"{server}/sign-in")
    picture(page, "sign-in")
    enter(page, server, user)
    for name, path, sign in (
        ("runs", "/runs/", "#run-rows tbody tr"),
        ("monitor", f"/runs/{run.public_id}/", "#charts canvas"),
        ("run-settings", f"/runs/{run.public_id}/settings", "h1"),
        ("queue", "/queue/", "#queue-rows tbody tr"),
        ("groups", "/groups/", "tbody tr"),
        ("group", f"/groups/{group.pk}/?left=A&right=B", ".sum-check"),
        ("trajectory", f"/groups/{group.pk}/candidates/A/?at=4#e4", "#e4"),
        ("trajectory-log", f"/groups/{group.pk}/candidates/A/log?line=2#l2", "#l2"),
        ("trajectory-print", f"/groups/{group.pk}/candidates/A/print", ".event-body"),
        ("task", f"/tasks/{group.task.pk}/", "#reference"),
        ("team-new", "/new-team", "main form"),
        ("transcript", f"/gradings/{group.gradings.get().pk}/?at=1#e1", "#e1"),
        ("history", f"/groups/{group.pk}/history", "tbody tr"),
        ("tasks", "/tasks/", "tbody tr"),
        ("team", "/teams/readers/", "tbody tr"),
        ("not-found", "/nowhere", "h2"),
    ):
        page.goto(server + path)
        expect(page.locator(sign).first).to_be_visible()
        picture(page, name)


def test_the_reader_chooses_the_theme_and_it_stays(page, server, room):
    enter(page, server, room[0])
    page.goto(f"{server}/runs/")
    page.get_by_label("Switch between light and dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
