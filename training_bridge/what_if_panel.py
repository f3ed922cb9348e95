"""What each knob moves, and what other numbers would pay, over the verdicts of a run's last groups."""

from collections.abc import Iterable
from time import perf_counter
from urllib.parse import urlencode

import numpy as np

from grading.calibration.packing import Pack, hides_verdict, pack_of
from grading.calibration.pages.knobs import named
from grading.calibration.replay import replay
from grading.calibration.rubric_form import typed_of
from grading.calibration.sensitivity import NOISE, SCORE_NOISE, Turn, turns, with_noise
from grading.models import RolloutGroup, Run, Trajectory
from grading.scoring.criteria import Rubric
from training_bridge.redistribution import regimes
from training_bridge.redistribution.masks import TINY
from training_bridge.redistribution.outcome import outcome_advantages
from training_bridge.what_if import Paid, moved, moved_interval
from training_bridge.what_if_rows import Rollouts, own_paid, rollouts_of

NAMED = 12  # groups that change most
CHANGED = 1e-9  # reward units: below it nothing is said to have changed


def knobs(run: Run, *, last: int) -> dict:
    """Each knob of the run's version turned by a step, the one that moves most |advantage| first."""
    started = perf_counter()
    pack = pack_of(run, last)
    rollouts, rubric = rollouts_of(run, pack), run.rubric.rubric
    base_BG = _pays(rollouts, pack, rubric).advantages_BG
    tried = [(_said(turn, last), _pays(rollouts, pack, turn.rubric)) for turn in turns(rubric)]
    noisy = replay(with_noise(pack.scored), rubric)
    said = {"knob": SCORE_NOISE, "kind": "score", "now": "as given", "tried": f"{NOISE:.0%} of the scores by one"}
    tried.append((said, rollouts.paid(noisy.factor_BG, rubric.lambda_max)))
    rows: dict[str, dict] = {}
    for said, made in tried:
        share = moved(base_BG, made.advantages_BG)
        if share is not None and (said["knob"] not in rows or share > rows[said["knob"]]["share"]):
            changed = int((np.abs(made.advantages_BG - base_BG).max(-1) > CHANGED).sum())
            interval = moved_interval(base_BG, made.advantages_BG)
            found = {"share": share, "changed": changed, "interval": interval, "digits": _digits(interval)}
            rows[said["knob"]] = said | found
    ordered = sorted(rows.values(), key=lambda row: -row["share"])
    top = ordered[0]["share"] if ordered else 0
    for row in ordered:
        row["named"] = named(row["knob"])
        row["width"] = round(120 * row["share"] / top, 1) if top else 0
    took_ms = 1000 * (perf_counter() - started)
    return {"run": run, "rows": ordered, "last": last, "took_ms": took_ms, **_counts(rollouts, pack)}


def _digits(interval: tuple[float, float] | None) -> int:
    """Decimals of a percentage that keep the ends of an interval apart: one to three."""
    if interval is None:
        return 1
    return next((n for n in (1, 2) if len({f"{100 * end:.{n}f}" for end in interval}) > 1), 3)


def _said(turn: Turn, last: int) -> dict:
    """A turn in words, and as the address of its what-if."""
    query = urlencode(typed_of(turn.rubric) | {"last": last})
    return {"knob": turn.knob, "kind": turn.kind, "now": turn.now, "tried": turn.tried, "query": query}


def effects(run: Run, rubric: Rubric, *, last: int) -> dict:
    """Training's numbers as the stored verdicts give them, beside those under other numbers."""
    started = perf_counter()
    pack = pack_of(run, last)
    rollouts = rollouts_of(run, pack)
    before, after = own_paid(rollouts, pack), _pays(rollouts, pack, rubric)
    interval = moved_interval(before.advantages_BG, after.advantages_BG)
    change_B = np.abs(after.advantages_BG - before.advantages_BG).sum(-1)
    took_ms = 1000 * (perf_counter() - started)
    return {
        "run": run,
        "last": last,
        "took_ms": took_ms,
        **_counts(rollouts, pack),
        "share": moved(before.advantages_BG, after.advantages_BG),
        "interval": interval,
        "digits": _digits(interval),
        "changed": int((change_B > CHANGED).sum()),
        "median": float(np.median(change_B)) if len(change_B) else None,
        "p90": float(np.quantile(change_B, 0.9)) if len(change_B) else None,
        "cap": _shares(before.capped_B, after.capped_B),
        "kept": [_kept(rollouts, paid) for paid in (before, after)],
        "regimes": _regimes(before, after),
        "most": _most(rollouts, pack, before, after, change_B),
    }


def strip(run: Run, rubric: Rubric, *, last: int, group: int) -> list[dict]:
    """One group's credit before and after, row by row, as `credit_strip` draws it; empty where it is not among them."""
    pack = pack_of(run, last)
    rollouts = rollouts_of(run, pack)
    here = np.flatnonzero(pack.group_B[rollouts.pack_B] == group)
    if not len(here):
        return []
    b = int(here[0])
    before, after = own_paid(rollouts, pack).advantages_BG[b], _pays(rollouts, pack, rubric).advantages_BG[b]
    letters = dict(Trajectory.objects.filter(group=group).values_list("pk", "letter"))
    rows = [
        {
            "letter": letters[int(rollouts.trajectory_BG[b, g])],
            "passed": bool(rollouts.batch.passing_BG[b, g]),
            "before": float(before[g]),
            "after": float(after[g]),
            "change": float(after[g] - before[g]),
        }
        for g in np.flatnonzero(rollouts.batch.valid_BG[b])
    ]
    return sorted(rows, key=lambda row: (not row["passed"], -row["before"], row["letter"]))


def _pays(rollouts: Rollouts, pack: Pack, rubric: Rubric) -> Paid:
    return rollouts.paid(replay(pack.scored, rubric).factor_BG, rubric.lambda_max)


def _counts(rollouts: Rollouts, pack: Pack) -> dict:
    return {"groups": len(rollouts.pack_B), "left_out": rollouts.left_out, "verdicts": len(pack.verdict_B)}


def _shares(before_B: np.ndarray, after_B: np.ndarray) -> dict:
    n = len(before_B)
    counts = {"before": int(before_B.sum()), "after": int(after_B.sum()), "n": n}
    return counts | {f"{name}_share": counts[name] / n if n else None for name in ("before", "after")}


def _kept(rollouts: Rollouts, made: Paid) -> float | None:
    """Credit kept over all groups: what the passes have of their positive outcome advantages."""
    due_BG = np.maximum(outcome_advantages(rollouts.batch.rewards_BG, rollouts.batch.valid_BG), 0)
    due = due_BG[rollouts.batch.passing_BG].sum()
    return float(made.advantages_BG[rollouts.batch.passing_BG].sum() / due) if due > TINY else None


def _regimes(before: Paid, after: Paid) -> list[dict]:
    names = (regimes.EXACT, regimes.BOUNDED, regimes.CLIPPED, regimes.FALLBACK)
    one_B, other_B = before.regime_B, after.regime_B
    counted = [(name, int((one_B == name).sum()), int((other_B == name).sum())) for name in names]
    return [{"name": name, "before": one, "after": other} for name, one, other in counted if one or other]


def _most(rollouts: Rollouts, pack: Pack, before: Paid, after: Paid, change_B: np.ndarray) -> list[dict]:
    order = [b for b in np.argsort(-change_B, kind="stable")[:NAMED].tolist() if change_B[b] > CHANGED]
    pks = {b: int(pack.group_B[rollouts.pack_B[b]]) for b in order}
    groups = _by_pk(pks.values())
    shown = [b for b in order if not hides_verdict(groups[pks[b]])]
    return [
        {
            "group": groups[pks[b]],
            "change": float(change_B[b]),
            "before": str(before.regime_B[b]),
            "after": str(after.regime_B[b]),
        }
        for b in shown
    ]


def _by_pk(pks: Iterable[int]) -> dict[int, RolloutGroup]:
    return RolloutGroup.objects.select_related("task").in_bulk(list(pks))
