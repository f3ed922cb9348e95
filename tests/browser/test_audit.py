"""An audit in the browser: two candidates side by side, scores typed, revealed, and nothing told before."""

import pytest
from playwright.sync_api import expect

from grading.models import AuditGroup
from tests.browser.looking import picture
from tests.browser.rooms import enter, make_room, small_patch, wide_patch
from tests.factories import make_user
from tests.grading.audit.rooms import SECRETS, make_audit, make_runs

FINE, POOR = "5", "3"


@pytest.fixture
def audit(server):
    user, run = make_room()
    patches = (small_patch(), wide_patch())
    runs = make_runs(team=run.team, tasks=2, patches=patches, outcomes=("PPF", "PFP"), steps=(1, 12))
    return user, make_audit(runs=runs, windows=[(0, 9), (10, 19)], seed=5)


def judge(page, group: AuditGroup) -> None:
    """Score by what the patches look like: small ones are fine."""
    for one in group.candidates.select_related("arm"):
        for field in page.locator(f"input.audit-score[name^='{one.letter}-']").all():
            field.fill(FINE if one.arm.number == 0 else POOR)


def test_an_audit_is_judged_blind_and_revealed(page, server, audit):
    user, made = audit
    heard = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: heard.append(str(frame))))
    enter(page, server, user)
    page.goto(f"{server}/audits/")
    page.get_by_role("link", name=f"Audit {made.pk}").click()
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_role("heading", name="Group 1 of 4")).to_be_visible()
    page.get_by_role("button", name="show D on the right").click()
    expect(page.get_by_role("region", name="Candidates A and D")).to_be_visible()
    page.get_by_label("approach of A").fill("4")
    page.get_by_role("button", name="show C on the left").click()
    expect(page.get_by_role("region", name="Candidates C and D")).to_be_visible()
    expect(page.get_by_label("approach of A")).to_have_value("4")  # looking at others loses nothing
    page.locator(".audit-column summary", has_text="Trajectory").first.click()
    expect(page.locator(".audit-event").first).to_be_visible()
    page.locator("#audit-pair .diff-side tr.is-add .code").first.click(click_count=3)
    page.keyboard.press("c")
    expect(page.locator("[data-cite-note]")).to_contain_text("Cited C app.py:2")
    picture(page, "audit-group")
    page.get_by_role("button", name="Interdiff").click()
    expect(page.get_by_text("what differs between their results")).to_be_visible()
    picture(page, "audit-interdiff")
    page.get_by_role("button", name="Patches").click()
    expect(page.get_by_label("approach of A")).to_have_value("4")
    for n in range(4):
        assert not [word for word in SECRETS if word in page.content()]
        group = AuditGroup.objects.get(state="grading")
        judge(page, group)
        page.get_by_role("button", name="Store and go on").click()
        expect(page.get_by_text("Nothing is left to judge" if n == 3 else f"Group {n + 2} of 4")).to_be_visible()
    page.get_by_role("button", name="Reveal who made what").click()
    expect(page.get_by_role("heading", name="which is better")).to_be_visible()
    expect(page.locator(".whiskers").first).to_be_visible()
    expect(page.get_by_text("ironwood run").first).to_be_visible()
    picture(page, "audit-result")
    assert not [word for word in SECRETS if word in str(heard)]


def test_a_new_audit_and_the_export_are_found_on_the_pages(page, server, audit):
    _, made = audit
    enter(page, server, make_user(username="root", role="admin", team=made.team))
    page.goto(f"{server}/audits/")
    page.get_by_role("link", name="New audit").click()
    picture(page, "audit-new")
    page.goto(f"{server}/teams/{made.team.slug}/")
    page.get_by_role("link", name="Export").click()
    expect(page.get_by_role("heading", name="Export")).to_be_visible()
    picture(page, "export")
