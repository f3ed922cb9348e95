"""Patches of 200 files: the page opens with the first of them, the rest comes as a reader scrolls to it."""

import pytest
from playwright.sync_api import expect

from grading.review.pages.aligned import PAIRS_AT_ONCE
from tests.browser.patched import candidates, file_patch
from tests.browser.rooms import enter, make_held, make_room, open_group

FILES = 200
PAIRS = ".file-pair:has(.diff-file)"


def patch_of_many(answer: str) -> bytes:
    return "".join(
        file_patch(f"src/part_{n:03}.py", None, [f"ANSWER = {answer}", f"N = {n}"]) for n in range(FILES)
    ).encode()


@pytest.fixture
def comparing(page, server):
    user, run = make_room()
    patches = [patch_of_many("41"), patch_of_many("42"), *candidates()[2:]]
    group = make_held(run, patches=patches, scores={"A": 5, "B": 5, "C": 5})
    enter(page, server, user)
    open_group(page, server, group, "?left=A&right=B")
    return page


def test_files_out_of_sight_come_by_scrolling_until_all_are_there(comparing):
    expect(comparing.locator(PAIRS)).to_have_count(PAIRS_AT_ONCE)
    rest = comparing.locator("[data-rest-files]")
    seen = PAIRS_AT_ONCE
    while seen < FILES:
        rest.scroll_into_view_if_needed()
        comparing.wait_for_function(
            "([pairs, seen]) => document.querySelectorAll(pairs).length > seen", arg=[PAIRS, seen]
        )
        seen = comparing.locator(PAIRS).count()
    expect(comparing.locator(PAIRS)).to_have_count(FILES)
    expect(rest).to_have_count(0)


def test_a_line_of_a_file_that_is_not_there_yet_is_reached_by_its_address_with_one_request(comparing):
    last, asked = f"A-f{FILES - 1}-R2", []
    comparing.on("request", lambda request: "/pairs/" in request.url and asked.append(request.url))
    comparing.evaluate("(last) => { location.hash = last; }", last)
    expect(comparing.locator(f"#{last}")).to_be_in_viewport()
    assert len(asked) == 1 and f"to=A-f{FILES - 1}" in asked[0]


def test_a_line_selected_between_two_results_cites_the_patch_that_added_it(page, server):
    user, run = make_room()
    group = make_held(run, patches=candidates(), scores={"A": 5, "B": 5, "C": 5})
    enter(page, server, user)
    open_group(page, server, group, "?left=A&right=B&tab=interdiff")
    added = page.locator("article[data-path='README.md'] tr.is-add", has_text="takes a default")
    added.locator(".code").click(click_count=3)
    page.get_by_role("button", name="Cite selection").click()
    expect(page.locator("[data-cite-note]")).to_have_text("Cited B README.md:5")
    cited = page.locator("[data-cite-row]").first
    expect(cited.get_by_label("candidate")).to_have_value("B")
    expect(cited.get_by_label("place", exact=True)).to_have_value("README.md:5")
    expect(cited.get_by_label("quoted words")).to_have_value("`get` takes a default.")
