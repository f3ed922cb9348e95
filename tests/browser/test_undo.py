"""What a correction lists, and what is left of it when it is taken back."""

import re

import pytest
from playwright.sync_api import expect

from grading.models import Verdict
from grading.review import decisions
from tests.browser.rooms import enter, lower, make_held, make_room, open_group, small_patch, wide_patch


def open_page(page, server, **fields):
    user, run = make_room()
    group = make_held(run, **fields)
    enter(page, server, user)
    open_group(page, server, group, "?left=C&right=A")
    return group


def lower_approach(page, letter: str, score: str) -> None:
    with page.expect_response("**/draft"):
        page.get_by_label(f"{letter} approach").fill(score)
    page.get_by_label(f"{letter} approach").blur()


@pytest.mark.parametrize("how", ["undone", "typed back"])
def test_a_score_taken_back_leaves_no_edit_that_nobody_made(page, server, how):
    group = open_page(page, server, scores={"A": 4, "B": 2, "C": 5})
    factor = page.locator("#card-A .candidate-factor")
    before = factor.inner_text()
    lower_approach(page, "C", "3")
    expect(page.locator("section.tier-2 #card-C")).to_be_visible()
    expect(page.locator("#place-A")).to_have_value("1")
    with page.expect_response("**/draft"):
        page.keyboard.press("u") if how == "undone" else page.get_by_label("C approach").fill("5")
    expect(page.locator("section.tier-1 #card-C")).to_be_visible()
    expect(page.locator("[data-edit-list] li")).to_have_count(0)
    expect(page.locator("#place-A")).to_have_value("2")
    expect(factor).to_have_text(before)
    expect(page.locator(".ranking-head")).to_contain_text("verdict 1,")
    expect(page.locator("#advantage-panel")).not_to_contain_text("with your draft")

    lower(page, score="4", letter="C")
    page.get_by_role("button", name="Save correction").click()
    expect(page.get_by_text("Your correction is saved")).to_be_visible()
    assert Verdict.objects.count() == 2
    assert decisions.newest_verdict(group).candidates.get(trajectory__letter="C").tier == 1


def test_a_twin_shows_the_score_it_takes_over_and_the_list_names_it(page, server):
    patches = [small_patch(), wide_patch(), small_patch(), small_patch("43"), b""]
    open_page(page, server, scores={"A": 5, "B": 4, "C": 5}, patches=patches)
    twin, own = page.get_by_label("C minimality"), page.get_by_label("A minimality")
    own.fill("2")
    expect(twin).to_have_value("2")
    expect(twin).to_have_class(re.compile("is-taken"))
    assert page.locator("#card-A .candidate-w").inner_text() == page.locator("#card-C .candidate-w").inner_text()
    listed = page.locator("[data-edit-list] li")
    expect(listed).to_have_text(["A minimality 5 → 2, and of C, the identical patch"])
    own.fill("3")
    expect(twin).to_have_value("3")
    twin.fill("4")  # an edit of its own ends what it took over
    expect(page.locator(".ranking-head")).to_contain_text("your draft, not saved")
    expect(listed).to_have_text(["C minimality 5 → 4", "A minimality 5 → 3"])  # as the cards stand
    page.get_by_role("button", name="Undo").click()
    expect(listed).to_have_text(["A minimality 5 → 3, and of C, the identical patch"])
    expect(twin).to_have_value("3")
    for _ in range(2):
        page.get_by_role("button", name="Undo").click()
    expect(listed).to_have_count(0)
    expect(twin).to_have_value("5")
    expect(own).to_have_value("5")


def test_a_refused_page_shows_the_draft_everywhere_and_the_same_sides(page, server, watch):
    watch.expected_statuses = {400}
    open_page(page, server, scores={"A": 5, "B": 4, "C": 5})
    page.locator("select[name=right]").select_option("D")
    expect(page.locator("#workbench[data-right=D]")).to_be_visible()
    page.get_by_role("link", name=re.compile("^Tests")).click()
    expect(page.locator("#workbench[data-tab=tests][data-right=D]")).to_be_visible()
    page.get_by_label("C approach").fill("3")
    page.get_by_label("Reason").first.fill("another way than the task's")
    row = page.locator("[data-cite-row]").first
    row.get_by_label("candidate").select_option("C")
    row.get_by_label("place", exact=True).fill("nowhere.py:7")
    expect(page.locator("#advantage-panel")).to_contain_text("with your draft")
    after = page.locator("#advantage-C .candidate-after").inner_text()
    page.get_by_role("button", name="Save correction").click()
    expect(page.get_by_text("Not saved.").first).to_be_visible()
    expect(page.locator(".ranking-head")).to_contain_text("your draft, not saved")
    expect(page.locator("#advantage-panel")).to_contain_text("with your draft")
    expect(page.locator("#advantage-C .candidate-after")).to_have_text(after)
    expect(page.locator("[data-edit-list] li")).to_have_text(["C approach 5 → 3"])
    expect(page.locator("#workbench[data-tab=tests][data-left=C][data-right=D]")).to_be_visible()
