"""Watching a run while its job reports."""

import re

from playwright.sync_api import expect

from grading import wake
from grading.states import Policy
from tests.browser.looking import TOO_WIDE, picture
from tests.browser.rooms import enter, make_held, make_room, meanwhile
from tests.factories import make_life, make_run
from tests.training_bridge.monitor.rows import Job, deliver_group
from tests.training_bridge.monitor.steps import Steps
from training_bridge.monitor import alerting

MARK_THIS_LOAD = "() => { window.theSameLoad = true; }"
STROKE_WIDTHS = """(points) => {
  const kept = CanvasRenderingContext2D.prototype.stroke;
  const widths = new Set();
  CanvasRenderingContext2D.prototype.stroke = function (path) {
    if (path) widths.add(Math.round(10 * this.lineWidth) / 10);
    kept.apply(this, arguments);
  };
  const steps = Array.from({ length: points }, (_, step) => step + 1);
  gagarMonitor.feed({ cursor: "0.1", grids: [steps], series: { entropy: [0, steps.map(Math.sin)] } });
  return new Promise((done) => queueMicrotask(() => {  // uPlot has drawn in a microtask of its own
    CanvasRenderingContext2D.prototype.stroke = kept;
    done([...widths]);
  }));
}"""
HELD_RESIZES = """const Real = ResizeObserver;
window.isHeld = false;
window.ResizeObserver = class extends Real {
  constructor(told) { super((entries) => { if (!window.isHeld) told(entries); }); }
};"""
WIDER_THAN_THEIR_BOX = """() => [...document.querySelectorAll(".chart-plot")].filter(
  (box) => box.querySelector("canvas").getBoundingClientRect().width > box.clientWidth + 1).length"""
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


def test_a_zoomed_range_leads_to_the_groups_of_its_steps(page, server):
    user, run = make_room(policy=Policy.AUTO)
    job = Job(make_life(run=run))
    meanwhile(lambda: train(job, run, pass_rates=(0.0, 0.1, 0.2, 0.3, 0.4)))
    enter(page, server, user)
    page.goto(f"{server}/runs/{run.public_id}/")
    over = page.locator('[data-panel="pass_rate"] .u-over')
    expect(over).to_be_visible()
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 20, steps=5)
    page.mouse.up()
    link = page.locator("[data-step-link]")
    expect(link).to_have_text("steps 1 to 3: open their groups")
    link.click()
    expect(page.locator("tbody tr")).to_have_count(3)


def test_a_page_catches_up_after_its_socket_died_and_the_server_was_away(page, server):
    user, run = make_room(policy=Policy.AUTO)
    job = Job(make_life(run=run))
    meanwhile(lambda: job.metrics(0, entropy=1.0))
    sockets, is_away = [], []

    def through(socket):
        if is_away:
            socket.close(code=1012)
            return
        socket.connect_to_server()
        sockets.append(socket)

    page.route_web_socket(re.compile("/watch$"), through)
    page.route(re.compile("series.json"), lambda route: route.fulfill(body="away") if is_away else route.continue_())
    enter(page, server, user)
    page.goto(f"{server}/runs/{run.public_id}/")
    page.wait_for_function("() => window.gagarMonitor?.count('entropy') === 1")
    expect(page.locator("[data-live-dot]")).to_have_text("live")
    is_away.append(True)
    sockets[-1].close(code=1012)
    meanwhile(lambda: [job.metrics(step, entropy=1.0) for step in range(1, 40)])
    meanwhile(lambda: job.metrics(0, entropy=9.0))  # late, and long ago
    expect(page.locator("#live-banner")).to_be_visible()  # it has tried, more than once
    assert page.evaluate("gagarMonitor.count('entropy')") == 1
    is_away.clear()
    page.wait_for_function("() => gagarMonitor.count('entropy') === 40")
    late = "() => gagarMonitor.at('entropy', 0) === 9"
    page.wait_for_function(late)


def test_a_link_keeps_the_whole_view(page, server):
    user, run = make_room(policy=Policy.AUTO)
    other = make_run(team=run.team, public_id="older", name="Older run")
    for one in (run, other):
        job = Job(make_life(run=one))
        meanwhile(lambda: [job.metrics(step, entropy=1.0 + step, pg_loss=-0.1) for step in range(9)])  # noqa: B023
    enter(page, server, user)
    page.goto(f"{server}/runs/{run.public_id}/")
    panel = page.locator('[data-panel="entropy"]')
    expect(panel.locator("canvas")).to_be_visible()
    panel.locator(".chart-menu summary").click()
    panel.get_by_role("button", name="Logarithmic").click()
    page.locator('[data-look="smooth"]').select_option("0.8")
    page.locator("[data-overlay]").select_option(label="Older run")
    expect(panel.locator("[data-overlay-of] .name")).to_have_text("Older run")
    page.locator('[data-panel="length"] [data-series="tokens"]').click()
    over = panel.locator(".u-over")
    box = over.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 20, steps=4)
    page.mouse.up()
    expect(page.locator("[data-step-link]")).to_have_text("steps 2 to 6: open their groups")

    page.goto(page.url)
    expect(page.locator("[data-step-link]")).to_have_text("steps 2 to 6: open their groups")
    expect(panel.locator("[data-overlay-of] .name")).to_have_text("Older run")
    expect(page.locator('[data-panel="length"] [data-series="tokens"]')).to_have_attribute("aria-pressed", "false")
    assert page.locator('[data-look="smooth"]').input_value() == "0.8"
    expect(panel.locator("[data-log]")).to_have_attribute("aria-pressed", "true")
    panel.locator(".chart-menu summary").click()
    with page.expect_download() as saved:
        panel.get_by_role("button", name="Picture, PNG").click()
    assert saved.value.path().read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    panel.locator(".chart-menu summary").click()
    with page.expect_download() as saved:
        panel.get_by_role("link", name="Numbers, CSV").click()
    assert saved.value.path().read_text().splitlines() == ["step,entropy", *(f"{n},{n + 1.0}" for n in range(2, 7))]


def test_a_line_with_more_points_than_pixels_is_a_hairline(page, server):
    user, run = make_room(policy=Policy.AUTO)
    job = Job(make_life(run=run))
    meanwhile(lambda: job.metrics(0, entropy=1.0))
    enter(page, server, user)
    page.goto(f"{server}/runs/{run.public_id}/")
    page.wait_for_function("() => window.gagarMonitor?.count('entropy') === 1")
    assert page.evaluate(STROKE_WIDTHS, 40) == [1.6]
    assert page.evaluate(STROKE_WIDTHS, 3000) == [1]


def make_marked_run(run):
    """Steps that end ill, so that alerts stand on the charts; some names have no number."""
    steps = Steps(run, groups=2, size=8)
    steps.add(11, entropy=0.359, tiers=(4, 2, 2), pg_loss=0.02, kl=0.01)
    steps.add(8, entropy=0.905, bounded=1.0, kept=0.5, tiers=(2, 2, 4), pg_loss=-0.01, kl=0.02)
    alerting.watch()


def test_charts_with_marks_follow_a_window_that_shrinks_and_never_widen_the_page(page, server):
    user, run = make_room(policy=Policy.AUTO)
    meanwhile(lambda: make_marked_run(run))
    page.add_init_script(HELD_RESIZES)
    enter(page, server, user)
    page.set_viewport_size({"width": 2560, "height": 1440})
    page.goto(f"{server}/runs/{run.public_id}/")
    expect(page.locator('[data-panel="entropy"] .chart-marks a')).to_be_visible()
    assert page.evaluate(WIDER_THAN_THEIR_BOX) == 0
    page.evaluate("() => { window.isHeld = true; }")  # nothing is drawn anew yet
    page.set_viewport_size({"width": 1280, "height": 800})
    page.wait_for_function(f"() => ({WIDER_THAN_THEIR_BOX})() > 0")
    assert page.evaluate(TOO_WIDE) <= 0
    page.evaluate("() => { window.isHeld = false; }")
    page.set_viewport_size({"width": 1281, "height": 800})
    page.wait_for_function(f"() => ({WIDER_THAN_THEIR_BOX})() === 0")
    picture(page, "monitor")


def test_numbers_that_the_job_reports_later_are_announced_and_shown(page, server):
    user, run = make_room(policy=Policy.AUTO)
    job = Job(make_life(run=run))
    meanwhile(lambda: job.metrics(0, entropy=1.0))
    enter(page, server, user)
    page.goto(f"{server}/runs/{run.public_id}/")
    expect(page.locator("[data-live-dot]")).to_have_text("live")
    expect(page.get_by_text("no panel on this page yet")).to_be_hidden()
    meanwhile(lambda: job.metrics(1, entropy=0.9, grad_norm=3.5))
    page.get_by_role("link", name="Show them").click()
    expect(page.locator('[data-panel="job-grad_norm"] h2 .now')).to_have_text("3.5")
    expect(page.get_by_text("no panel on this page yet")).to_be_hidden()
