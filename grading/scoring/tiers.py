"""Quality tiers, recomputed from scores and flags in a fixed order (App. A.1)."""

from grading.scoring.criteria import CRITERIA, Candidate, Rubric

TIERS = (1, 2, 3)
TIER_NAMES = {1: "T1", 2: "T2", 3: "T3"}
BARS_FROM_T1 = frozenset({"severe_process_issue", "unresolved_regression"})
SENDS_TO_T3 = frozenset({"unrequested_rewrite", "test_specific_workaround"})


def tier(candidate: Candidate, rubric: Rubric) -> int:
    """Place one candidate. T3 is asked first: a rewrite with perfect scores is T3.

    Args:
        candidate: scores and flags.
        rubric: whose thresholds count.
    Returns:
        1, 2 or 3.
    """
    scores = candidate.scores
    out_of_scope = scores["minimality"] <= rubric.t3_minimality and scores["side_effects"] <= rubric.t3_side_effects
    if candidate.flags & SENDS_TO_T3 or scores["approach"] <= rubric.t3_approach or out_of_scope:
        return 3
    if all(scores[c] >= rubric.t1_floor for c in CRITERIA) and not candidate.flags & BARS_FROM_T1:
        return 1
    return 2
