"""The server is killed and started anew, in processes of its own, under a page on which somebody types."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.rooms import EVENTS, STATEMENT, small_patch, wide_patch
from tests.browser.test_kept import assert_it_is_all_there, type_a_correction
from tests.conftest import wait_for
from tests.real_processes import Site


def write_group(folder) -> None:
    """Two pass, one fails; which letters they get is drawn."""
    patches = {"a": small_patch(), "b": wide_patch(), "c": small_patch("43")}
    entries = [{"candidate_id": one, "resolved": one != "c", "patch": p.decode()} for one, p in patches.items()]
    task = {"instance_id": "answers", "problem_statement": STATEMENT}
    folder.mkdir(parents=True)
    (folder / "group.json").write_text(json.dumps({"group_id": "g1", "task": task, "candidates": entries}))
    for one in patches:
        own = folder / "candidates" / one
        own.mkdir(parents=True)
        (own / "events.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in EVENTS))


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path / "site").with_tables()
    yield site
    site.stop()


@pytest.fixture
def group_page(page, site, tmp_path, watch):
    """The page of a group that was imported and graded."""
    watch.expected_texts = ("net::ERR_CONNECTION_REFUSED", "net::ERR_CONNECTION_RESET")
    site.server = site.serve()
    write_group(tmp_path / "groups" / "g1")
    imported = site.start("manage.py", "import_trajectories", str(tmp_path / "groups"), "--run", "answers")
    assert imported.ended(within_s=120) == 0, imported.said
    wait_for(lambda: site.rows("SELECT 1 FROM grading_rolloutgroup WHERE state = 'graded'"), within_s=120)
    page.goto(f"{site.url}/sign-in?next=/queue/")
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(site.server.find(r"with the password (\S+)"))
    page.get_by_role("button", name="Sign in").click()
    page.locator("#queue-rows a.row-title").first.click()
    expect(page.locator("#advantage-panel .sum-check")).to_be_visible()
    expect(page.locator("[data-live-dot]")).to_have_text("live")
    return page


def test_a_server_that_is_killed_and_comes_back_costs_a_typing_person_nothing(group_page, site):
    typing, letter = (
        group_page,
        group_page.locator(".candidate-card input.score").first.get_attribute("id").split("-")[1],
    )
    type_a_correction(typing, letter)
    site.server.kill()
    wait_for(lambda: not site.running())  # its worker ends with it
    expect(typing.locator("#live-banner")).to_contain_text("Edits stay in this tab")
    approach = typing.get_by_label(f"{letter} approach")
    approach.fill("5" if approach.input_value() == "4" else "4")  # a score below that needs a citation of its own
    expect(typing.locator("#request-failed")).to_be_visible()
    expect(typing.locator("#request-failed")).to_contain_text("The server did not answer")
    assert_it_is_all_there(typing, letter)
    site.serve()
    expect(typing.locator("#live-banner")).to_be_hidden()
    expect(typing.locator("#request-failed")).to_be_hidden()
    expect(typing.locator("[data-edit-list] li")).to_have_count(2)
    expect(typing.locator("#advantage-panel")).to_contain_text("with your draft")
    assert_it_is_all_there(typing, letter)
    typing.get_by_role("button", name="Save correction").click()
    expect(typing.get_by_text("Your correction is saved")).to_be_visible()
    assert site.value("SELECT count(*) FROM grading_verdict WHERE grader = 'person'") == 1
