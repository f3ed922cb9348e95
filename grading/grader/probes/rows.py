"""Trials out of a folder or the database, and into rows again so that the real workspace opens them."""

from collections.abc import Sequence
from hashlib import sha256

from grading import bodies
from grading.grader.probes.trials import Trial, Try
from grading.importers.record import GroupRecord
from grading.models import Life, RolloutGroup, RubricVersion, Run, Task, Team, Trajectory
from grading.states import GroupState, Outcome


def of_record(record: GroupRecord, human: Sequence[Sequence[str]] = ()) -> Trial:
    """A group as an importer reads it."""
    tries = [
        Try(
            id=one.external_id,
            passed=one.outcome == Outcome.PASSED,
            patch=one.patch or b"",
            events=tuple(one.events or ()),
            tests=tuple(one.tests),
            log=one.log or b"",
            extra=one.extra,
            family=str(one.extra.get("model") or one.extra.get("family") or ""),
        )
        for one in record.candidates
        if one.outcome in (Outcome.PASSED, Outcome.FAILED)
    ]
    task = record.task
    return Trial(record.key, task.statement, tuple(tries), task.reference_patch, tuple(map(tuple, human)))


def of_group(group: RolloutGroup) -> Trial:
    """A stored group, read whole; `human` from the newest valid verdict of a person."""
    tries = []
    for row in group.trajectories.counted().filter(outcome__in=(Outcome.PASSED, Outcome.FAILED), integrity=""):
        tries.append(
            Try(
                id=row.external_id,
                passed=row.outcome == Outcome.PASSED,
                patch=bodies.read_bytes(row.patch) if row.patch else b"",
                events=tuple(bodies.read_events(row.event_body)) if row.event_body else (),
                tests=tuple(row.tests),
                log=bodies.read_bytes(row.log) if row.log else b"",
                extra=row.extra,
                family=str(row.extra.get("model") or ""),
            )
        )
    key = group.task.reference_patch
    verdict = group.verdicts.filter(is_valid=True, author__isnull=False).order_by("-pk").first()
    human = [tuple(tied) for groups in verdict.ranking.values() for tied in groups] if verdict else []
    reference = bodies.read_bytes(key) if key else None
    return Trial(group.key, group.task.statement, tuple(tries), reference, tuple(human))


def save(trial: Trial) -> RolloutGroup:
    """Rows of a trial in this database: a run of its own kind, that nobody trains on and no worker claims."""
    team, _ = Team.objects.get_or_create(slug="probes", defaults={"name": "Probes"})
    rubric = RubricVersion.objects.order_by("number").last()
    fields = {"team": team, "name": "Probes", "rubric": rubric, "kind": Run.Kind.IMPORTED, "grader": "external"}
    run, _ = Run.objects.get_or_create(public_id="probes", defaults=fields)
    life = Life.objects.create(run=run, n=run.lives.count() + 1)
    task = Task.objects.create(team=team, key=f"probe-{life.n}", statement=trial.statement)
    group = RolloutGroup.objects.create(
        run=run, life=life, key=f"probe-{life.n}", task=task, state=GroupState.COMPLETE, step=1,
        group_size=len(trial.tries), rubric=rubric, policy=run.policy, method=run.method,
    )  # fmt: skip
    return change(group, trial)


def change(group: RolloutGroup, trial: Trial) -> RolloutGroup:
    """Put another trial into a saved group: the same seed then shows as many tries in the same order as before."""
    group.trajectories.all().delete()
    group.task.reference_patch = bodies.write_bytes(trial.reference) if trial.reference else ""
    group.task.save()
    for number, one in enumerate(trial.tries):
        _save_try(group, one, _letter(number))
    return group


def _save_try(group: RolloutGroup, one: Try, letter: str) -> Trajectory:
    stored = bodies.write_events([dict(event) for event in one.events])
    return Trajectory.objects.create(
        group=group, run=group.run, life=group.life, external_id=one.id, letter=letter,
        outcome=Outcome.PASSED if one.passed else Outcome.FAILED, tests=[dict(test) for test in one.tests],
        patch=bodies.write_bytes(one.patch) if one.patch else "", patch_bytes=len(one.patch),
        log=bodies.write_bytes(one.log) if one.log else "", log_bytes=len(one.log),
        event_body=stored.sha256, event_count=stored.events, extra=dict(one.extra),
        content_digest=sha256(one.id.encode()).hexdigest(),
    )  # fmt: skip


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else _letter(number // 26 - 1) + chr(ord("A") + number % 26)
