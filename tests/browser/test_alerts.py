"""An alert rings on an open page, is found on the chart, and is acknowledged by keys."""

from playwright.sync_api import expect

from grading import wake
from grading.models import Role
from tests.browser.looking import picture
from tests.browser.rooms import enter, make_room, meanwhile
from tests.training_bridge.monitor.steps import Steps
from training_bridge.models import Alert
from training_bridge.monitor import alerting


def test_an_alert_rings_on_an_open_page_and_is_acknowledged(page, server):
    user, run = make_room(role=Role.ADMIN, webhook_url="http://hooks.example/")
    steps = Steps(run, groups=2, size=8)
    meanwhile(lambda: steps.add(11, entropy=0.359))
    enter(page, server, user)
    page.goto(f"{server}/runs/{run.public_id}/")
    expect(page.locator("#alerts")).to_contain_text("No alert.")
    expect(page.locator("[data-live-dot]")).to_have_text("live")

    def rise():
        steps.add(8, entropy=0.905, bounded=1.0, kept=0.5)
        alerting.watch()
        wake.pages(run.pk)

    meanwhile(rise)
    banner = page.locator("#run-banner")
    expect(banner).to_contain_text("Entropy rises")
    expect(page.locator("#alerts")).to_contain_text("firing since step")
    mark = page.locator('[data-panel="entropy"] .chart-marks a')
    expect(mark).to_contain_text("Entropy rises, firing")
    page.keyboard.press("g")
    page.keyboard.press("a")
    expect(page.locator("#alert-rows tbody tr")).to_have_count(2)
    picture(page, "alerts")
    page.locator("#alert-rows").get_by_role("link", name="Entropy rises").click()
    expect(page.get_by_role("heading", name="Acknowledge")).to_be_visible()
    picture(page, "alert")
    page.get_by_label("Note").fill("the learning rate is halved")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator("tbody")).to_contain_text("the learning rate is halved")
    page.goto(f"{server}/runs/{run.public_id}/alerts/")
    expect(page.get_by_label("Entropy rises: threshold, times")).to_have_value("1.75")
    picture(page, "run-alerts")
    assert Alert.objects.filter(state="acknowledged").count() == 1


NOTICES = """() => { window.noticesShown = []; const Real = window.Notification;
  window.Notification = class extends Real { constructor(title, options) { super(title, options);
    this.addEventListener("show", () => window.noticesShown.push([title, options.body])); } }; }"""


def test_who_asked_for_it_gets_a_notice_of_the_browser_once(context, server):
    user, run = make_room(role=Role.ADMIN)
    steps = Steps(run, groups=2, size=8)
    meanwhile(lambda: steps.add(11, entropy=0.359))
    context.grant_permissions(["notifications"], origin=server)
    context.add_init_script(f"({NOTICES})()")  # Chromium's own notices, and what it says of them
    page = context.new_page()
    enter(page, server, user)
    page.goto(f"{server}/alerts/")
    button = page.locator("[data-notify]")
    expect(button).to_have_text("Notify me")
    button.click()
    expect(button).to_have_text("Notices are on")
    page.goto(f"{server}/runs/{run.public_id}/")
    expect(page.locator("[data-live-dot]")).to_have_text("live")
    assert page.evaluate("() => [Notification.permission, window.noticesShown.length]") == ["granted", 0]

    def rise():
        steps.add(8, entropy=0.905)
        alerting.watch()
        wake.pages(run.pk)

    meanwhile(rise)
    expect(page.locator("#run-banner")).to_contain_text("Entropy rises")
    page.wait_for_function("() => window.noticesShown.length === 1")
    [[title, body]] = page.evaluate("() => window.noticesShown")
    assert "Entropy rises" in title + body
    page.reload()
    expect(page.locator("#run-banner")).to_contain_text("Entropy rises")
    expect(page.locator("[data-live-dot]")).to_have_text("live")
    assert page.evaluate("() => window.noticesShown") == [], "the same alert is told once"
    page.goto(f"{server}/alerts/")
    button.click()
    expect(button).to_have_text("Notify me")
