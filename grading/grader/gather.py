"""Read a group's rows and bodies into the shapes the cores take."""

from collections.abc import Collection, Iterable
from functools import lru_cache

from django.db.models import OuterRef, Subquery

from grading import bodies
from grading.grader.material import CandidateMaterial, GroupMaterial
from grading.integrity.events import event_text
from grading.models import Finding, RolloutGroup, Trajectory
from grading.review.diffs.parse import parse_patch
from grading.review.diffs.patch import Patch
from grading.scoring.rows import EffectiveGroup, Row, effective_group
from grading.states import Outcome

EVENTS_AT_ONCE = 64
COUNTING = ("group_id", "external_id", "outcome", "reward", "is_truncated", "integrity")  # not its hundreds of tests
KEPT_BYTES = 1_000_000  # a larger patch is parsed anew each time


def counted(group: RolloutGroup) -> list[Trajectory]:
    """The rollouts inside the group's statistics, in the order they came."""
    return list(group.trajectories.counted())


def rows_of(trajectories: Iterable[Trajectory]) -> list[Row]:
    return [row_of(t.external_id, t.outcome, t.reward, t.is_truncated, t.integrity) for t in trajectories]


def row_of(external_id: str, outcome: str, reward: str, is_truncated: bool, integrity: str) -> Row:
    """A rollout's columns as the scoring core takes them."""
    shaped = float(reward) if reward else None
    return Row(id=external_id, outcome=outcome, reward=shaped, truncated=is_truncated, integrity=integrity or None)


def standings(groups: Collection[RolloutGroup]) -> dict[int, EffectiveGroup]:
    """`effective` of many groups by their key, in one question; their runs and tasks were read with them."""
    rows: dict[int, list[Row]] = {group.pk: [] for group in groups}
    for group, *counting in Trajectory.objects.counted().filter(group__in=rows).values_list(*COUNTING):
        rows[group].append(row_of(*counting))
    return {
        group.pk: effective_group(
            rows[group.pk], mask_truncated=group.run.mask_truncated, broken_evaluation=group.task.is_broken
        )
        for group in groups
    }


def effective(group: RolloutGroup, trajectories: Iterable[Trajectory] | None = None) -> EffectiveGroup:
    """The rows as they count now: masked, with confirmed findings, and how dynamic sampling sees the group."""
    return effective_group(
        rows_of(group.trajectories.counted().only(*COUNTING) if trajectories is None else trajectories),
        mask_truncated=group.run.mask_truncated,
        broken_evaluation=group.task.is_broken,
    )


def cleared(group: RolloutGroup) -> set[str]:
    """External ids of rollouts whose finding a person withdrew last: no grader confirms it again."""
    last = Finding.objects.filter(trajectory=OuterRef("pk")).order_by("-pk").values("kind")[:1]
    withdrawn = group.trajectories.annotate(last_finding=Subquery(last)).filter(last_finding="")
    return set(withdrawn.values_list("external_id", flat=True))


def patch_of(trajectory: Trajectory) -> tuple[bytes, Patch]:
    """The patch as it was stored, and parsed; an empty one where none was submitted."""
    if trajectory.patch_bytes > KEPT_BYTES:
        return _read_patch(trajectory.patch)
    return kept_patch(trajectory.patch)


@lru_cache(maxsize=256)
def kept_patch(sha256: str) -> tuple[bytes, Patch]:
    """Bodies never change: a verdict's second look, under the group's lock, and a page's next part cost no parsing."""
    return _read_patch(sha256)


def _read_patch(sha256: str) -> tuple[bytes, Patch]:
    patch = bodies.read_bytes(sha256) if sha256 else b""
    return patch, parse_patch(patch)


def log_of(trajectory: Trajectory) -> bytes:
    return bodies.read_bytes(trajectory.log) if trajectory.log else b""


def material_of(group: RolloutGroup) -> GroupMaterial:
    """The group as graders and the validity check see it. Event bodies are read only where something is cited."""
    trajectories = counted(group)
    standing = {row.id: row for row in effective(group, trajectories).rows if row.valid}
    checks = checks_of(group)
    found = {t.external_id: candidate(t, checks.get(t.patch, ())) for t in trajectories if t.external_id in standing}
    raw_passed = {t.external_id for t in trajectories if t.outcome == Outcome.PASSED}
    passing = [m for id, m in found.items() if id in raw_passed]
    failing = [m for id, m in found.items() if id not in raw_passed]
    confirmed = [id for id in found if id in raw_passed and standing[id].integrity]
    return GroupMaterial.of(passing, failing, confirmed)


def checks_of(group: RolloutGroup) -> dict[str, list[str]]:
    """Names of the checks that were run on each patch: results of every rollout that has it, byte for byte."""
    names: dict[str, list[str]] = {}
    for patch, name in group.checks.filter(trajectory__isnull=False).values_list("trajectory__patch", "name"):
        names.setdefault(patch, []).append(name)
    return names


def candidate(trajectory: Trajectory, checks: Iterable[str] = ()) -> CandidateMaterial:
    """One rollout as graders see it, with the names of the checks that were run on its patch."""
    patch, parsed = patch_of(trajectory)
    return CandidateMaterial(
        id=trajectory.external_id,
        patch=patch,
        parsed=parsed,
        event_text=event_reader(trajectory.event_body),
        event_count=trajectory.event_count or 0,
        results=frozenset(test["name"] for test in trajectory.tests) | frozenset(checks),
    )


def event_reader(event_body: str):
    @lru_cache(maxsize=8)
    def chunk(number: int) -> list[str]:
        start = number * EVENTS_AT_ONCE
        return [event_text(event) for event in bodies.read_events(event_body, start, start + EVENTS_AT_ONCE)]

    def text(index: int) -> str | None:
        if not event_body:
            return None
        texts, at = chunk(index // EVENTS_AT_ONCE), index % EVENTS_AT_ONCE
        return texts[at] if at < len(texts) else None

    return text


def inspected(trajectory: Trajectory) -> tuple[str, Patch, list[dict], bytes]:
    """What the integrity detectors read: id, patch, events, log."""
    events = bodies.read_events(trajectory.event_body) if trajectory.event_body else []
    return trajectory.external_id, patch_of(trajectory)[1], events, log_of(trajectory)
