"""Rows for the benchmarks, many at a time: groups that were graded and wait for a person, others that are done.

python -m bench.rows held LIFE STEP MANY | overdue | session | run NAME  works on the server's folder (GAGAR_DATA_DIR).
"""

import json
import sys
from datetime import timedelta
from decimal import Decimal

import django

ROLLOUTS = 16
FACTORS = (1.0, 0.9, 0.9, 0.85, 0.625, 0.4, 0.4, 0.2)  # of the passes: half of the rollouts


def held_groups(run, life, *, step: int, many: int) -> list:
    """Graded groups that a person has to decide, each with a valid verdict of 8 passes."""
    from django.utils import timezone

    from grading.models import RolloutGroup, Task, Trajectory, Verdict, VerdictCandidate

    task = Task.objects.get_or_create(team=run.team, key="t", defaults={"statement": "a task"})[0]
    fields = {"run": run, "life": life, "task": task, "step": step, "group_size": ROLLOUTS, "state": "graded"}
    fields |= {"policy": run.policy, "method": run.method, "rubric": run.rubric, "held": True}
    fields |= {"hold_reason": "policy manual", "hold_probability": 1.0, "bodies_wanted": True, "bodies_ready": True}
    now = timezone.now()
    fields |= {"completed_at": now, "graded_at": now, "inspected_at": now, "review_by": now + timedelta(hours=1)}
    groups = RolloutGroup.objects.bulk_create(RolloutGroup(key=f"held-{step}-{n}", **fields) for n in range(many))
    trajectories = Trajectory.objects.bulk_create(
        Trajectory(
            group=group, run=run, life=life, external_id=f"{group.key}/{n}", letter=chr(ord("A") + n),
            outcome="passed" if n < len(FACTORS) else "failed", content_digest=f"{n:064}",
            counts={"turns": 12, "tokens": 4096 + n},
        )
        for group in groups
        for n in range(ROLLOUTS)
    )  # fmt: skip
    verdicts = Verdict.objects.bulk_create(
        Verdict(group=group, rubric=run.rubric, grader="static", is_valid=True, reply={}) for group in groups
    )
    VerdictCandidate.objects.bulk_create(
        VerdictCandidate(
            verdict=verdict, trajectory=trajectories[place * ROLLOUTS + n], scores={}, rank=n, factor=factor,
            weighted_score=Decimal(5) - Decimal(n) / 5, tier=1 if factor > 0.85 else 2 if factor > 0.625 else 3,
        )
        for place, verdict in enumerate(verdicts)
        for n, factor in enumerate(FACTORS)
    )  # fmt: skip
    return groups


def done_groups(run, life, *, many: int, rollouts: int, a_step: int = 100) -> None:
    """Groups of many steps that were delivered: what the list of groups goes through."""
    from grading.models import RolloutGroup, Task, Trajectory

    task = Task.objects.get_or_create(team=run.team, key="t", defaults={"statement": "a task"})[0]
    fields = {"run": run, "life": life, "task": task, "group_size": rollouts, "state": "delivered", "version": 1}
    groups = RolloutGroup.objects.bulk_create(
        (RolloutGroup(key=f"done-{n}", step=n // a_step, **fields) for n in range(many)), batch_size=1000
    )
    Trajectory.objects.bulk_create(
        (
            Trajectory(
                group=group, run=run, life=life, external_id=f"{group.key}/{n}", content_digest=f"{n:064}",
                outcome="passed" if n else "failed",
            )
            for group in groups
            for n in range(rollouts)
        ),
        batch_size=1000,
    )  # fmt: skip


def session_of_admin() -> dict[str, str]:
    """The cookies of a signed-in administrator."""
    from django.test import Client

    from grading.models import User

    client = Client()
    client.force_login(User.objects.get(is_superuser=True))
    return {name: morsel.value for name, morsel in client.cookies.items()}


def another_run(name: str) -> str:
    """A run like that of the benchmark. Returns: its token."""
    from grading.models import MachineToken, Run

    run = Run.objects.get(public_id="bench")
    run.pk, run.public_id = None, name
    run.save()
    return MachineToken.issue(run, name="bench", purposes=("ingest", "train"))[1]


def main(command: str, *arguments: str) -> object:
    from django.utils import timezone

    from grading.models import RolloutGroup, Run

    if command == "session":
        return session_of_admin()
    if command == "run":
        return another_run(*arguments)
    if command == "overdue":
        return RolloutGroup.objects.awaiting_review().update(review_by=timezone.now())
    life, step, many = map(int, arguments)
    run = Run.objects.get(public_id="bench")
    groups = held_groups(run, run.lives.get(n=life), step=step, many=many)
    return [[group.pk, group.key, group.verdicts.get().pk] for group in groups]


if __name__ == "__main__":
    django.setup()
    print(json.dumps(main(*sys.argv[1:])))
