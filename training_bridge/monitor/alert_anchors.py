"""What the newest round of anchors says of a run's grader, against the round before it: read once, then remembered."""

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from django.db.models import Count, Q

from grading.calibration import anchors, drift, graded
from grading.calibration.estimate import Estimate
from grading.grader.graders import GRADERS
from grading.models import AnchorRound, Grading, Review, Run
from training_bridge.monitor.alert_signs import Rule
from training_bridge.monitor.alert_values import Measured

ORDER, ACCURACY = "anchor_order", "anchor_accuracy"
NEWEST = 300  # rounds, of all teams together


class Rounds(NamedTuple):
    """Two rounds that may be compared."""

    last: AnchorRound
    now: AnchorRound


def rounds_of(runs: Collection[Run]) -> dict[int, Rounds]:
    """Run pk -> the newest ended round by the grader that the run has now, and the last one before it.

    That one is of the run itself, or by the very same grader: two runs with two graders differ, and nothing drifted.
    """
    rounds: dict[int, list[AnchorRound]] = defaultdict(list)
    valid, running = (
        Count("gradings", Q(gradings__state=state)) for state in (Grading.State.VALID, Grading.State.RUNNING)
    )
    rows = AnchorRound.objects.filter(run__team__in={run.team_id for run in runs}).select_related("run")
    for row in rows.annotate(valid=valid, running=running).order_by("-pk")[:NEWEST]:
        if row.valid and not row.running:
            rounds[row.run.team_id].append(row)
    found = {run.pk: _rounds(run, rounds[run.team_id]) for run in runs if run.team_id in rounds}
    return {pk: pair for pk, pair in found.items() if pair}


def _rounds(run: Run, newest_first: list[AnchorRound]) -> Rounds | None:
    if run.grader not in GRADERS:
        return None
    mine = anchors.fingerprint(run)
    now = next((round for round in newest_first if round.fingerprint == mine), None)
    if now is None:
        return None
    earlier = [round for round in newest_first if round.pk < now.pk]
    last = next((one for one in earlier if one.run_id == run.pk or one.fingerprint == mine), None)
    return last and Rounds(last, now)


def read(rounds: Rounds, memory: dict, rules: dict[str, Rule]) -> dict[str, tuple[Measured, str]]:
    """Both signs and what more there is to say. Two rounds are compared again only where people said more since.

    Args:
        memory: of the desk, by sign; what was read is kept in it.
    """
    answers = Review.objects.filter(group__gradings__round=rounds.now)
    answers = answers.aggregate(blind=Count("ranked_at", distinct=True), told=Count("submitted_at", distinct=True))
    of = [rounds.last.pk, rounds.now.pk, answers["blind"], answers["told"]]
    if any(memory.get(sign, {}).get("read", {}).get("of") != of for sign in (ORDER, ACCURACY)):
        for sign, said in _compared(rounds).items():
            memory.setdefault(sign, {})["read"] = {"of": of, **said}
    found = {}
    for sign in (ORDER, ACCURACY):
        said = memory[sign]["read"]
        value = said["value"] if said["n"] >= rules[sign].least else None
        found[sign] = (Measured(value, said["n"]), said["more"])
    return found


def _compared(rounds: Rounds) -> dict[str, dict]:
    versions = drift.versions(graded.between(rounds.last, rounds.now))
    times = f"round of {rounds.now.at:%-d %b %H:%M} against {rounds.last.at:%-d %b %H:%M}"
    lost = drift.at_most(versions.gain)
    return {
        ORDER: {
            "value": drift.at_most(versions.tau_b), "n": versions.tau_b.groups,
            "more": f"upper end of {_said(versions.tau_b)} on {versions.tau_b.groups} anchors, {times}",
        },
        ACCURACY: {
            "value": None if lost is None else -lost, "n": versions.gain.groups,
            "more": f"at least; the change is {_said(versions.gain)} on {versions.gain.groups} anchors, {times}",
        },
    }  # fmt: skip


def _said(one: Estimate) -> str:
    if one.value is None:
        return one.why
    return f"{one.value:.2f}" + ("" if one.low is None else f" ({one.low:.2f} to {one.high:.2f})")
