"""Steps that decide what counts for a group. A decision is a row; the bridge delivers from these rows."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from random import SystemRandom
from typing import NamedTuple

from django.db import transaction

from grading import clock, wake
from grading.calibration import sampling
from grading.errors import Conflict, Overtaken, WrongState
from grading.grader import gather
from grading.grader.options import GradingOptions
from grading.models import Decision, GroupEvent, Membership, ReviewClaim, Role, RolloutGroup, Signal, User, Verdict
from grading.models.rows import insert_all
from grading.review import placing
from grading.review.placing import SIGNAL_HOLD
from grading.scoring import rows
from grading.states import AWAITING_REVIEW, ENDED, DecisionKind, GroupState, Method, Policy, Purpose

draw = SystemRandom().random
FLIPS_HOLD = "order flips"  # the order of presentation decided too much
FORCED = (SIGNAL_HOLD, FLIPS_HOLD)
DRAWN = "drawn with probability"
# Why outcome advantages go out although the group trains: the reasons of a fallback, and who decides without a person.
GRADER_FAILURE, DEADLINE, SKIPPED = "grader_failure", "deadline", "skipped"
SHADOW, PAUSED = "shadow", "paused"
BY_DEADLINE, BY_PAUSE = "policy:deadline", "pause"
PERSON = "person"  # the grader of a correction


class Choice(NamedTuple):
    """What a group's next decision will say."""

    group: RolloutGroup
    kind: str
    by: str
    verdict: Verdict | None = None
    reason: str = ""
    user: User | None = None
    end_reason: str = ""


@transaction.atomic
def decide(group: RolloutGroup, kind: str, *, by: str, **said) -> Decision:
    """Write the group's next decision and move it to `decided`. `said`: what else a `Choice` says.

    Raises WrongState when the group is no longer as the caller read it: of a deadline and a reviewer one wins.
    """
    _locked_unchanged(group)
    return decide_all([Choice(group, kind, by, **said)])[0]


@transaction.atomic(savepoint=False)
def decide_all(choices: Sequence[Choice]) -> list[Decision]:
    """`decide` for groups whose rows the caller holds locked: a few statements, however many they are."""
    decisions = [
        Decision(
            group=to.group, version=to.group.version + 1, kind=to.kind, verdict=to.verdict, reason=to.reason[:200],
            by=to.by, user=to.user,
        )
        for to in choices
    ]  # fmt: skip
    events = [
        GroupEvent(
            group=to.group, old=to.group.state, new=GroupState.DECIDED, by=to.by, reason=to.reason or to.end_reason,
            details={"decision": decision.version, "kind": to.kind, "verdict": to.verdict.pk if to.verdict else None},
        )
        for to, decision in zip(choices, decisions, strict=True)
    ]  # fmt: skip
    _move_all(choices)
    insert_all(events)
    Decision.objects.bulk_create(decisions)
    if held := [to.group for to in choices if to.group.hold_reason]:
        ReviewClaim.objects.filter(group__in=held).delete()  # nobody holds what is decided
    for run in {to.group.run_id for to in choices}:
        wake.bridge(run)
    return decisions


def _move_all(choices: Sequence[Choice]) -> None:
    """One UPDATE for groups alike: it names the state and version that were read."""
    alike: dict[tuple, list[RolloutGroup]] = {}
    for to in choices:
        tiers = to.verdict.tiers if to.verdict else 0
        alike.setdefault((to.group.state, to.group.version, to.end_reason, tiers), []).append(to.group)
    cleared = {"held": False, "claimed_until": None, "claimed_by": ""}
    for (_, version, end_reason, tiers), groups in alike.items():
        fields = cleared | {"version": version + 1, "end_reason": end_reason, "tiers": tiers}
        RolloutGroup.objects.move_all(groups, GroupState.DECIDED, **fields)


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


def after_graded(group: RolloutGroup, verdict: Verdict, *, flips: float | None = None) -> Decision | None:
    """Apply the policy pinned on the group: decide now, or hold it for a person until its deadline.

    `flips`: share of candidate pairs that changed sides between shuffled orders, where it was graded in several.
    """
    status = gather.effective(group).status
    by = f"policy:{group.policy}"
    if kind := end_kind(status):
        return decide(group, kind, by=by, end_reason=status)
    if group.run.paused or group.policy == Policy.SHADOW:
        return by_policy(group, verdict, by=by)
    if group.held:  # graded again at a person's wish, who still has to decide
        placing.place_again(group)
        wake.pages(group.run_id)
        return None
    reason = _hold(group, flips)
    group.save(update_fields=["hold_probability"])  # stored also where nobody was drawn: estimates need it
    if reason:
        _keep_for_a_person(group, reason)
        return None
    return by_policy(group, verdict, by=by)


def by_policy(group: RolloutGroup, verdict: Verdict | None, *, by: str) -> Decision:
    """Decide as the run's policy says: see `chosen_by_policy`."""
    choice = chosen_by_policy(group, verdict, by=by)
    return decide(group, choice.kind, by=choice.by, verdict=choice.verdict, reason=choice.reason)


def chosen_by_policy(
    group: RolloutGroup, verdict: Verdict | None, *, by: str, otherwise: str = GRADER_FAILURE
) -> Choice:
    """The valid verdict counts, else the outcome advantages do; these always in shadow and while the run is paused."""
    if group.run.paused:
        return Choice(group, DecisionKind.FALLBACK, BY_PAUSE, reason=PAUSED)
    if group.policy == Policy.SHADOW and verdict is not None:
        return Choice(group, DecisionKind.FALLBACK, by, reason=SHADOW)
    if verdict is not None and verdict.is_valid:
        return Choice(group, DecisionKind.VERDICT, by, verdict)
    return Choice(group, DecisionKind.FALLBACK, by, reason=otherwise)


def _hold(group: RolloutGroup, flips: float | None) -> str:
    """Why a person sees this group first; "" if nobody must. The draw is stored with its probability."""
    if group.policy == Policy.MANUAL:
        group.hold_probability = 1.0
        return "policy manual"
    if group.policy == Policy.SAMPLED:
        group.hold_probability = sampling.hold_probability(group.run.hold_share, *placing.priority(group))
        if draw() < group.hold_probability:
            return f"{DRAWN} {group.hold_probability:.3g}"
    else:
        group.hold_probability = 0.0
    if reason := _forced(group, flips):
        same_step = RolloutGroup.objects.filter(run=group.run, step=group.step, hold_reason__in=FORCED)
        if same_step.count() < group.run.hold_budget:
            return reason
    return ""


def _forced(group: RolloutGroup, flips: float | None) -> str:
    """What asks for a person whatever the policy drew, as long as the step's budget lasts."""
    if Signal.objects.standing().filter(group=group, is_strong=True).exists():
        return SIGNAL_HOLD
    is_unsteady = flips is not None and flips > GradingOptions.from_json(group.run.grading).flips_hold
    return FLIPS_HOLD if is_unsteady else ""


def _keep_for_a_person(group: RolloutGroup, reason: str) -> None:
    within = group.run.review_deadline_s
    group.held, group.hold_reason = True, reason
    group.review_by = None if within is None else clock.now() + timedelta(seconds=within)
    group.reviews_wanted, group.blind_probability = group.run.reviews_wanted, group.run.blind_share
    group.is_blind = draw() < group.blind_probability
    if reason.startswith(DRAWN):
        group.overlap_probability = _overlap(group)
        if draw() < group.overlap_probability:
            group.reviews_wanted = 2
    pinned = ["reviews_wanted", "blind_probability", "is_blind", "overlap_probability"]
    group.save(update_fields=["held", "hold_reason", "review_by", *pinned])
    placing.place_again(group)
    group.note(group.state, by=f"policy:{group.policy}", reason=f"held: {reason}")
    wake.pages(group.run_id)


def _overlap(group: RolloutGroup) -> float:
    """The probability that two people answer alone, so that people are measured too; 0 where there are no two."""
    reviewers = Membership.objects.filter(team=group.run.team_id, role__in=Role.at_least(Role.REVIEWER))
    return group.run.overlap_share if group.reviews_wanted == 1 and reviewers.count() > 1 else 0.0


def newest_verdict(group: RolloutGroup) -> Verdict | None:
    """The verdict that counts if somebody approves: the last training verdict or correction."""
    return group.verdicts.filter(purpose=Purpose.TRAINING).order_by("-pk").first()


def graders_verdict(group: RolloutGroup) -> Verdict | None:
    """The verdict that may count by itself, at a deadline: no correction, for saving one decides nothing."""
    return group.verdicts.filter(purpose=Purpose.TRAINING).exclude(grader=PERSON).order_by("-pk").first()


def graders_verdicts(groups: Iterable[RolloutGroup]) -> dict[int, Verdict]:
    """`graders_verdict` of many, by group: enough of each to decide by."""
    found = Verdict.objects.filter(group__in=groups, purpose=Purpose.TRAINING).exclude(grader=PERSON)
    return {verdict.group_id: verdict for verdict in found.only("group_id", "is_valid", "ranking").order_by("pk")}


@transaction.atomic
def approve(group: RolloutGroup, *, seen_verdict: int, user) -> Decision:
    """A person says that the verdict they saw counts. Overtaken when a newer one exists."""
    group.run = _locked_unchanged(group).run  # as it is now; a correction saved from here on waits for us
    return approve_locked(group, seen_verdict=seen_verdict, user=user)


def approve_locked(group: RolloutGroup, *, seen_verdict: int, user) -> Decision:
    """`approve` for a caller who has just read the group and its run under the lock."""
    _refuse_settled(group)
    if group.run.paused:
        raise WrongState(f"run {group.run} is paused: outcome advantages go out until it is resumed")
    if group.policy == Policy.SHADOW:
        raise WrongState(f"run {group.run} is in shadow: outcome advantages go out, corrections still count later")
    verdict = newest_verdict(group)
    if verdict is None or verdict.pk != seen_verdict:
        raise Overtaken(
            f"group {group.key} has a newer verdict than the one you saw: look at it first",
            got=seen_verdict,
            expected=verdict.pk if verdict else None,
        )
    if not verdict.is_valid:
        raise WrongState(f"verdict {verdict.pk} is not valid and cannot count: correct it, or let the group fall back")
    last = group.decisions.order_by("-version").first()
    if last and last.verdict_id == verdict.pk:
        raise Conflict(f"group {group.key} already counts verdict {verdict.pk}, decided by {last.by}")
    return decide_all([Choice(group, DecisionKind.VERDICT, user.username, verdict, user=user)])[0]


@transaction.atomic
def fall_back(group: RolloutGroup, *, user, reason: str) -> Decision:
    """A person says that no verdict counts: outcome advantages over effective rewards."""
    _refuse_settled(_locked_unchanged(group))
    last = group.decisions.order_by("-version").first()
    if last and last.kind == DecisionKind.FALLBACK and group.state in ENDED:
        raise Conflict(f"group {group.key} already falls back, decided by {last.by}")
    return decide_all([Choice(group, DecisionKind.FALLBACK, user.username, reason=reason or SKIPPED, user=user)])[0]


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
