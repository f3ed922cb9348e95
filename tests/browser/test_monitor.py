"""Watching a run while its job reports."""

from playwright.sync_api import expect

from grading import wake
from grading.states import Policy
from tests.browser.rooms import enter, make_held, make_room, meanwhile
from tests.factories import make_life
from tests.training_bridge.monitor.rows import Job, deliver_group

MARK_THIS_LOAD = "() => { window.theSameLoad = true; }"
IS_THIS_LOAD = "() => window.theSameLoad === true"


def train(job, run, *, pass_rates):
    for step, rate in enumerate(pass_rates):
        job.metrics(step, pass_rate=rate, entropy=1.0, pg_loss=0.1)
        job.receipt(deliver_group(run, step=step), "applied", step=step)


def pass_rate(page):
    return page.locator('[data-panel="pass_rate"] h2 .now')


def test_curves_grow_without_a_reload_and_are_complete_after_one(page, server):
    user, run = make_room(policy=Policy.AUTO)
    job = Job(make_life(run=run))
    meanwhile(lambda: train(job, run, pass_rates=(0.25, 0.26, 0.27)))
    enter(page, server, user)
    page.goto(f"{server}/")
    page.get_by_role("link", name="Small modules").click()
    expect(pass_rate(page)).to_have_text("27.0 %")
    expect(page.locator("#charts canvas").first).to_be_visible()
    assert page.locator("#charts canvas").count() == page.locator("[data-panel]").count()
    expect(page.locator("#ledger tbody tr")).to_have_count(3)

    page.evaluate(MARK_THIS_LOAD)
    expect(page.locator("[data-live-dot]")).to_have_text("live")
    meanwhile(lambda: job.metrics(3, pass_rate=0.5, entropy=0.9, pg_loss=0.2))
    meanwhile(lambda: deliver_group(run, step=3))
    expect(pass_rate(page)).to_have_text("50.0 %")
    expect(page.locator("#ledger tbody tr")).to_have_count(4)
    expect(page.locator("#headline")).to_contain_text("50.0 %")
    assert page.evaluate(IS_THIS_LOAD)

    page.reload()
    expect(pass_rate(page)).to_have_text("50.0 %")
    expect(page.locator("#ledger tbody tr")).to_have_count(4)


def test_the_cursor_names_a_step_and_leads_to_its_groups(page, server):
    user, run = make_room(policy=Policy.AUTO)
    job = Job(make_life(run=run))
    meanwhile(lambda: train(job, run, pass_rates=(0.0, 0.1, 0.2, 0.3)))
    enter(page, server, user)
    page.goto(f"{server}/runs/{run.public_id}/")
    plot = page.locator('[data-panel="pass_rate"] .chart-plot')
    expect(plot.locator("canvas")).to_be_visible()
    plot.focus()
    page.keyboard.press("ArrowLeft")
    expect(pass_rate(page)).to_have_text("30.0 %")
    page.keyboard.press("ArrowLeft")
    expect(pass_rate(page)).to_have_text("20.0 %")
    page.get_by_role("link", name="step 2: open its groups").click()
    expect(page.locator("tbody tr")).to_have_count(1)


def test_a_group_announces_itself_in_an_open_queue(page, server):
    user, run = make_room()
    enter(page, server, user)
    page.goto(f"{server}/queue/")
    expect(page.get_by_role("heading", name="The queue is empty")).to_be_visible()
    expect(page.locator("[data-live-dot]")).to_have_text("live")
    make_held(run)
    meanwhile(lambda: wake.pages(run.pk))
    expect(page.get_by_role("link", name="answers")).to_be_visible()
