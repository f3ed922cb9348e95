"""Steps that decide what counts for a group. A decision is a row; the bridge delivers from these rows."""

from datetime import timedelta
from random import SystemRandom

from django.db import transaction

from grading import clock, wake
from grading.errors import Conflict, WrongState
from grading.grader import gather
from grading.models import Decision, ReviewClaim, RolloutGroup, Signal, Verdict
from grading.scoring import rows
from grading.states import AWAITING_REVIEW, ENDED, DecisionKind, GroupState, Method, Policy, Purpose

draw = SystemRandom().random
SIGNAL_HOLD = "strong integrity signal"
# Why outcome advantages go out although the group trains: the reasons of a fallback, and who decides without a person.
GRADER_FAILURE, DEADLINE, SKIPPED = "grader_failure", "deadline", "skipped"
SHADOW, PAUSED = "shadow", "paused"
BY_DEADLINE, BY_PAUSE = "policy:deadline", "pause"
PERSON = "person"  # the grader of a correction


@transaction.atomic
def decide(group: RolloutGroup, kind: str, *, by: str, verdict=None, reason="", user=None, end_reason="") -> Decision:
    """Write the group's next decision and move it to `decided`.

    Raises WrongState when the group is no longer as the caller read it: of a deadline and a reviewer one wins.
    """
    _locked_unchanged(group)
    version = group.version + 1
    decision = Decision(group=group, version=version, kind=kind, verdict=verdict, reason=reason[:200], by=by, user=user)
    details = {"decision": version, "kind": kind, "verdict": verdict.pk if verdict else None}
    cleared = {"held": False, "claimed_until": None, "claimed_by": ""}
    group.move(
        GroupState.DECIDED, by=by, reason=reason or end_reason, details=details,
        version=version, end_reason=end_reason, **cleared,
    )  # fmt: skip
    decision.save()
    if group.hold_reason:
        ReviewClaim.objects.filter(group=group).delete()  # nobody holds what is decided
    wake.bridge(group.run_id)
    return decision


def _locked_unchanged(group: RolloutGroup) -> RolloutGroup:
    fresh = RolloutGroup.objects.locked().select_related("run").get(pk=group.pk)
    if (fresh.state, fresh.version) != (group.state, group.version):
        raise WrongState(
            f"group {group.key} changed while we looked: reload and decide again",
            got=f"{fresh.state}, version {fresh.version}",
            expected=f"{group.state}, version {group.version}",
        )
    return fresh


def end_kind(status: str) -> str:
    """The decision that a group's status alone asks for; "" when it trains."""
    if status in rows.FILTERED:
        return DecisionKind.FILTERED
    return DecisionKind.EXCLUDED if status in rows.EXCLUDED else ""


def after_complete(group: RolloutGroup, *, by: str, status: str = "") -> Decision | None:
    """Decide at once what needs no grade; else leave the group `complete` and wake a grader.

    `status`: how the group's rows stand, where the caller has just looked.
    """
    status = status or gather.effective(group).status
    kind = end_kind(status)
    if not group.eligible and kind != DecisionKind.EXCLUDED:
        # Other domains pass through with the rewards they came with, filtered or not by their own trainer.
        return decide(group, DecisionKind.INELIGIBLE, by=by)
    if kind:
        return decide(group, kind, by=by, end_reason=status)
    if group.method == Method.OUTCOME:
        return decide(group, DecisionKind.BASELINE, by=by, reason="method outcome")
    if group.run.paused:
        return decide(group, DecisionKind.FALLBACK, by=BY_PAUSE, reason=PAUSED)
    wake.grading()
    return None


def after_graded(group: RolloutGroup, verdict: Verdict) -> Decision | None:
    """Apply the policy pinned on the group: decide now, or hold it for a person until its deadline."""
    status = gather.effective(group).status
    by = f"policy:{group.policy}"
    if kind := end_kind(status):
        return decide(group, kind, by=by, end_reason=status)
    if group.run.paused or group.policy == Policy.SHADOW:
        return by_policy(group, verdict, by=by)
    reason = _hold(group)
    group.save(update_fields=["hold_probability"])  # stored also where nobody was drawn: estimates need it
    if reason:
        _keep_for_a_person(group, reason)
        return None
    return by_policy(group, verdict, by=by)


def by_policy(group: RolloutGroup, verdict: Verdict | None, *, by: str, otherwise: str = GRADER_FAILURE) -> Decision:
    """The valid verdict counts, else the outcome advantages do; these always in shadow and while the run is paused."""
    if group.run.paused:
        return decide(group, DecisionKind.FALLBACK, by=BY_PAUSE, reason=PAUSED)
    if group.policy == Policy.SHADOW and verdict is not None:
        return decide(group, DecisionKind.FALLBACK, by=by, reason=SHADOW)
    if verdict is not None and verdict.is_valid:
        return decide(group, DecisionKind.VERDICT, by=by, verdict=verdict)
    return decide(group, DecisionKind.FALLBACK, by=by, reason=otherwise)


def _hold(group: RolloutGroup) -> str:
    """Why a person sees this group first; "" if nobody must. The draw is stored with its probability."""
    if group.policy == Policy.MANUAL:
        group.hold_probability = 1.0
        return "policy manual"
    if group.policy == Policy.SAMPLED:
        group.hold_probability = group.run.hold_share
        if draw() < group.hold_probability:
            return f"drawn with probability {group.hold_probability:g}"
    else:
        group.hold_probability = 0.0
    if Signal.objects.filter(trajectory__group=group, is_strong=True).exists():
        same_step = RolloutGroup.objects.filter(run=group.run, step=group.step, hold_reason=SIGNAL_HOLD)
        if same_step.count() < group.run.hold_budget:
            return SIGNAL_HOLD
    return ""


def _keep_for_a_person(group: RolloutGroup, reason: str) -> None:
    within = group.run.review_deadline_s
    group.held, group.hold_reason = True, reason
    group.review_by = None if within is None else clock.now() + timedelta(seconds=within)
    group.save(update_fields=["held", "hold_reason", "review_by"])
    group.note(group.state, by=f"policy:{group.policy}", reason=f"held: {reason}")
    wake.pages(group.run_id)


def newest_verdict(group: RolloutGroup) -> Verdict | None:
    """The verdict that counts if somebody approves: the last training verdict or correction."""
    return group.verdicts.filter(purpose=Purpose.TRAINING).order_by("-pk").first()


def graders_verdict(group: RolloutGroup) -> Verdict | None:
    """The verdict that may count by itself, at a deadline: no correction, for saving one decides nothing."""
    return group.verdicts.filter(purpose=Purpose.TRAINING).exclude(grader=PERSON).order_by("-pk").first()


@transaction.atomic
def approve(group: RolloutGroup, *, seen_verdict: int, user) -> Decision:
    """A person says that the verdict they saw counts. Conflict when a newer one exists."""
    fresh = _locked_unchanged(group)  # a correction saved from here on waits for us
    _refuse_settled(fresh)
    if fresh.run.paused:
        raise WrongState(f"run {fresh.run} is paused: outcome advantages go out until it is resumed")
    if group.policy == Policy.SHADOW:
        raise WrongState(f"run {group.run} is in shadow: outcome advantages go out, corrections still count later")
    verdict = newest_verdict(group)
    if verdict is None or verdict.pk != seen_verdict:
        raise Conflict(
            f"group {group.key} has a newer verdict than the one you saw: look at it first",
            got=seen_verdict,
            expected=verdict.pk if verdict else None,
        )
    if not verdict.is_valid:
        raise WrongState(f"verdict {verdict.pk} is not valid and cannot count: correct it, or let the group fall back")
    last = group.decisions.order_by("-version").first()
    if last and last.verdict_id == verdict.pk:
        raise Conflict(f"group {group.key} already counts verdict {verdict.pk}, decided by {last.by}")
    return decide(group, DecisionKind.VERDICT, by=user.username, user=user, verdict=verdict)


@transaction.atomic
def fall_back(group: RolloutGroup, *, user, reason: str) -> Decision:
    """A person says that no verdict counts: outcome advantages over effective rewards."""
    _refuse_settled(_locked_unchanged(group))
    last = group.decisions.order_by("-version").first()
    if last and last.kind == DecisionKind.FALLBACK and group.state in ENDED:
        raise Conflict(f"group {group.key} already falls back, decided by {last.by}")
    return decide(group, DecisionKind.FALLBACK, by=user.username, user=user, reason=reason or SKIPPED)


def _refuse_settled(group: RolloutGroup) -> None:
    """Refuse where no verdict could count: not graded yet, or ended for a reason that a decision cannot undo."""
    if group.state not in AWAITING_REVIEW | ENDED:
        raise WrongState(f"group {group.key} is {group.state}: there is nothing to decide yet")
    if group.end_reason:
        raise WrongState(
            f"group {group.key} ended as {group.end_reason}: no verdict can count",
            expected="first an outcome amended, a finding confirmed or withdrawn, or its task released",
        )
    if not group.eligible or group.method == Method.OUTCOME:
        raise WrongState(f"group {group.key} is not graded: its rewards pass through as they came")


def abandon(group: RolloutGroup, *, by: str) -> Decision:
    """Close an open group of a life that is gone."""
    return decide(group, DecisionKind.ABANDONED, by=by, end_reason=DecisionKind.ABANDONED)
