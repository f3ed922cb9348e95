"""Open an audit: pool rollouts of all arms by task and checkpoint, and draw who stands where under which letter."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from string import ascii_uppercase

from django.db import transaction

from grading import clock, wake
from grading.audit import distinct
from grading.errors import BadInput
from grading.models import Audit, AuditArm, AuditCandidate, AuditGroup, Run, Task, Team, Trajectory
from grading.models.audits import MOST_PER_ARM
from grading.states import Outcome

MOST_ARMS = 8  # times three rollouts: 24 letters
MOST_WINDOWS = 20
MOST_GROUPS = 500
TWICE = timedelta(seconds=10)
Window = tuple[int, int]


@dataclass(frozen=True)
class Arm:
    """A method or checkpoint to compare: a run, or its steps from `first_step` to `last_step`."""

    run: Run
    name: str = ""
    first_step: int | None = None
    last_step: int | None = None

    @property
    def label(self) -> str:
        steps = "" if self.first_step is None and self.last_step is None else f", {_steps(self)}"
        return (self.name or f"{self.run.name} ({self.run.method}){steps}")[:120]


@dataclass(frozen=True)
class Rollout:
    """What pooling reads of a rollout."""

    pk: int
    task: int
    step: int
    passed: bool


@transaction.atomic
def open_audit(
    *,
    team: Team,
    name: str,
    arms: Sequence[Arm],
    grader: str,
    model: str = "",
    windows: Sequence[Window] = (),
    task_keys: Sequence[str] = (),
    task_count: int | None = None,
    per_arm: int = MOST_PER_ARM,
    seed: int | None = None,
    user=None,
) -> Audit:
    """Open an audit and its groups.

    A task is in it where every arm has a rollout of it in the window: failures included, invalid ones not. At most
    `per_arm` of each arm are drawn; with `task_count`, so many tasks, those that are in the most windows first.
    The same seed draws the same audit from the same rows.

    Raises:
        BadInput: fewer than two arms, a run of another team, the online grader, or no task that all arms have.
    """
    _refuse_unfit(team, arms, windows, per_arm)
    distinct.refuse_online(grader, model, {arm.run.pk: arm.run for arm in arms}.values())
    seed = random.SystemRandom().getrandbits(31) if seed is None else seed
    draw, left_out = random.Random(seed), Counter()
    found = [_rollouts(arm, task_keys, left_out) for arm in arms]
    pools = _pools(found, windows or [_all_steps(found)], left_out)
    kept = _drawn(pools, task_count, draw)
    if not kept:
        raise BadInput(
            "no task has rollouts of every arm", got=dict(left_out) or "no rollouts", expected="at least one"
        )
    if len(kept) > MOST_GROUPS:
        raise BadInput("the audit is too large", got=f"{len(kept)} groups", expected=f"at most {MOST_GROUPS}: tasks=N")
    audit = Audit.objects.create(
        team=team, name=name.strip()[:120] or "Quality audit", rubric=arms[0].run.rubric, grader=grader, model=model,
        per_arm=per_arm, seed=seed, windows=[list(window) for window in windows], left_out=dict(left_out),
        created_by=user,
    )  # fmt: skip
    rows = [_arm_row(audit, number, arm) for number, arm in enumerate(arms)]
    draw.shuffle(kept)
    for place, key in enumerate(kept):
        _open_group(audit, rows, pools[key], key=key, place=place, draw=draw)
    wake.grading()
    return audit


@transaction.atomic
def open_once(*, team: Team, user, arms: Sequence[Arm], grader: str, windows: Sequence[Window], **asked) -> Audit:
    """`open_audit` for a form, which may be sent twice: what this person asked for a moment ago is that audit."""
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)  # the second of two waits here and sees the first's
    recent = Audit.objects.filter(team=team, created_by=user, grader=grader, created_at__gte=clock.now() - TWICE)
    for audit in recent:
        same_arms = [*audit.arms.values_list("name", flat=True)] == [arm.label for arm in arms]
        if same_arms and audit.windows == [list(window) for window in windows]:
            return audit
    return open_audit(team=team, user=user, arms=arms, grader=grader, windows=windows, **asked)


def _refuse_unfit(team: Team, arms: Sequence[Arm], windows: Sequence[Window], per_arm: int) -> None:
    if not 2 <= len(arms) <= MOST_ARMS:
        raise BadInput("an audit compares methods or checkpoints", got=len(arms), expected=f"2 to {MOST_ARMS} of them")
    if foreign := [arm.run.name for arm in arms if arm.run.team_id != team.pk]:
        raise BadInput("runs of one team are compared", got=", ".join(foreign)[:200], expected=f"runs of {team.name}")
    if len({arm.label for arm in arms}) < len(arms):
        raise BadInput("two arms have the same name", expected="a name for each, or other steps")
    if not 1 <= per_arm <= MOST_PER_ARM:
        raise BadInput("rollouts of an arm in a group", got=per_arm, expected=f"1 to {MOST_PER_ARM}")
    if len(windows) > MOST_WINDOWS or any(first > last for first, last in windows):
        raise BadInput("checkpoints", got=str(list(windows))[:100], expected="first-last, at most 20 of them")
    ends = sorted(windows)
    if any(one[1] >= other[0] for one, other in zip(ends, ends[1:], strict=False)):
        raise BadInput("checkpoints overlap", got=str(ends)[:100], expected="each step in one of them")


def _rollouts(arm: Arm, task_keys: Sequence[str], left_out: Counter) -> list[Rollout]:
    """Rollouts of an arm that can be judged."""
    rows = Trajectory.objects.counted().filter(group__run=arm.run, group__completed_at__isnull=False)
    rows = rows.exclude(outcome=Outcome.INFRA_INVALID).filter(group__task__is_broken=False)
    if arm.first_step is not None:
        rows = rows.filter(group__step__gte=arm.first_step)
    if arm.last_step is not None:
        rows = rows.filter(group__step__lte=arm.last_step)
    if task_keys:
        rows = rows.filter(group__task__key__in=task_keys)
    if arm.run.mask_truncated:
        rows = rows.filter(is_truncated=False)
    without = rows.filter(patch="", event_count=None)
    left_out["rollouts whose bodies were not kept"] += without.count()
    values = rows.exclude(patch="", event_count=None).order_by("pk")
    found = values.values_list("pk", "group__task", "group__step", "outcome", "integrity")
    return [Rollout(pk, task, step, out == Outcome.PASSED and not bad) for pk, task, step, out, bad in found]


def _all_steps(found: Sequence[Sequence[Rollout]]) -> Window:
    return 0, max((one.step for arm in found for one in arm), default=0)


Key = tuple[int, int]  # task, window
Pools = Mapping[Key, Sequence[Sequence[Rollout]]]  # rollouts of each arm


def _pools(found: Sequence[Sequence[Rollout]], windows: Sequence[Window], left_out: Counter) -> Pools:
    pools: dict[Key, list[list[Rollout]]] = defaultdict(lambda: [[] for _ in found])
    for number, rollouts in enumerate(found):
        for one in rollouts:
            at = next((n for n, (first, last) in enumerate(windows) if first <= one.step <= last), None)
            if at is not None:
                pools[one.task, at][number].append(one)
    whole = {key: arms for key, arms in pools.items() if all(arms)}
    left_out["tasks without a rollout of every arm"] += len(pools) - len(whole)
    return whole


def _drawn(pools: Pools, task_count: int | None, draw: random.Random) -> list[Key]:
    """The groups of all tasks, or of so many: a fixed sample over all checkpoints, as in Sec. 4.3."""
    times = Counter(task for task, _ in pools)
    tasks = sorted(times)
    draw.shuffle(tasks)
    tasks.sort(key=lambda task: -times[task])  # stable: drawn among equals
    kept = set(tasks if task_count is None else tasks[:task_count])
    return sorted(key for key in pools if key[0] in kept)


def _arm_row(audit: Audit, number: int, arm: Arm) -> AuditArm:
    return AuditArm.objects.create(
        audit=audit, number=number, name=arm.label, run=arm.run, first_step=arm.first_step, last_step=arm.last_step
    )


def _open_group(
    audit: Audit, arms: Sequence[AuditArm], pool: Sequence[Sequence[Rollout]], *, key: Key, place: int, draw
) -> None:
    group = AuditGroup.objects.create(audit=audit, task_id=key[0], window=key[1], place=place)
    chosen = [(arm, one) for arm, rollouts in zip(arms, pool, strict=True) for one in _some(rollouts, audit, draw)]
    draw.shuffle(chosen)  # rows are written in this order, so that their keys say nothing either
    letters = ascii_uppercase[: len(chosen)]
    AuditCandidate.objects.bulk_create(
        AuditCandidate(group=group, arm=arm, trajectory_id=one.pk, letter=letter, passed=one.passed)
        for letter, (arm, one) in zip(letters, chosen, strict=True)
    )


def _some(rollouts: Sequence[Rollout], audit: Audit, draw: random.Random) -> Iterable[Rollout]:
    return draw.sample(rollouts, min(audit.per_arm, len(rollouts)))


def tasks_of(audit: Audit) -> list[Task]:
    return list(Task.objects.filter(pk__in=audit.groups.values("task")).order_by("key"))


def _steps(arm: Arm) -> str:
    first = arm.first_step if arm.first_step is not None else "first"
    return f"steps {first} to {arm.last_step if arm.last_step is not None else 'last'}"
