"""A held group and the reviewer before its page."""

import pytest

from grading.models import Role
from tests.factories import make_user
from tests.grading.review.group_page.forms import EVENTS
from tests.verdicts import add_verdict, held_group


@pytest.fixture
def group():
    held = held_group(outcomes="PPFI", events=EVENTS, hold_reason="policy manual")
    add_verdict(held, {"A": 5, "B": 3})
    return held


@pytest.fixture
def reviewer(group):
    return make_user(username="rita", role=Role.REVIEWER, team=group.run.team)


@pytest.fixture
def page(client, reviewer):
    client.force_login(reviewer)
    return client
