"""What a batch of decided groups is paid, read in a handful of questions however many groups there are."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
from django.db.models import F, TextField
from django.db.models.functions import Cast

from grading.grader import gather
from grading.models import Decision, Life, RolloutGroup, RubricVersion, Run, Trajectory, VerdictCandidate
from grading.scoring.rows import Row
from grading.states import DecisionKind
from training_bridge.decided import asked, said_by
from training_bridge.payload import Asked, Numbers, numbers_of

log = logging.getLogger(__name__)
REFUSED = "numbers_refused"
USED = ("run", "life", "key", "step", "policy_version", "eligible", "state", "end_reason", "version", "created_at")
USED += ("completed_at", "graded_at", "method", "neutral_when_equal", "rubric", "hold_reason")
DECIDED = ("group", "version", "kind", "reason", "by", "at", "verdict__is_valid", "verdict__rubric")
ROLLOUT = ("group", "said", *gather.COUNTING[1:])
LENGTHS = ("response_tokens", "tokens")  # the first that the job counted


@dataclass
class Due:
    """A group's newest decision with all that its row is made from."""

    decision: Decision
    rows: list[Row] = field(default_factory=list)
    lengths: dict[str, float | None] = field(default_factory=dict)  # tokens of the response, by external id
    factors: dict[str, float] = field(default_factory=dict)  # of a verdict that counts, by external id
    tiers: dict[str, int] = field(default_factory=dict)

    def asked(self, **said) -> Asked:
        group, verdict = self.decision.group, self.decision.verdict
        rubric = verdict.rubric if verdict else group.rubric or group.run.rubric
        return asked(group, self.rows, self.factors or None, lambda_max=rubric.rubric.lambda_max, **said)


Made = dict[int, tuple[Due, Numbers]]  # by decision, in the order of their rows


def locked(run: Run):
    """Groups of the run, locked, with the columns that `read` needs; the stream is locked before."""
    return RolloutGroup.objects.filter(run=run).locked().only(*USED).order_by("pk")


def read(run: Run, groups: Sequence[RolloutGroup]) -> list[Due]:
    """What each group's newest decision pays from. Call after the locks, so that findings are read as they are."""
    run = Run.objects.select_related("rubric").get(pk=run.pk)  # its options as they are now
    lives = Life.objects.in_bulk({group.life_id for group in groups})
    decisions = Decision.objects.filter(group__in=groups, version=F("group__version"))
    newest = {d.group_id: d for d in decisions.select_related("verdict").only(*DECIDED)}
    verdicts = [d.verdict for d in newest.values() if d.verdict]
    wanted = {group.rubric_id for group in groups} | {verdict.rubric_id for verdict in verdicts}
    others = wanted - {None, run.rubric_id}
    rubrics = {run.rubric_id: run.rubric} | (RubricVersion.objects.in_bulk(others) if others else {})
    for verdict in verdicts:
        verdict.rubric = rubrics[verdict.rubric_id]
    for group in groups:
        group.run, group.life, group.rubric = run, lives[group.life_id], rubrics.get(group.rubric_id)
        newest[group.pk].group = group
    found = {group.pk: Due(newest[group.pk]) for group in groups}
    _read_rollouts(found)
    _read_factors(found)
    return list(found.values())


def _read_rollouts(found: dict[int, Due]) -> None:
    counted = Trajectory.objects.counted().filter(group__in=found).annotate(said=Cast("counts", TextField()))
    for group, counts, *counting in counted.values_list(*ROLLOUT):  # 25,088 a step: the column's own decoder is slow
        row = gather.row_of(*counting)
        found[group].rows.append(row)
        found[group].lengths[row.id] = length_of(msgspec.json.decode(counts))


def length_of(counts: dict) -> float | None:
    """Tokens of the response, in the job's own count; None where it gave no number."""
    for name in LENGTHS:
        n = counts.get(name)
        if isinstance(n, int | float) and not isinstance(n, bool) and n >= 0:
            return float(n)
    return None


def _read_factors(found: dict[int, Due]) -> None:
    """Of the verdicts that count; a fallback's is kept with its decision and pays nothing."""
    counting = [due for due in found.values() if due.decision.kind == DecisionKind.VERDICT]
    by_verdict = {due.decision.verdict_id: due for due in counting if due.decision.verdict.is_valid}
    placed = VerdictCandidate.objects.filter(verdict__in=by_verdict)
    for verdict, id, factor, tier in placed.values_list("verdict", "trajectory__external_id", "factor", "tier"):
        by_verdict[verdict].factors[id], by_verdict[verdict].tiers[id] = factor, tier


def numbers(dues: Sequence[Due]) -> list[Numbers]:
    """What each is paid. One group must never hold up the stream of a whole run."""
    try:
        return numbers_of([due.asked(**said_by(due.decision)) for due in dues])
    except ValueError:
        return [_alone(due) for due in dues]


def made(run: Run, groups: Sequence[RolloutGroup]) -> Made:
    """What the newest decision of each pays, and from what."""
    dues = read(run, groups)
    return {of.decision.pk: (of, n) for of, n in zip(dues, numbers(dues), strict=True)}


def _alone(due: Due) -> Numbers:
    try:
        return numbers_of([due.asked(**said_by(due.decision))])[0]
    except ValueError:
        group, version = due.decision.group, due.decision.version
        log.exception("group %s, decision %s: outcome advantages go out instead", group.key, version)
        return numbers_of([due.asked(broken_evaluation=False, fallback_reason=REFUSED)])[0]
