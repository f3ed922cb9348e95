"""The first page of calibration: the numbers in force, a form for others, and what these would change in verdicts."""

from collections.abc import Mapping
from urllib.parse import urlencode

import numpy as np

from grading.calibration.changes import Changes, changes
from grading.calibration.packing import Pack, hides_verdict, pack_of
from grading.calibration.pages.asked import CHOICES, last_of
from grading.calibration.replay import Replayed, replay
from grading.calibration.rubric_form import FIELDS, WEIGHT, Typed, read_rubric, same_numbers, typed_of
from grading.models import RolloutGroup, RubricVersion, Run, Trajectory
from grading.scoring.criteria import CONSTANTS, CRITERIA, THRESHOLDS

LISTED = 60  # changed groups that the chart steps through
WORDS = {
    "runner": ("f runner-up", "every T1 but its first"),
    "max": ("f max", "first of T2"),
    "min": ("f min", "last of T2"),
    "low": ("f low", "all of T3"),
    "lambda_max": ("λ max", "the cap; empty: none, the exact form"),
    "t1_floor": ("T1 from", "every score at least this"),
    "t3_approach": ("T3: approach to", "approach at or below"),
    "t3_minimality": ("T3: minimality to", "minimality at or below, together with side effects"),
    "t3_side_effects": ("T3: side effects to", "side effects at or below, together with minimality"),
}


def named(knob: str) -> dict[str, str]:
    """A number of a rubric as pages name it, and what it is: f_runner -> f runner-up, every T1 but its first."""
    said, words = WORDS.get(knob.removeprefix("f_")) or WORDS.get(knob) or (knob.replace("_", " "), "")
    return {"name": said, "words": words}


def knobs_page(run: Run, query: Mapping[str, str]) -> dict:
    """Context of grading/calibration.html for one run. Nothing is replayed before a number is another."""
    base = _base(run, query)
    typed = read_rubric(query, base.rubric)
    is_changed = typed.rubric is not None and not same_numbers(typed.rubric, run.rubric.rubric)
    context = {
        "base": base,
        "typed": typed,
        "last": last_of(query),
        "choices": CHOICES,
        "versions": RubricVersion.objects.order_by("-number")[:50],
        "fields": _fields(typed, typed_of(run.rubric.rubric)),
        "sum": sum(typed.rubric.weights) if typed.rubric else None,
        "is_changed": is_changed,
        "query": _query(typed, query),
    }
    return context | (_effects(run, typed, query) if is_changed else {})


def _base(run: Run, query: Mapping[str, str]) -> RubricVersion:
    """The version that the form begins from: one asked for by number, else the run's."""
    asked = query.get("version", "")
    found = RubricVersion.objects.filter(number=int(asked)).first() if asked.isdecimal() and len(asked) < 9 else None
    return found or run.rubric


def _query(typed: Typed, query: Mapping[str, str]) -> str:
    """The numbers and the choice of groups, as the address of a panel says them."""
    return urlencode({name: typed.fields[name] for name in FIELDS} | {"last": last_of(query)})


def _fields(typed: Typed, now: Mapping[str, str]) -> dict:
    def field(name: str, label: str, words: str = "") -> dict:
        value = typed.fields[name]
        return {"name": name, "label": label, "words": words, "now": now[name], "value": value}

    return {
        "weights": [field(WEIGHT + c, c.replace("_", " ")) for c in CRITERIA],
        "constants": [field(name, *WORDS[name]) for name in (*CONSTANTS, "lambda_max")],
        "thresholds": [field(name, *WORDS[name]) for name in THRESHOLDS],
    }


def _effects(run: Run, typed: Typed, query: Mapping[str, str]) -> dict:
    pack = pack_of(run, last_of(query))
    replayed = replay(pack.scored, typed.rubric)
    found = changes(pack.scored, pack.factor_BG, replayed)
    return {"counts": _counts(found, len(pack.verdict_B))} | _chart(pack, replayed, found, query.get("group", ""))


def _counts(found: Changes, n: int) -> dict:
    rows = [
        ("Orders", found.order_B, "any change of place or tier"),
        ("First of the group", found.first_B, "others lead"),
        ("Tiers", found.tier_B, "at least one candidate"),
        ("Factors", found.factor_B, "at least one candidate"),
        ("Revised orders that no longer apply", found.dropped_B, "the order by W stands there"),
    ]
    made = [{"what": what, "groups": int(b.sum()), "share": b.mean() if n else None, "words": w} for what, b, w in rows]
    return {"n": n, "rows": made, "places_before": found.places_before, "places_after": found.places_after}


def _chart(pack: Pack, replayed: Replayed, found: Changes, asked: str) -> dict:
    """The rank changes of the group asked for, else of the one whose factors change most."""
    order = [b for b in np.argsort(-found.factor_change_B, kind="stable")[:LISTED].tolist() if found.factor_B[b]]
    rows = {int(pack.group_B[b]): b for b in order}
    wanted = int(asked) if asked.isdecimal() and len(asked) < 19 else None
    here = np.flatnonzero(pack.group_B == wanted) if wanted else []
    if len(here):
        rows.setdefault(wanted, int(here[0]))
    groups = RolloutGroup.objects.select_related("task").in_bulk(list(rows))
    shown = [pk for pk in rows if not hides_verdict(groups[pk])]
    if not shown:
        return {"chart": None, "changed_groups": len(rows)}
    pk = wanted if wanted in shown else shown[0]
    at = shown.index(pk)
    return {
        "chart": _slopes(pack, replayed, rows[pk], pk),
        "chart_group": groups[pk],
        "chart_at": at + 1,
        "chart_of": len(shown),
        "chart_before": shown[at - 1] if at else None,
        "chart_after": shown[at + 1] if at + 1 < len(shown) else None,
    }


def _slopes(pack: Pack, replayed: Replayed, b: int, pk: int) -> list[dict]:
    letters = dict(Trajectory.objects.filter(group=pk).values_list("pk", "letter"))
    own, weighted_BG = pack.scored, replayed.weighted_BG
    versions = RubricVersion.objects.get(pk=int(pack.rubric_B[b])).rubric.weights
    return [
        {
            "letter": letters[int(pack.trajectory_BG[b, g])],
            "before": (int(own.own_tier_BG[b, g]), int(own.own_place_BG[b, g])),
            "after": (int(replayed.tier_BG[b, g]), int(replayed.place_BG[b, g])),
            "t_before": int(own.own_tier_BG[b, g]),
            "t_after": int(replayed.tier_BG[b, g]),
            "w_before": float(sum(w * int(s) for w, s in zip(versions, own.scores_BGC[b, g], strict=True))),
            "w_after": float(weighted_BG[b, g]) / replayed.scale,
            "f_before": float(pack.factor_BG[b, g]),
            "f_after": float(replayed.factor_BG[b, g]),
        }
        for g in np.flatnonzero(own.there_BG[b])
    ]
