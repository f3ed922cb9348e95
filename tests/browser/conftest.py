"""Chromium looks at the real site. Without Chromium these tests are skipped, and say so."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.watching import Watch

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HERE = Path(__file__).parent
SLOWEST_MS = 30_000  # a machine with two cores that runs other tests besides

expect.set_options(timeout=SLOWEST_MS)


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason="no Chromium on this machine"))


@pytest.fixture(scope="session")
def browser_type_launch_args():
    return {"executable_path": CHROMIUM, "args": ["--no-sandbox", "--disable-dev-shm-usage"]}


@pytest.fixture(scope="session")
def browser_context_args():
    return {"viewport": {"width": 1640, "height": 1000}, "color_scheme": "light"}


@pytest.fixture
def watch():
    """What went wrong on any page of a test; asserted at its end."""
    seen = Watch()
    yield seen
    assert seen.faults == []


@pytest.fixture
def context(new_context, watch) -> BrowserContext:
    context = new_context()
    context.set_default_timeout(SLOWEST_MS)
    watch.over(context)
    return context
