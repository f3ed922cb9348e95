"""Signing in and out, as a person does it."""

from playwright.sync_api import expect

from tests.browser.rooms import make_room, sign_in


def test_a_person_signs_in_and_out(page, server):
    user, _ = make_room()
    page.goto(f"{server}/queue/")
    expect(page).to_have_url(f"{server}/sign-in?next=/queue/")
    sign_in(page, server, user)
    page.locator(".account summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()


def test_five_wrong_passwords_pause_the_name_in_plain_words(page, server, watch):
    watch.expected_statuses = {429}
    user, _ = make_room()
    for _ in range(4):
        sign_in(page, server, user, password="wrong horse")
        expect(page.get_by_text("Name and password do not fit")).to_be_visible()
    sign_in(page, server, user, password="wrong horse")
    expect(page.get_by_role("heading", name="Too many tries")).to_be_visible()
    expect(page.get_by_text("paused for 15 minutes")).to_be_visible()
