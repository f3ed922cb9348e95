"""A keyboard at the queue and at a group's page, for tests: what a reviewer does without a mouse."""

import re

from playwright.sync_api import expect

from tests.browser.rooms import enter

FOCUSED = re.compile("is-focused")


class Hands:
    """A keyboard, and eyes that wait for what a key must bring. There is no mouse."""

    def __init__(self, page, server):
        self.page, self.server = page, server

    def press(self, *keys: str) -> None:
        self.page.wait_for_load_state("domcontentloaded")  # before that the page listens to no key
        for key in keys:
            self.page.keyboard.press(key)

    def see(self, selector: str, words: str | None = None) -> None:
        found = self.page.locator(selector).first
        expect(found).to_be_visible()
        if words is not None:
            expect(found).to_contain_text(words)

    def arrive(self) -> int:
        """On a group's page, its numbers there. Returns: the group."""
        self.see("#advantage-panel .sum-check")
        return int(re.search(r"/groups/(\d+)/", self.page.url)[1])

    def read_diffs(self) -> None:
        self.see("#diffs tr.is-add")
        self.press("N", "N", "P", "p")
        self.see("#diffs .diff.is-split")
        self.press("p")
        expect(self.page.locator("#diffs .diff.is-split")).to_have_count(0)
        self.press("t")
        self.see(".event-line")
        self.press("d")
        self.see("#diffs tr.is-add")


def open_the_queue(page, server, user) -> Hands:
    enter(page, server, user)
    hands = Hands(page, server)
    page.goto(f"{server}/runs/")
    hands.press("g", "q")
    hands.see("#queue-rows tbody tr")
    page.wait_for_function("() => window.gagarKeys")  # on a loaded machine rows are seen before the scripts run
    hands.press("j")
    expect(page.locator("#queue-rows tbody tr").first).to_have_class(FOCUSED)
    hands.press("Enter")
    return hands


def correct_one(hands: Hands) -> None:
    """Lower the first candidate's second criterion, cite a change of it, say why, save."""
    page = hands.page
    hands.press("j")
    card = page.locator(".tier-1 .candidate-card").first
    expect(card).to_have_class(FOCUSED)
    letter = card.get_attribute("data-letter")
    while page.locator("#workbench").get_attribute("data-left") != letter:
        before = page.locator("#workbench").get_attribute("data-left")
        hands.press("]")
        expect(page.locator("#workbench")).not_to_have_attribute("data-left", before)
    hands.press("ArrowRight", "ArrowRight", "2")
    expect(page.locator("[data-edit-list] li")).to_have_count(1)
    hands.see(".ranking-head", "your draft, not saved")
    hands.press("N")
    page.wait_for_function("() => document.activeElement.closest('.diff-side')")
    hands.press("c")
    hands.see("[data-cite-note]", f"Cited {letter} app.py:2")
    hands.press("m")
    page.keyboard.type("a box of 5 words? n, a and o stay words")
    hands.press("Escape", "o")
    hands.see(".alerts", "Your correction is saved")
