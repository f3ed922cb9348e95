"""Fit a run's rubric to people's blind orders, and keep what came out. It publishes nothing."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
from django.db.models import Q

from grading.calibration import fit_weights
from grading.calibration.fit_tiers import fit_thresholds
from grading.calibration.gate import GROUPS, PAIRS
from grading.calibration.heldout import split
from grading.calibration.identity import Choice, chosen
from grading.calibration.orders import Orders, graders_ordered, orders_of, said_tiers, within_tiers
from grading.calibration.replay import Scored
from grading.models import Fit, GateKind, Run, SpentGroup, Team, User
from grading.scoring.criteria import CRITERIA, THRESHOLDS, Rubric

PLACES = 100  # fitted weights are written in hundredths


def spent_groups(team: Team, kind: GateKind) -> set[int]:
    return set(SpentGroup.objects.filter(gate__team=team, kind=kind).values_list("group_id", flat=True))


def whose(run: Run, asked: str = "") -> Choice:
    """Which model and prompt under the name of the run's grader is meant: the one asked for, else the newest."""
    return chosen(graders_ordered(run.team, run.grader), asked)


def said_by(run: Run, choice: Choice) -> Q:
    """The verdicts of the choice."""
    return choice.one.said if choice.one else Q(grader=run.grader)


def pool(run: Run, choice: Choice) -> tuple[Orders, Orders]:
    """Blind orders that a fit may read, and those that only a gate may."""
    orders = orders_of(run.team, said_by(run, choice))
    fitted, held = split(orders.groups, spent_groups(run.team, GateKind.RUBRIC))
    return orders.of(fitted), orders.of(held)


def fit(run: Run, *, by: str, grader: str = "") -> Fit:
    """Fit weights and thresholds, separately, to the orders outside the held-out groups; thin data give no numbers.

    `grader`: whose verdicts, as `Identity.words`; the newest without one, "all" pools those of the run's grader.
    """
    choice = whose(run, grader)
    orders, _ = pool(run, choice)
    base = run.rubric.rubric
    pairs = within_tiers(orders, base)
    weights, fitted_C = _weights(pairs, base)
    thresholds, moved = _thresholds(orders, base)
    made = base
    if fitted_C is not None:
        made = replace(made, name="fitted", weights=rounded(fitted_C))
    if moved is not None:
        made = replace(made, name="fitted", **{name: getattr(moved, name) for name in THRESHOLDS})
    return Fit.objects.create(
        team=run.team,
        run=run,
        grader=run.grader,
        base=run.rubric,
        definition=None if fitted_C is None and moved is None else made.to_json(),
        report={"weights": weights, "thresholds": thresholds, "graders": told_graders(run, choice)},
        groups=len(orders.groups),
        pairs=int((pairs.first_P != 0.5).sum()),
        by=by,
    )


def told_graders(run: Run, choice: Choice) -> list[str]:
    """Whose verdicts went in, in words."""
    return [identity.words for identity, _ in choice.known if choice.takes(identity)] or [run.grader]


def _weights(pairs: fit_weights.PairData, base: Rubric) -> tuple[dict, np.ndarray | None]:
    groups, decided = len(np.unique(pairs.group_P)), int((pairs.first_P != 0.5).sum())
    said = {"groups": groups, "pairs": decided, "ties": len(pairs.first_P) - decided, "why": ""}
    said["reviewers"] = len(np.unique(pairs.reviewer_P))
    if groups < GROUPS or decided < PAIRS:
        said["why"] = f"{groups} groups and {decided} decided pairs inside tiers, expected {GROUPS} and {PAIRS}"
        return said, None
    base_C = np.array([float(w) for w in base.weights])
    made = fit_weights.fit(pairs, base_C)
    if made.weights_C is None:
        said["why"] = "the scores go against people's orders: no weights are identified"
        return said, None
    found = fit_weights.intervals(pairs, base_C, made)
    said |= {"beta": made.beta, "nu": made.nu}
    said["rows"] = [
        {"criterion": c, "now": float(w), "fitted": float(made.weights_C[i]), "interval": found and found[i]}
        for i, (c, w) in enumerate(zip(CRITERIA, base.weights, strict=True))
    ]
    names = dict(User.objects.filter(pk__in=made.sharpness).values_list("pk", "username"))
    said["offsets"] = [
        {"reviewer": names[pk], "sharpness": made.sharpness[pk], "tying": made.tying[pk]} for pk in made.sharpness
    ]
    return said, made.weights_C


def rounded(weights_C: np.ndarray) -> tuple[Decimal, ...]:
    """Hundredths that sum to 1: the largest remainders get what rounding down leaves."""
    whole = np.floor(weights_C * PLACES).astype(int)
    short = PLACES - int(whole.sum())
    for c in np.argsort(-(weights_C * PLACES - whole), kind="stable")[:short]:
        whole[c] += 1
    return tuple(Decimal(int(n)) / PLACES for n in whole)


def _thresholds(orders: Orders, base: Rubric) -> tuple[dict, Rubric | None]:
    """Thresholds move only where the gain of kappa is more than chance; people rarely give tiers."""
    said_AG = said_tiers(orders)
    group_A = np.array([answer.group for answer in orders.answers], np.int64)
    groups, n = len(np.unique(group_A[(said_AG > 0).any(-1)])), int((said_AG > 0).sum())
    said = {"groups": groups, "candidates": n, "why": ""}
    if groups < GROUPS or n < PAIRS:
        said["why"] = f"{groups} groups and {n} candidates with a person's tier, expected {GROUPS} and {PAIRS}"
        return said, None
    found = fit_thresholds(_rows(orders.pack.scored, orders.row_A), said_AG, group_A, base)
    said["kappa"] = [_told(found.now), _told(found.best), _told(found.gain)]
    said["rows"] = [{"threshold": t, "now": getattr(base, t), "fitted": getattr(found.rubric, t)} for t in THRESHOLDS]
    if found.gain.low is None or found.gain.low <= 0:
        said["why"] = "no thresholds near those in force agree better with people by more than chance"
        return said, None
    return said, found.rubric


def _rows(scored: Scored, row_A: np.ndarray) -> Scored:
    return Scored(**{name: getattr(scored, name)[row_A] for name in Scored.__dataclass_fields__})


def _told(estimate) -> dict:
    return {name: getattr(estimate, name) for name in ("value", "low", "high", "n", "groups", "why")}
