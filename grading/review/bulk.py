"""One reason for many groups: what was wrong in each is taken back, each with a history row of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.db import transaction

from grading.errors import BadInput, GradingError
from grading.grader.shape import Cited
from grading.integrity.registry import DETECTORS
from grading.models import Evidence, ReviewClaim, RolloutGroup, Signal, SignalRuling, Trajectory
from grading.review import decisions, findings, placing, reviews
from grading.review.anchors import Citation
from grading.scoring.criteria import FLAGS
from grading.states import Integrity

MOST_GROUPS = 500


@dataclass
class Tally:
    """What became of a bulk change; `refused` says in words what was left as it is."""

    changed: int = 0
    groups: int = 0
    refused: list[str] = field(default_factory=list)


def _each(groups: Sequence[RolloutGroup], reason: str, change: Callable[[RolloutGroup], int]) -> Tally:
    """A group that refuses is left as it is and said; the others go on."""
    if not reason.strip():
        raise BadInput("a change of many groups needs a reason", expected="why it was wrong, in a sentence")
    if not 0 < len(groups) <= MOST_GROUPS:
        raise BadInput("no groups to change", got=len(groups), expected=f"1 to {MOST_GROUPS}")
    tally = Tally()
    for group in groups:
        try:
            with transaction.atomic():
                changed = change(group)
        except GradingError as refused:
            tally.refused.append(f"{group.task.key}, step {group.step}: {refused}")
        else:
            tally.changed += changed
            tally.groups += changed > 0
    return tally


def withdraw(groups: Sequence[RolloutGroup], *, kind: str, reason: str, user) -> Tally:
    """Withdraw the confirmed findings of these groups, of one kind or of both (`kind` ""); each counts anew.

    Raises BadInput without a reason or a group.
    """
    if kind and kind not in Integrity.values:
        raise BadInput("unknown kind of finding", got=kind[:20], expected=" or ".join(Integrity.values))

    def change(group: RolloutGroup) -> int:
        rows = Trajectory.objects.filter(group=group).exclude(integrity="").order_by("pk")
        found = list(rows.filter(integrity=kind) if kind else rows)
        if found:
            ReviewClaim.refuse_others(group, user)
        for trajectory in found:
            findings.withdraw(trajectory, reason=reason, user=user)
        return len(found)

    return _each(groups, reason, change)


def rule_wrong(groups: Sequence[RolloutGroup], *, detector: str, reason: str, user) -> Tally:
    """Rule the hints of a detector, or of all (""), wrong: they hold nothing any more and no filter finds them."""
    if detector and detector not in DETECTORS:
        raise BadInput("unknown detector", got=detector[:20], expected=", ".join(DETECTORS))

    def change(group: RolloutGroup) -> int:
        rows = Signal.objects.standing().filter(group=group).select_for_update(no_key=True)
        found = list(rows.filter(detector=detector) if detector else rows)
        SignalRuling.objects.bulk_create(
            SignalRuling(signal=one, is_wrong=True, user=user, reason=reason) for one in found
        )
        Signal.objects.filter(pk__in=[one.pk for one in found]).update(is_wrong=True)
        if found:
            names = ", ".join(sorted({one.detector for one in found}))
            details = {"signals": [one.pk for one in found]}
            group.note(group.state, by=user.username, reason=f"hints ruled wrong ({names}): {reason}", details=details)
            placing.place_again(group)
        return len(found)

    return _each(groups, reason, change)


def unflag(groups: Sequence[RolloutGroup], *, flag: str, reason: str, user, counts: bool = False) -> Tally:
    """Take a flag of the newest verdict back, by a correction that cites the places the flag was given for.

    `counts`: approve each correction too. Tiers follow from scores and flags anew.
    """
    if flag not in FLAGS:
        raise BadInput("unknown flag", got=flag[:40], expected=", ".join(FLAGS))

    def change(group: RolloutGroup) -> int:
        newest = decisions.newest_verdict(group)
        flagged = (
            [c.trajectory for c in newest.candidates.select_related("trajectory") if flag in c.flags] if newest else []
        )
        if not flagged:
            return 0
        rows = Evidence.objects.filter(verdict=newest, about=flag).select_related("trajectory")
        cited: dict[str, list[Cited]] = {}
        for row in rows:
            cited.setdefault(row.trajectory.external_id, []).append(Cited(flag, Citation.from_json(row.citation)))
        edits = {"scores": {}, "flags": {t.external_id: {flag: False} for t in flagged}, "citations": cited}
        verdict = reviews.correct(group, parent=newest.pk, user=user, reason=reason, **edits)
        if counts:
            group.refresh_from_db()
            reviews.approve(group, seen_verdict=verdict.pk, user=user)
        return len(flagged)

    return _each(groups, reason, change)
