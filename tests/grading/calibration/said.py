"""Decided groups that people have answered, for tests: the grader's scores, orders given blind, answers beside them."""

from grading.models import Review, RolloutGroup, Run
from grading.scoring.criteria import CRITERIA
from grading.states import GroupState
from tests.factories import make_group, make_user
from tests.verdicts import add_verdict

DECIDED = GroupState.DECIDED


def answered(
    run: Run, scores: dict[str, int], *, outcomes: str = "", verdict: dict | None = None, **fields
) -> RolloutGroup:
    """A decided group whose grader gave each letter this score throughout; `verdict`: more fields of its verdict."""
    group = make_group(run=run, state=DECIDED, outcomes=outcomes or "P" * len(scores) + "F", **fields)
    add_verdict(group, scores, **verdict or {})
    return group


def ids(group: RolloutGroup, tied: str) -> list[str]:
    known = {t.letter: t.external_id for t in group.trajectories.all()}
    return [known[letter] for letter in tied]


def blind(group: RolloutGroup, *tied: str, user=None, **fields) -> Review:
    """An order given before the verdict was shown: "B", "AC" is B first, then A and C tied."""
    said = {"order": [ids(group, one) for one in tied], "flags": {}, "tiers": {}, "notes": ""}
    return _review(group, user, blind=said, is_blind=True, **fields)


def shown(group: RolloutGroup, scores: dict[str, int], tiers: dict[str, list[str]], *, user=None, **fields) -> Review:
    """An answer with the verdict in sight: one score a letter, and the ranking by tier name."""
    reply = {"candidates": [{"id": ids(group, a)[0], "scores": dict.fromkeys(CRITERIA, s)} for a, s in scores.items()]}
    ranking = {tier: [ids(group, one) for one in tied] for tier, tied in tiers.items()}
    said = {"reply": reply, "ranking": ranking, "is_changed": True}
    return _review(group, user, answer=said, **fields)


def _review(group, user, **fields) -> Review:
    user = user or make_user(role="reviewer", team=group.run.team)
    seen = group.verdicts.filter(purpose="training").last()
    return Review.objects.create(group=group, reviewer=user, state="submitted", seen_verdict=seen, **fields)
