"""What a group's page puts on paper: all that is open on it, one part under the other, and nothing to press."""

from playwright.sync_api import expect

from tests.browser.rooms import enter, make_held, make_room, open_group

CLIPPED = """() => ["body", "#ranking", "#diffs", ".evidence-panel", ".evidence-list"]
  .filter((name) => {
    const part = document.querySelector(name);
    return getComputedStyle(part).overflowY !== "visible" && part.scrollHeight > part.clientHeight + 1;
  })"""


def test_a_groups_page_goes_whole_onto_paper(page, server):
    user, run = make_room()
    group = make_held(run)
    enter(page, server, user)
    open_group(page, server, group, "?left=A&right=B")
    expect(page.locator("#B-f0 tr.is-add").first).to_be_visible()
    page.emulate_media(media="print", color_scheme="dark")
    for gone in (page.locator(".topbar"), page.locator("#correction"), page.locator("#decision")):
        expect(gone).to_be_hidden()
    for kept in ("#group-head", "#card-A", "#B-f0", "#B-f8", ".evidence-item", "#advantage-panel"):
        expect(page.locator(kept).first).to_be_visible()
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate("() => getComputedStyle(document.documentElement).colorScheme") == "light"
    closed = page.locator("#B-f8 .diff-closed")  # out of sight: nobody opened it, and the paper says so
    expect(closed).to_contain_text("Open 32 lines")
    assert closed.bounding_box()["height"] < 60
