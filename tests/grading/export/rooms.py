"""Groups that a model graded and a person approved or corrected."""

from grading.grader import job
from grading.grader.shape import Cited
from grading.models import Grading, RolloutGroup
from grading.review import corrections, decisions
from grading.states import Policy
from tests.factories import make_group, make_run, make_user
from tests.verdicts import line_of

KEY = "ghp_" + "a1B2" * 9
EVENTS = [
    {"kind": "action", "tool": "bash", "args": "cat app.py"},
    {"kind": "observation", "text": f"def answer(): return 41\nGITHUB={KEY}"},
]


def graded(grader: str = "single_pass", outcomes: str = "PPPF", **fields) -> RolloutGroup:
    """A group that a model graded through the job, and that waits for a person."""
    run = fields.pop("run", None) or make_run(policy=Policy.MANUAL, grader=grader)
    group = make_group(run=run, state="complete", outcomes=outcomes, events=EVENTS, **fields)
    job.drain()
    group.refresh_from_db()
    assert group.state == "graded", Grading.objects.latest("pk").problems
    return group


def approve(group: RolloutGroup, *, user=None):
    user = user or make_user(role="reviewer", team=group.run.team)
    verdict = decisions.newest_verdict(group)
    decisions.approve(group, seen_verdict=verdict.pk, user=user)
    return verdict


def correct(group: RolloutGroup, *, letter: str = "A", reason: str = "rewrites the parser", **scores: int):
    """Change scores of one candidate with a citation, and approve the correction."""
    user = make_user(role="reviewer", team=group.run.team)
    trajectory = group.trajectories.get(letter=letter)
    made = corrections.correct(
        group, parent=decisions.newest_verdict(group).pk, user=user, reason=reason,
        scores={trajectory.external_id: scores}, flags={},
        citations={trajectory.external_id: [Cited(c, line_of(trajectory)) for c in scores]},
    )  # fmt: skip
    group.refresh_from_db()
    approve(group, user=user)
    return made
