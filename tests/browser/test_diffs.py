"""Comparing two candidates in the browser: aligned, interdiff, split, white space, folds, size; by mouse and by key."""

import re

import pytest
from playwright.sync_api import expect

from grading.models import Check
from tests.browser.looking import TOO_WIDE, picture
from tests.browser.patched import candidates, file_patch
from tests.browser.rooms import enter, make_held, make_room, open_group

TOP_OF = "(one) => Math.round(one.getBoundingClientRect().top)"


@pytest.fixture
def room():
    user, run = make_room()
    return user, make_held(run, patches=candidates(), scores={"A": 5, "B": 5, "C": 5})


@pytest.fixture
def comparing(page, server, room):
    enter(page, server, room[0])
    open_group(page, server, room[1], "?left=A&right=B")
    return page


def test_files_stand_beside_each_other_and_a_blank_says_who_else_touches_them(comparing):
    pairs = comparing.locator(".file-pair:has(.diff-file)")
    expect(pairs).to_have_count(4)
    first = pairs.nth(0).locator(".diff-file-head")
    assert first.nth(0).evaluate(TOP_OF) == first.nth(1).evaluate(TOP_OF)
    expect(first).to_have_text([re.compile("src/cache.py"), re.compile("src/cache.py")])
    expect(pairs.nth(1).locator(".diff-blank")).to_have_text("Only B touches this file.")
    expect(pairs.nth(1).locator(".touched-by")).to_have_text("only B")
    expect(comparing.locator(".look-words")).to_contain_text("4 files, 1 touched by both")


def test_a_shared_change_is_folded_and_counted(comparing):
    fold = comparing.locator("#A-f0 .fold-toggle")
    expect(fold).to_contain_text("5 changed lines · same in 3 of 3")
    fold.click()
    expect(comparing.locator("#A-f0-R33")).to_be_visible()


@pytest.fixture
def twins():
    user, run = make_room()
    a, b, _, d, none = candidates()
    return user, make_held(run, patches=[a, a, b, d, none], scores={"A": 5, "B": 5, "C": 5})


def test_two_columns_whose_changes_are_all_shared_say_so_and_unfold(page, server, twins):
    enter(page, server, twins[0])
    open_group(page, server, twins[1], "?left=A&right=B")
    expect(page.locator(".all-shared")).to_contain_text("made by at least half of the 3 passing candidates")
    page.get_by_role("link", name="Unfold all").click()
    expect(page).to_have_url(re.compile("folds=open"))
    expect(page.locator(".fold-toggle")).to_have_count(0)
    expect(page.locator(".diff tr.is-add").first).to_be_visible()


def test_the_interdiff_shows_what_differs_between_the_results_and_no_more(comparing):
    comparing.keyboard.press("i")
    expect(comparing).to_have_url(re.compile("tab=interdiff"))
    file = comparing.locator("article[data-path='src/cache.py']")
    expect(file.locator("tr.is-add")).to_have_count(4)
    expect(file.locator("tr.is-del .code").last).to_have_text("        del self.store[key]")
    expect(file).not_to_contain_text("self.store.get(key, default)")
    expect(comparing.locator("article[data-path='README.md'] .touched-by")).to_have_text("only B touches it")
    new = comparing.locator("article[data-path='tests/test_cache.py']")
    expect(new).to_contain_text("A: no such file, B: has the file")
    comparing.locator("select[name=right]").select_option("C")
    expect(comparing.locator("article .adds")).to_have_text(["+1"])
    comparing.keyboard.press("W")
    expect(comparing.locator("article")).to_contain_text("All its changes are hidden: 1 changed line differs in white")


def test_white_space_is_hidden_on_demand_and_how_much_is_said(comparing):
    changed = comparing.locator("#B-f1 tr.is-add")
    expect(changed).to_have_count(7)
    comparing.keyboard.press("W")
    expect(comparing.locator(".look-words")).to_contain_text("3 changed lines of white space only hidden")
    expect(changed).to_have_count(5)
    expect(comparing.locator("#B-f1")).to_contain_text("Hidden: 2 changed lines differ in white space only.")
    comparing.keyboard.press("W")
    expect(changed).to_have_count(7)


def test_split_stands_before_beside_after_and_a_half_of_it_can_be_cited(comparing):
    comparing.keyboard.press("p")
    expect(comparing).to_have_url(re.compile("view=split"))
    added = comparing.locator("#B-f1-R5")
    removed = comparing.locator("#B-f1-L5")
    expect(added).to_have_text("        self.store = store or {}")
    assert added.evaluate(TOP_OF) == removed.evaluate(TOP_OF)
    added.click(click_count=3)
    comparing.get_by_role("button", name="Cite selection").click()
    expect(comparing.locator("[data-cite-note]")).to_have_text("Cited B src/cache.py:5")
    cited = comparing.locator("[data-cite-row]").first
    expect(cited.get_by_label("quoted words")).to_have_value("self.store = store or {}")
    comparing.keyboard.press("p")
    expect(comparing.locator("#diffs:not(.is-split)")).to_be_visible()


def test_files_and_changes_are_walked_by_key_and_the_place_stays(comparing):
    expect(comparing.locator("#B-f1-R5")).to_be_visible()
    for key, path in (("J", "README.md"), ("J", "settings.ini"), ("K", "README.md"), ("K", "src/cache.py")):
        comparing.keyboard.press(key)
        comparing.wait_for_function(f"() => document.activeElement.querySelector(`[data-path='{path}']`)")
    comparing.keyboard.press("N")
    comparing.wait_for_function("() => document.activeElement.matches('tr')")
    seen = comparing.evaluate("() => document.activeElement.textContent")
    comparing.keyboard.press("N")
    comparing.wait_for_function("(seen) => document.activeElement.textContent !== seen", arg=seen)
    comparing.keyboard.press("P")
    comparing.wait_for_function("(seen) => document.activeElement.textContent === seen", arg=seen)


def test_a_line_has_an_address_that_opens_it_from_any_tab(comparing, server, room):
    comparing.locator("#B-f1-R7 .ln").click()
    expect(comparing).to_have_url(re.compile("#B-f1-R7$"))
    comparing.goto(f"{server}/groups/{room[1].pk}/?left=A&right=B&tab=tests#B-f1-R7")
    expect(comparing).to_have_url(re.compile("tab=diff#B-f1-R7$"))
    expect(comparing.locator("#B-f1-R7")).to_have_class(re.compile("is-target"))
    expect(comparing.locator("#B-f1-R7")).to_be_in_viewport()


def test_results_and_checks_stand_beside_the_diff(page, server, room):
    user, group = room
    for letter, outcome in (("A", "passed"), ("B", "failed"), (None, "unknown")):
        Check.objects.create(
            group=group, trajectory=group.trajectories.filter(letter=letter or "-").first(), outcome=outcome,
            name=f"check:{letter}", key=outcome, asked={"argv": ["python", "-c", "print(1)"]}, sandbox="bubblewrap",
            words="ended by itself", duration_s=0.2, output=_body(b"\x1b[31mred\x1b[0m <b>no</b>\n"), output_bytes=20,
        )  # fmt: skip
    enter(page, server, user)
    open_group(page, server, group, "?left=D&right=B")
    heads = page.locator(".pair-head")
    expect(heads.nth(0)).to_contain_text("1 of 7 tests fails")
    expect(heads.nth(1)).to_contain_text("7 tests, none fails, 0 of 2 checks passed")
    page.keyboard.press("y")
    expect(heads.nth(0).locator(".beside")).to_contain_text("test_answer 41 != 42")
    expect(heads.nth(1).locator(".check-row").first).to_contain_text("check:B ended by itself python -c print(1)")
    heads.nth(1).locator("summary").first.click()
    expect(heads.nth(1).locator(".output").first).to_have_text("red <b>no</b>\n")
    page.keyboard.press("h")
    expect(page.locator(".check-row").first).to_be_visible()
    expect(page.get_by_role("link", name="Checks 2")).to_be_visible()


def _body(content: bytes) -> str:
    from grading import bodies

    return bodies.write_bytes(content)


def test_a_giant_line_and_a_long_file_stay_closed_and_open_in_parts(page, server):
    user, run = make_room()
    giant = file_patch("one.json", ["a" * 3_000_000], ["b" * 3_000_000])
    long = file_patch("long.py", None, [f"x_{n} = {n}" for n in range(5_000)])
    group = make_held(run, patches=[(giant + long).encode(), *candidates()[1:]], scores={})
    enter(page, server, user)
    open_group(page, server, group, "?left=A&right=B")
    expect(page.locator("#A-f0")).to_contain_text("2 changed lines, 6.0 MB")
    expect(page.locator("#A-f1")).to_contain_text("5,000 changed lines")
    page.locator("#A-f0").get_by_role("link", name="Open").click()
    expect(page.locator("#A-f0 .clip").first).to_have_text("… 2,998,000 more characters")
    page.locator("#A-f1").get_by_role("link", name="Open").click()
    expect(page.locator("#A-f1 tr.is-add")).to_have_count(2_000)
    page.locator("#A-f1").get_by_role("link", name="Open 2,000 more lines").click()
    expect(page.locator("#A-f1 tr.is-add")).to_have_count(4_000)
    page.evaluate("() => { location.hash = 'A-f1-R4500'; }")
    expect(page.locator("#A-f1-R4500")).to_be_in_viewport()
    assert page.evaluate(TOO_WIDE) <= 0


def test_every_look_is_a_link_that_needs_no_script(new_context, server, room, watch):
    context = new_context(java_script_enabled=False)
    watch.over(context)
    page = context.new_page()
    enter(page, server, room[0])
    page.goto(f"{server}/groups/{room[1].pk}/?left=A&right=B")
    for name, address in (("split", "view=split"), ("hide white space", "ws=ignore"), ("unfold", "folds=open")):
        page.get_by_role("link", name=re.compile(f"^{name}")).click()
        expect(page).to_have_url(re.compile(address))
    page.locator("#B-f1").get_by_role("link", name="Open").click()
    expect(page.locator(".diff.is-split #B-f1-R5")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Interdiff").click()
    expect(page).to_have_url(re.compile("tab=interdiff&view=split&ws=ignore"))
    page.get_by_role("link", name=re.compile("Open")).first.click()
    expect(page.locator("h1")).to_have_text("From the result of A to that of B")
    expect(page.locator(".diff")).to_be_visible()


def test_every_look_fits_and_is_pictured(page, server, room):
    enter(page, server, room[0])
    for name, query in (
        ("diff", "left=A&right=B"),
        ("diff-split", "left=A&right=B&view=split"),
        ("interdiff", "left=A&right=B&tab=interdiff&beside=results"),
    ):
        open_group(page, server, room[1], f"?{query}")
        expect(page.locator(".diff").first).to_be_visible()
        picture(page, name)


def test_word_marks_and_both_sides_are_said_by_the_address(page, server):
    user, run = make_room()
    group = make_held(run)
    enter(page, server, user)
    open_group(page, server, group, "?left=B&right=B")
    bench = page.locator("#workbench")
    expect(bench).to_have_attribute("data-right", "B")
    assert bench.get_attribute("data-left") != "B"
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))
    for _ in range(4):
        page.keyboard.press("]")
        expect(bench).not_to_have_attribute("data-left", "B")
    page.keyboard.press("w")
    expect(page).to_have_url(re.compile("words=off"))
    page.reload()
    expect(page.locator("#workbench.no-words")).to_be_visible()
    page.keyboard.press("w")
    expect(page.locator("#workbench.no-words")).to_have_count(0)
