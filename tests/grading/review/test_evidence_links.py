"""Where a citation leads: a test to the tests, a targeted check to the checks."""

import pytest

from grading.review.anchors import Place
from grading.review.pages import evidence
from grading.review.pages.sitting import Sitting
from tests.factories import make_run, make_user
from tests.verdicts import held_group


@pytest.mark.parametrize(("result", "tab"), [("test_answer", "tests"), ("check:1", "checks")])
def test_a_result_leads_to_the_tab_that_has_it(db, result, tab):
    run = make_run(policy="manual")
    group = held_group(run=run, outcomes="PPF")
    place = Place("result", None, None, None, None, None, None, result)
    sitting = Sitting(group, make_user(team=run.team))
    link = evidence.link(sitting, group.trajectories.get(letter="B"), place, ("A", "B"))
    assert link["href"].endswith(f"?left=A&right=B&tab={tab}")
