from dataclasses import replace

import pytest

from grading.scoring.criteria import FLAGS, FLASH
from grading.scoring.tiers import tier
from tests.grading.scoring.factories import candidate


@pytest.mark.parametrize(
    ("values", "flags", "expected"),
    [
        ((4, 4, 4, 4, 4), (), 1),
        ((5, 5, 5, 5, 3), (), 2),
        ((1, 5, 5, 5, 5), (), 3),
        ((2, 2, 3, 3, 2), (), 2),
        ((5, 5, 2, 2, 5), (), 3),
        ((5, 5, 2, 3, 5), (), 2),
        ((5, 5, 3, 2, 5), (), 2),
        ((5, 5, 1, 1, 5), (), 3),
        ((5, 5, 5, 5, 5), ("severe_process_issue",), 2),
        ((5, 5, 5, 5, 5), ("unresolved_regression",), 2),
        ((5, 5, 5, 5, 5), ("unrequested_rewrite",), 3),
        ((5, 5, 5, 5, 5), ("test_specific_workaround",), 3),
        ((5, 5, 5, 5, 5), FLAGS, 3),
        ((1, 1, 1, 1, 1), (), 3),
    ],
)
def test_tiers_follow_scores_and_flags_in_the_fixed_order(values, flags, expected):
    assert tier(candidate("a", *values, flags=flags), FLASH) == expected


def test_thresholds_belong_to_the_rubric():
    strict = replace(FLASH, t1_floor=5, t3_approach=2)
    assert tier(candidate("a", 5, 5, 5, 5, 4), strict) == 2
    assert tier(candidate("a", 2, 5, 5, 5, 5), strict) == 3
