"""Steps of an import: a team and a run that wait for nobody, then one group after the other, each in one transaction.

Bodies are written before the transaction, so that the database is never locked while a file is parsed.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import transaction

from grading import bodies
from grading.errors import Conflict, GradingError, ImportRefused
from grading.importers.record import CandidateRecord, GroupRecord, Problem, Tally
from grading.importers.sources import refusal, sources
from grading.ingest import assemble, declaring, tasks_register
from grading.ingest.rollout import Rollout
from grading.models import Life, RubricVersion, Run, Team, Trajectory
from grading.review.diffs import parse_patch
from grading.states import Policy
from grading.storable import storable

BY = "import"
NAME_LIMIT = Trajectory._meta.get_field("external_id").max_length
NO_EVENTS, RAW = "none given", "kept raw"


@dataclass(frozen=True)
class Listed:
    """One candidate as the command lists it."""

    group: str
    candidate: str
    outcome: str
    patch: str  # parsed, unparsed or none
    events: str  # how many, or NO_EVENTS or RAW
    status: str  # created, exists, late
    problem: str


@dataclass
class Import:
    """What became of one path. `refused` holds a message for each group that is not stored."""

    tally: Tally = field(default_factory=Tally)
    candidates: list[Listed] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    stand: Counter[str] = field(default_factory=Counter)  # groups by the reason they ended for, else by state

    def refuse(self, label: str, why: GradingError) -> None:
        label, said = storable(label), storable(str(why))
        self.refused.append(said if label in said else f"{label}: {said}")
        self.tally.problems.append(Problem(label, "", "refused", said))


def imported_run(*, team: str, run: str, grader: str = "") -> Life:
    """The one life of the run that imported groups go into; team and run are made where they are missing.

    `grader`: of a run that is made here; empty, the one that this server is set up with.
    """
    for what, slug in (("team", team), ("run", run)):
        try:
            validate_slug(slug)
        except ValidationError:
            expected = "letters, digits, - and _ only"
            raise ImportRefused(f"bad name of a {what}", got=repr(slug)[:100], expected=expected) from None
    with transaction.atomic():
        of_team, _ = Team.objects.get_or_create(slug=team, defaults={"name": team})
        waits_for_nobody = {
            "kind": Run.Kind.IMPORTED,
            "policy": Policy.MANUAL,
            "collect_deadline_s": None,
            "grading_deadline_s": None,
            "review_deadline_s": None,
        }
        fields = {"team": of_team, "name": run, "rubric": RubricVersion.flash(), **waits_for_nobody}
        fields["grader"] = grader or settings.GAGAR_GRADER
        of_run, _ = Run.objects.get_or_create(public_id=run, defaults=fields)
        if of_run.team_id != of_team.pk:
            of = of_run.team.slug
            expected = f"--team {of}, or another run with --run"
            raise ImportRefused(f"run {run} belongs to team {of}", got=f"--team {team}", expected=expected)
        if grader and of_run.grader != grader:
            expected = f"no --grader, or {of_run.grader}: the run's Grader page changes it"
            raise ImportRefused(f"run {run} is graded by {of_run.grader}", got=f"--grader {grader}", expected=expected)
        if of_run.is_live:
            raise ImportRefused(f"run {run} is a live job", expected="a run made by an import: name another with --run")
        return Life.objects.get_or_create(run=of_run, n=1, defaults={"job": BY})[0]


def import_path(path: Path, *, team: str, run: str, wanted: str, grader: str = "") -> Import:
    """Store all groups at a path. One that is refused leaves no row, and the next one goes on.

    Raises ImportRefused where nothing at the path is read, or team and run do not fit.
    """
    done, life = Import(), None
    for source in sources(path, wanted):
        try:
            found = source.read()
        except GradingError as e:
            done.refuse(source.label, e)
            continue
        if isinstance(found, Problem):
            done.tally.problems.append(found)
            continue
        life = life or imported_run(team=team, run=run, grader=grader)
        try:
            _import_group(found, life, done)
        except GradingError as e:
            done.refuse(source.label, e)
    if not done.tally.groups and not done.refused:
        raise refusal(path, wanted)
    return done


def _import_group(record: GroupRecord, life: Life, done: Import) -> None:
    rollouts = [_rollout(record, candidate) for candidate in record.candidates]
    problems = list(record.problems)
    with transaction.atomic():
        _put_task(record, life.run.team, problems)
        group, _ = declaring.declare_group(
            run=life.run,
            life=life.n,
            key=record.key,
            task=record.task.key,
            step=0,
            group_size=len(rollouts),
        )
        added = [assemble.add_trajectory(group, rollout, by=BY) for rollout in rollouts]
    group.refresh_from_db(fields=["end_reason", "state"])
    done.stand[group.end_reason or group.state] += 1
    _count(record, rollouts, added, problems, done)


def _count(
    record: GroupRecord, rollouts: list[Rollout], added: list[assemble.Added], problems: list[Problem], done: Import
) -> None:
    tally = done.tally
    tally.groups += 1
    tally.candidates += len(rollouts)
    for candidate, rollout, each in zip(record.candidates, rollouts, added, strict=True):
        if candidate.events is not None:
            tally.add_events(candidate.events.counts)
        patch = parse_patch(candidate.patch)
        tally.patches_parsed += patch.parsed
        tally.patches_unparsed += patch.unparsed
        if patch.unparsed:
            said = "; ".join(patch.problems)[:300]
            problems.append(Problem(record.key, candidate.external_id, "patch_unparsed", said))
        done.candidates.append(
            Listed(
                group=record.key,
                candidate=candidate.external_id,
                outcome=candidate.outcome,
                patch="none" if patch.is_empty else "parsed" if patch.parsed else "unparsed",
                events=_events_words(candidate, rollout),
                status=str(each.status),
                problem=", ".join(p.problem for p in problems if p.candidate == candidate.external_id),
            )
        )
    tally.problems += problems


def _put_task(record: GroupRecord, team: Team, problems: list[Problem]) -> None:
    task = record.task
    try:
        # A name like django/django is no repository that a grader could open: it goes with the rollouts.
        tasks_register.put_task(
            team=team,
            key=task.key,
            statement=task.statement,
            base_commit=task.base_commit,
            reference_patch=task.reference_patch,
        )
    except Conflict as e:
        problems.append(Problem(record.key, "", "task_differs", f"the task known before is kept: {e.where} differ"))


def _rollout(record: GroupRecord, candidate: CandidateRecord) -> Rollout:
    extra = dict(candidate.extra)
    if record.task.repository:
        extra["repository"] = record.task.repository
    return Rollout(
        external_id=external_id(record.key, candidate.external_id),
        outcome=candidate.outcome,
        is_truncated=candidate.is_truncated,
        patch=candidate.patch,
        tests=candidate.tests,
        counts=candidate.counts,
        events=_events(record, candidate),
        log=candidate.log,
        raw=candidate.raw,
        extra=extra,
        problem=candidate.problem,
    )


def external_id(group: str, candidate: str) -> str:
    """Candidates are named within their group, rollouts within the run."""
    name = candidate if candidate == group else f"{group}:{candidate}"
    if len(name) > NAME_LIMIT:
        got = f"{len(name)} characters: {name[:80]}…"
        raise ImportRefused("group and candidate have too long names", got=got, expected=f"<= {NAME_LIMIT} together")
    return name


def _events(record: GroupRecord, candidate: CandidateRecord) -> bodies.EventBody | None:
    if candidate.events is None:
        return None
    body = bodies.write_events(candidate.events)
    if not body.events:
        why = ", ".join(candidate.events.counts.why) or "the file holds none"
        raise ImportRefused(f"candidate {candidate.external_id} has no event", got=why, expected="at least 1 event")
    return body


def _events_words(candidate: CandidateRecord, rollout: Rollout) -> str:
    if rollout.events is not None:
        return str(rollout.events.events)
    return RAW if candidate.raw else NO_EVENTS
