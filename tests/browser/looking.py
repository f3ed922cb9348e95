"""Pictures of a page in both themes and two sizes, left to look at."""

import itertools
from pathlib import Path

from playwright.sync_api import Page

PICTURES = Path(__file__).resolve().parents[2] / "screenshots"
SIZES = {"small": {"width": 1280, "height": 800}, "large": {"width": 2560, "height": 1440}}
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def picture(page: Page, name: str) -> None:
    """The page is loaded once; it must not be wider than the window."""
    for theme, (size, viewport) in itertools.product(("light", "dark"), SIZES.items()):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # no picture in mid-transition
        page.set_viewport_size(viewport)
        assert page.evaluate(TOO_WIDE) <= 0, f"{name} is too wide in {size}"
        page.screenshot(path=PICTURES / f"{name}-{theme}-{size}.png")
