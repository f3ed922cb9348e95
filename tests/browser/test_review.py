"""Reviewing a group with the mouse: two diffs, citations, a correction, an approval, a stale tab."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from grading.models import Decision, Role, Verdict
from grading.review import decisions
from grading.scoring.criteria import CRITERIA
from tests.browser.rooms import (
    enter,
    lower,
    make_held,
    make_room,
    open_group,
    sign_in,
    small_patch,
    wide_patch,
)
from tests.factories import make_user

SELECT = """(row) => {
  const range = document.createRange();
  range.selectNodeContents(row.querySelector(".code"));
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}"""
IS_IN_VIEW_OF_ITS_COLUMN = """(row) => {
  const at = row.getBoundingClientRect(), column = row.closest(".columns").getBoundingClientRect();
  return at.top >= column.top && at.bottom <= column.bottom;
}"""
SELECT_FROM_TO = """([from, to]) => {
  const range = document.createRange();
  range.setStart(document.querySelector(from).querySelector(".code"), 0);
  range.setEnd(document.querySelector(to), 0);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}"""
SIDE_BY_SIDE = "?left=A&right=B"


@pytest.fixture
def room():
    user, run = make_room()
    return user, run, make_held(run)


@pytest.fixture
def reviewing(page, server, room):
    """The group's page in the browser of somebody who may decide."""
    user, _, group = room
    enter(page, server, user)
    open_group(page, server, group, SIDE_BY_SIDE)
    return page


def test_a_group_is_claimed_from_the_queue_and_released(page, server, room):
    user, _, group = room
    sign_in(page, server, user)
    page.get_by_role("link", name=re.compile("Queue")).click()
    row = page.locator(f"#group-{group.pk}")
    expect(row).to_contain_text("answer() is off by one")
    row.get_by_role("button", name="Claim").click()
    expect(page).to_have_url(f"{server}/groups/{group.pk}/")
    expect(page.get_by_text("claimed by you")).to_be_visible()
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_text("Released: somebody else can take it now.")).to_be_visible()


def test_two_diffs_stand_side_by_side_and_their_files_come_when_they_are_seen(reviewing):
    left, right = (reviewing.locator(f".diff-side[data-letter={letter}]") for letter in "AB")
    expect(left.locator("#A-f0 tr.is-add .code")).to_have_text("    return 42")
    expect(right.locator("#B-f0")).to_contain_text("return 6 * 7")
    last = right.locator("#B-f8")
    expect(right.locator("#B-f0 tr.is-add .tok-c")).to_have_text("# the answer")
    expect(left.locator("#A-f0 tr.is-add .word").first).to_be_visible()
    expect(last.locator("[data-lazy]")).to_be_attached()
    expect(last.locator("tr.is-add")).to_have_count(0)
    last.scroll_into_view_if_needed()
    expect(last.locator("tr.is-add")).to_have_count(30)


def test_other_candidates_take_a_side_without_a_reload(reviewing, room):
    reviewing.locator("select[name=right]").select_option("D")
    expect(reviewing.locator(".diff-side[data-letter=D]").first).to_contain_text("return 43")
    expect(reviewing).to_have_url(re.compile("right=D"))
    reviewing.locator("#card-C .candidate-letter").click()
    expect(reviewing.locator(".diff-side[data-letter=C]").first).to_contain_text("return 40 + 2")
    expect(reviewing.locator("#card-C")).to_have_class(re.compile("is-right"))
    for tab, words in (("Trajectory", "cat app.py"), ("Tests", "test_answer"), ("Checks", "not inspected yet")):
        reviewing.get_by_role("link", name=re.compile(f"^{tab}")).click()
        expect(reviewing.locator("#workbench")).to_contain_text(words)


def test_a_citation_scrolls_to_its_line_and_marks_it(reviewing):
    reviewing.locator("#B-f8").scroll_into_view_if_needed()
    line = reviewing.locator("#B-f0-R2")
    assert not line.evaluate(IS_IN_VIEW_OF_ITS_COLUMN)
    reviewing.locator(".evidence-place", has_text="app.py:2").first.click()
    expect(line).to_have_class(re.compile("is-target"))
    expect(line).to_have_class(re.compile("is-cited"))
    expect(line).to_be_in_viewport()
    assert line.evaluate(IS_IN_VIEW_OF_ITS_COLUMN)


def test_an_edited_score_changes_what_training_gets_by_the_servers_own_numbers(reviewing, room):
    after = reviewing.locator("#advantage-A .candidate-after")
    before = after.inner_text()
    reviewing.get_by_label("A minimality").fill("1")
    expect(reviewing.locator("#advantage-panel")).to_contain_text("with your draft")
    expect(reviewing.locator("section.tier-2 #card-A, section.tier-3 #card-A")).to_be_visible()
    expect(after).not_to_have_text(before)
    expect(reviewing.locator("[data-edit-list]")).to_contain_text("A minimality 5 → 1")
    expect(reviewing.locator("[data-save]")).to_have_attribute("title", "A correction needs a reason")
    reviewing.get_by_role("button", name="Undo").click()
    expect(reviewing.locator("section.tier-1 #card-A")).to_be_visible()
    expect(after).to_have_text(before)
    assert Verdict.objects.count() == 1


def test_an_edit_made_while_a_draft_is_on_its_way_stays(reviewing):
    first = []

    def hold_the_first(route):
        route.continue_() if first else first.append(route)

    reviewing.route("**/draft", hold_the_first)
    with reviewing.expect_request("**/draft"):
        reviewing.get_by_label("A minimality").fill("1")
    reviewing.get_by_label("A approach").fill("4")
    first[0].continue_()
    expect(reviewing.locator("[data-edit-list] li")).to_have_text(["A approach 5 → 4", "A minimality 5 → 1"])
    expect(reviewing.locator(".ranking-head")).to_contain_text("your draft, not saved")
    expect(reviewing.get_by_label("A approach")).to_have_value("4")


def test_a_correction_with_a_cited_selection_is_saved_and_approved(reviewing, room):
    group = room[2]
    reviewing.get_by_label("A minimality").fill("2")
    reviewing.get_by_label("Reason").first.fill("it rewrites more than the task asks")
    reviewing.locator("#A-f0 tr.is-add").evaluate(SELECT)
    reviewing.get_by_role("button", name="Cite selection").click()
    cited = reviewing.locator("[data-cite-row]").first
    expect(cited.get_by_label("place", exact=True)).to_have_value("app.py:2")
    expect(cited.get_by_label("quoted words")).to_have_value("return 42")
    cited.get_by_label("what it shows").select_option("minimality")
    reviewing.get_by_role("button", name="Save correction").click()
    expect(reviewing.get_by_text("Your correction is saved")).to_be_visible()
    expect(reviewing.locator(".ranking-head")).to_contain_text("verdict 2, rita")
    reviewing.get_by_role("button", name="Approve verdict").click()
    expect(reviewing.get_by_text("Approved: version 1")).to_be_visible()
    decision = Decision.objects.get(group=group)
    assert (decision.by, decision.verdict.author.username) == ("rita", "rita")
    assert decision.verdict.candidates.get(trajectory__letter="A").scores["minimality"] == 2


def test_a_citation_quotes_the_code_alone_and_no_line_that_was_not_selected(reviewing):
    cited_row = reviewing.locator("[data-cite-row]").first

    def cited(place: str, quote: str) -> None:
        reviewing.get_by_role("button", name="Cite selection").click()
        expect(reviewing.locator("[data-cite-note]")).to_have_text(f"Cited B {place}")
        expect(cited_row.get_by_label("quoted words")).to_have_value(quote)
        cited_row.get_by_label("place", exact=True).fill("")

    badged = reviewing.locator("#B-f0-R2")
    expect(badged.locator(".cite-mark").first).to_be_visible()
    badged.evaluate(SELECT)
    cited("app.py:2", "return 6 * 7  # the answer")
    badged.locator(".code").click(click_count=3)
    cited("app.py:2", "return 6 * 7  # the answer")
    reviewing.locator("#B-f1").scroll_into_view_if_needed()
    lines = [f"value_{n} = compute({n}, table[0])" for n in range(2)]
    reviewing.locator("#B-f1-R2 .code").click(click_count=3)
    cited("extra/module_0.py:2", lines[0])
    reviewing.evaluate(SELECT_FROM_TO, ["#B-f1-R2", "#B-f1-R3"])
    cited("extra/module_0.py:2", lines[0])
    reviewing.evaluate(SELECT_FROM_TO, ["#B-f1-R2", "#B-f1-R4"])
    cited("extra/module_0.py:2-3", "\n    ".join(lines))


@pytest.mark.parametrize("typed", ["7", "0", "4.5"])
def test_a_score_that_does_not_count_is_said_and_cannot_be_saved(reviewing, typed):
    lower(reviewing)
    score, said = reviewing.get_by_label("A approach"), reviewing.locator("[data-edit-wrong]")
    save = reviewing.locator("[data-save]")
    expect(save).to_have_attribute("aria-disabled", "false")
    expect(reviewing.locator(".ranking-head")).to_contain_text("your draft, not saved")
    score.focus()
    reviewing.keyboard.type(typed)
    expect(score).to_have_attribute("aria-invalid", "true")
    expect(said).to_have_text(f"A approach is {typed}: a score is a whole number from 1 to 5.")
    expect(save).to_have_attribute("aria-disabled", "true")
    score.fill("4")
    expect(said).to_be_empty()
    expect(save).to_have_attribute("aria-disabled", "false")


def test_a_deadline_that_passes_is_said_and_dims_the_approval(page, server, room):
    user, _, group = room
    group.review_by = timezone.now() + timedelta(seconds=6)
    group.save()
    enter(page, server, user)
    open_group(page, server, group, SIDE_BY_SIDE)
    expect(page.get_by_text("The deadline has passed: reload to see what counts.")).to_be_visible()
    expect(page.locator("[data-approve]")).to_have_attribute("aria-disabled", "true")
    expect(page.locator("#deadline-banner").get_by_role("link", name="Reload")).to_be_visible()


def test_a_viewer_reads_scores_and_finds_identical_patches_named(page, server, room):
    run = room[1]
    patches = [small_patch(), wide_patch(), small_patch(), small_patch("43"), b""]
    group = make_held(run, task="twins", patches=patches)
    enter(page, server, make_user(username="vera", role=Role.VIEWER, team=run.team))
    open_group(page, server, group, SIDE_BY_SIDE)
    expect(page.get_by_label("A approach")).to_be_disabled()
    expect(page.locator("#card-A .twins")).to_have_text("= C")
    expect(page.locator("#card-B .twins")).to_have_count(0)
    caption = page.locator(".credit-strip text", has_text="failed, own scale").bounding_box()
    sums = page.locator(".sum-check").bounding_box()
    assert caption["x"] + caption["width"] <= sums["x"]


def test_a_page_that_is_not_there_keeps_the_way_to_the_others(page, server, room, watch):
    watch.expected_statuses = {404}
    enter(page, server, room[0])
    page.goto(f"{server}/groups/987654/")
    expect(page.get_by_role("heading", name="There is nothing here")).to_be_visible()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Groups").click()
    expect(page).to_have_url(f"{server}/groups/")


def test_a_stale_tab_gets_both_versions_and_loses_nothing(reviewing, context, server, room, watch):
    watch.expected_statuses = {409}
    group = room[2]
    lower(reviewing)
    other = context.new_page()
    open_group(other, server, group, SIDE_BY_SIDE)
    lower(other)
    other.get_by_label("A minimality").fill("5")
    other.get_by_label("A approach").fill("4")
    other.get_by_role("button", name="Save correction").click()
    expect(other.get_by_text("Your correction is saved")).to_be_visible()

    reviewing.bring_to_front()
    reviewing.get_by_role("button", name="Save correction").click()
    expect(reviewing.get_by_text("saved first")).to_be_visible()
    expect(reviewing.get_by_label("A minimality")).to_have_value("2")
    expect(reviewing.get_by_label("A approach")).to_have_value("4")
    expect(reviewing.get_by_label("Reason").first).to_have_value("it rewrites more than the task asks")
    reviewing.get_by_role("button", name="Save correction").click()
    expect(reviewing.get_by_text("Your correction is saved")).to_be_visible()
    scores = decisions.newest_verdict(group).candidates.get(trajectory__letter="A").scores
    assert (scores["approach"], scores["minimality"]) == (4, 2)
    assert Verdict.objects.filter(group=group).count() == 3


def test_everything_is_done_without_javascript(new_context, server, room, watch):
    user, _, group = room
    context = new_context(java_script_enabled=False)
    watch.over(context)
    page = context.new_page()
    sign_in(page, server, user)
    page.get_by_role("link", name=re.compile("Queue")).click()
    page.get_by_role("button", name="Claim the first free").click()
    expect(page.get_by_text("claimed by you")).to_be_visible()
    page.goto(f"{server}/groups/{group.pk}/{SIDE_BY_SIDE}")
    for criterion in CRITERIA:
        expect(page.locator(f'[name="score-A-{criterion}"]')).to_have_value("5")
    lower(page)
    page.get_by_role("button", name="Save correction").click()
    expect(page.get_by_text("Your correction is saved")).to_be_visible()
    page.get_by_role("link", name="Open the advantages").click()
    expect(page.locator(".sum-check")).to_contain_text("sums kept")
    page.go_back()
    page.get_by_role("button", name="Approve verdict").click()
    expect(page.get_by_text("Approved: version 1")).to_be_visible()
    assert Decision.objects.get(group=group).verdict.author == user


def test_a_leak_is_confirmed_in_a_dialog_with_its_place(reviewing, room):
    group = room[2]
    reviewing.locator("[data-dialog=leak]").click()
    dialog = reviewing.locator("#leak")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Candidate").select_option("B")
    dialog.get_by_label("Reason").fill("it read the answer")
    dialog.get_by_label("Where").select_option("event")
    dialog.get_by_label("Place").fill("1")
    dialog.get_by_label("Words that stand there").fill("cat app.py")
    dialog.get_by_role("button", name="Confirm").click()
    expect(reviewing.get_by_text("B is confirmed: leak")).to_be_visible()
    expect(reviewing.locator("#card-B")).to_contain_text("confirmed leak")
    assert group.trajectories.get(letter="B").integrity == "leak"
