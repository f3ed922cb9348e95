"""Groups with a grader's stored verdict and a simulated reviewer's blind order: many at once."""

from decimal import Decimal

import numpy as np
from django.utils import timezone

from grading.models import Review, RolloutGroup, Run, Trajectory, Verdict, VerdictCandidate
from grading.scoring.criteria import CRITERIA, FLASH, Candidate
from grading.scoring.grades import grade
from grading.scoring.tiers import TIERS
from grading.states import GroupState
from tests.factories import make_life, make_task, make_user


def judged_groups(
    run: Run,
    *,
    groups: int,
    weights: np.ndarray,
    candidates: int = 5,
    reviewers: int = 1,
    beta: float = 3.0,
    seed: int = 0,
    scores=(3, 4, 4, 5, 5),
    with_tiers: bool = False,
) -> list[RolloutGroup]:
    """Decided groups: `candidates` passes and a failure each, scored at random; people order by `weights`."""
    rng, life, task = np.random.default_rng(seed), make_life(run=run), make_task(team=run.team)
    people = [make_user(role="reviewer", team=run.team) for _ in range(reviewers)]
    fields = {"run": run, "life": life, "task": task, "step": 1, "group_size": candidates + 1, "is_blind": True}
    fields |= {"state": GroupState.DECIDED, "graded_at": timezone.now(), "rubric": run.rubric, "method": run.method}
    made = RolloutGroup.objects.bulk_create(RolloutGroup(key=f"judged-{seed}-{n}", **fields) for n in range(groups))
    for n, group in enumerate(made):
        scores_GC = rng.choice(np.array(scores), (candidates, len(CRITERIA)))
        worth_G = beta * scores_GC @ weights + rng.gumbel(size=candidates)
        order = [[f"{group.key}/{g}"] for g in np.argsort(-worth_G)]
        _stored(run, group, scores_GC, order, people[n % reviewers], with_tiers=with_tiers)
    return made


def _stored(run: Run, group: RolloutGroup, scores_GC: np.ndarray, order, reviewer, *, with_tiers: bool) -> None:
    rows = Trajectory.objects.bulk_create(
        Trajectory(
            group=group, run=run, life=group.life, external_id=f"{group.key}/{g}", letter=chr(65 + g),
            outcome="passed" if g < len(scores_GC) else "failed", content_digest=f"{group.pk}-{g}",
        )
        for g in range(len(scores_GC) + 1)
    )  # fmt: skip
    said = [
        Candidate(row.external_id, dict(zip(CRITERIA, map(int, scores), strict=True)))
        for row, scores in zip(rows, scores_GC, strict=False)
    ]
    store_grades(group, said, {row.external_id: row for row in rows}, grader=run.grader)
    grades = grade(said, FLASH)
    tiers = dict(grades.tier) if with_tiers else {}
    Review.objects.create(
        group=group, reviewer=reviewer, is_blind=True, blind={"order": order, "flags": {}, "tiers": tiers},
        ranked_at=timezone.now(),
    )  # fmt: skip


def store_grades(group: RolloutGroup, said: list[Candidate], rows: dict, **fields) -> Verdict:
    """One valid verdict with these scores, as `verdicts.store` would write it."""
    grades = grade(said, FLASH)
    verdict = Verdict.objects.create(group=group, rubric=group.rubric, is_valid=True, reply={}, **fields)
    place = {id: k for tier in TIERS for k, tied in enumerate(grades.ranking[tier]) for id in tied}
    VerdictCandidate.objects.bulk_create(
        VerdictCandidate(
            verdict=verdict, trajectory=rows[one.id], scores=dict(one.scores), tier=grades.tier[one.id],
            rank=place[one.id], factor=float(grades.factor[one.id]), flags=sorted(one.flags),
            weighted_score=Decimal(str(float(grades.weighted_score[one.id]))),
        )
        for one in said
    )  # fmt: skip
    return verdict
