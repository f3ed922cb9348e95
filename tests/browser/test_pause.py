"""An admin pauses a run and every page of it says so; a letter over the diff leads to the rollout's whole history."""

from playwright.sync_api import expect

from grading.models import Role
from tests.browser.looking import picture
from tests.browser.rooms import enter, make_held, make_room, meanwhile, open_group
from tests.factories import make_life
from tests.training_bridge.monitor.rows import Job, deliver_group


def test_a_pause_is_said_everywhere_and_a_rollout_tells_its_way(page, server):
    user, run = make_room(role=Role.ADMIN)
    job = Job(make_life(run=run))
    held = make_held(run)
    delivered = []

    def train():
        delivered.append(deliver_group(run, step=3, scores={"A": 5, "B": 3}))
        job.receipt(delivered[0], "applied", step=4)

    meanwhile(train)
    enter(page, server, user)
    page.goto(f"{server}/runs/{run.public_id}/pause")
    expect(page.get_by_text("1 held for people")).to_be_visible()
    page.get_by_label("Reason").fill("entropy rises")
    page.get_by_role("button", name="Pause redistribution").click()
    expect(page.get_by_role("heading", name="Outcome advantages go out")).to_be_visible()
    expect(page.locator("#run-banner")).to_contain_text("Redistribution is paused")
    picture(page, "pause")
    open_group(page, server, held)
    expect(page.locator("#run-banner")).to_contain_text("entropy rises")
    page.goto(f"{server}/groups/{delivered[0].pk}/?left=A&right=B")
    page.get_by_title("History of A").first.click()
    expect(page.locator("tbody")).to_contain_text("version 1: applied at step 4")
    expect(page.locator("tbody")).to_contain_text("outcome advantage")
    picture(page, "rollout-history")
