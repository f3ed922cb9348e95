"""Every page in both themes, small and large: nothing overflows, nothing is logged, pictures are left to look at."""

import itertools
from pathlib import Path

import pytest
from playwright.sync_api import expect

from grading.models import Role
from tests.browser.rooms import enter, make_held, make_room, meanwhile
from tests.factories import make_life
from tests.training_bridge.monitor.rows import Job, deliver_group

PICTURES = Path(__file__).resolve().parents[2] / "screenshots"
SIZES = {"small": {"width": 1280, "height": 800}, "large": {"width": 2560, "height": 1440}}
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def room():
    user, run = make_room(role=Role.ADMIN)
    group = make_held(run)
    job = Job(make_life(run=run))

    def train():
        for step in range(12):
            job.metrics(step, pass_rate=0.3 + step / 50, entropy=1.1 - step / 40, pg_loss=0.02, turns=4.0, tokens=90.0)
            if step % 4 == 0:
                job.receipt(deliver_group(run, step=step, scores={"A": 5, "B": 3}), "applied", step=step)

    meanwhile(train)
    return user, run, group


def picture(page, name: str) -> None:
    """Both themes, both sizes; the page is loaded once."""
    for theme, (size, viewport) in itertools.product(("light", "dark"), SIZES.items()):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # no picture in mid-transition
        page.set_viewport_size(viewport)
        assert page.evaluate(TOO_WIDE) <= 0, f"{name} is too wide in {size}"
        page.screenshot(path=PICTURES / f"{name}-{theme}-{size}.png")


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
