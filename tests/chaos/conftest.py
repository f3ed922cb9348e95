"""Fixtures of the chaos suite, and the counts it prints."""

import pytest

from tests.chaos import counts
from tests.chaos.site import ChaosSite, Forker


@pytest.fixture(scope="session")
def forker(django_db_setup, tmp_path_factory):
    made = Forker(tmp_path_factory.mktemp("forks"))
    yield made
    made.stop()


@pytest.fixture
def sites(transactional_db, forker, tmp_path):
    """Make sites, each with a run of its own."""
    made = []

    def make(**options) -> ChaosSite:
        made.append(ChaosSite(options.pop("forker", forker), tmp_path, **options))
        return made[-1]

    yield make
    for site in made:
        site.stop()


@pytest.fixture
def site(sites):
    return sites()


def pytest_terminal_summary(terminalreporter):
    for line in counts.REACHED:
        terminalreporter.write_line(line)
