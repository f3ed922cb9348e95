"""A page that was open while somebody signed in anew: it posts for nobody, loses nothing, and one click mends it."""

import pytest
from playwright.sync_api import expect

from grading.models import Decision, Role, Verdict
from tests.browser.rooms import make_held, make_room, open_group, sign_in
from tests.browser.test_kept import SIDE_BY_SIDE, assert_it_is_all_there, type_a_correction
from tests.factories import make_user


@pytest.fixture
def room():
    user, run = make_room()
    return user, run, make_held(run)


@pytest.fixture
def typing(page, server, room, watch):
    """A correction that is typed and not saved, by somebody who signed in by the form: that makes the forms' secret."""
    watch.expected_statuses = {403}
    sign_in(page, server, room[0])
    open_group(page, server, room[2], SIDE_BY_SIDE)
    type_a_correction(page)
    return page


def sign_in_elsewhere(context, server, user) -> None:
    """In another tab of the same browser."""
    tab = context.new_page()
    tab.goto(f"{server}/runs/")
    tab.locator(".account summary").click()
    tab.get_by_role("button", name="Sign out").click()
    expect(tab.get_by_role("button", name="Sign in")).to_be_visible()
    sign_in(tab, server, user)
    tab.close()


def test_a_part_that_is_refused_says_why_and_one_click_brings_all_back(typing, context, server, room):
    sign_in_elsewhere(context, server, room[0])
    typing.get_by_label("A approach").fill("4")
    expect(typing.locator("#request-failed")).to_be_visible()
    expect(typing.locator("#request-failed")).to_contain_text("signed in as rita now. Nothing was saved.")
    typing.get_by_role("button", name="Reload").click()
    expect(typing.locator("#kept-banner")).to_be_visible()
    expect(typing.get_by_label("A approach")).to_have_value("4")
    assert_it_is_all_there(typing)
    typing.get_by_role("button", name="Save correction").click()
    expect(typing.get_by_text("Your correction is saved")).to_be_visible()
    assert Verdict.objects.filter(author=room[0]).count() == 1


def test_a_save_that_is_refused_leads_back_to_what_was_typed(typing, context, server, room):
    sign_in_elsewhere(context, server, room[0])
    typing.get_by_role("button", name="Save correction").click()
    expect(typing.get_by_role("heading", name="This page is older than the sign-in")).to_be_visible()
    assert Verdict.objects.count() == 1
    typing.get_by_role("link", name="Open the page again").click()
    expect(typing).to_have_url(f"{server}/groups/{room[2].pk}/{SIDE_BY_SIDE}")
    expect(typing.locator("#kept-banner")).to_be_visible()
    assert_it_is_all_there(typing)
    typing.get_by_role("button", name="Save correction").click()
    expect(typing.get_by_text("Your correction is saved")).to_be_visible()


def test_what_one_person_typed_is_never_posted_as_another(typing, context, server, room):
    user, run, _ = room
    sign_in_elsewhere(context, server, make_user(username="otto", role=Role.REVIEWER, team=run.team))
    typing.get_by_role("button", name="Save correction").click()
    expect(typing.get_by_text("it is signed in as otto now")).to_be_visible()
    typing.get_by_role("link", name="Open the page again").click()
    expect(typing.locator("#advantage-panel .sum-check")).to_be_visible()
    expect(typing.locator("#kept-banner")).to_be_hidden()
    expect(typing.get_by_label("A minimality")).to_have_value("5")
    assert Verdict.objects.count() == 1 and not Decision.objects.exists()
    sign_in_elsewhere(context, server, user)
    typing.reload()
    expect(typing.locator("#kept-banner")).to_be_visible()
    assert_it_is_all_there(typing)


def test_a_sign_in_form_that_is_older_than_a_sign_in_leads_on(context, page, server, room, watch):
    watch.expected_statuses = {403}
    page.goto(f"{server}/sign-in?next=/queue/")
    other = context.new_page()
    sign_in(other, server, room[0])
    page.get_by_label("Name").fill("rita")
    page.get_by_label("Password").fill("whatever")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Open the page again").click()
    expect(page).to_have_url(f"{server}/queue/")
