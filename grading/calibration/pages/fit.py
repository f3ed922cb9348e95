"""The fit page: what people's orders allow, the newest fit, the gate's checklist and every look so far."""

from collections.abc import Iterable, Mapping

from grading.calibration import fitting, gates
from grading.calibration.gate import GROUPS, PAIRS
from grading.calibration.identity import Choice
from grading.calibration.orders import decided, within_tiers
from grading.calibration.pages.behind import behind
from grading.calibration.publish import passed_gate
from grading.calibration.rubric_form import FIELDS, Typed, read_rubric, same_numbers, typed_of
from grading.models import Fit, Gate, GateKind, Role, Run
from grading.scoring.criteria import Rubric

LISTED = 20
COUNTS = {
    "read": "read by a fit",
    "held": "held out, not spent yet, with a decided pair",
    "look": "spent by a look",
    "other": "ranked by people and by",
}
LEFT, WIDE, MOST = 8, 170, 0.6  # of the weight plot: pixels, and the weight at its right end


def fit_page(run: Run, user, query: Mapping[str, str]) -> dict:
    """Context of grading/calibration_fit.html for one run."""
    graders = fitting.whose(run, query.get("grader", ""))
    read, held = fitting.pool(run, graders)
    pairs = within_tiers(read, run.rubric.rubric)
    ready = gates.ready(held)
    newest = Fit.objects.visible_to(user).filter(run=run).order_by("-pk").first()
    typed = read_rubric(query, run.rubric.rubric)
    candidate = _candidate(run, newest, query, typed)
    gate = passed_gate(candidate, user) if candidate else None
    looks = Gate.objects.visible_to(user).filter(team=run.team_id).select_related("base").order_by("-pk")
    return {
        "needs": {"groups": GROUPS, "pairs": PAIRS},
        "pool": {"groups": len(read.groups), "pairs": int((pairs.first_P != 0.5).sum()), "ties": _ties(pairs)},
        "all_pairs": len(decided(read).group_P),
        "ready": ready,
        "fit": newest,
        "weights": _plotted(newest),
        "candidate": _named(candidate, run.rubric.rubric),
        "is_fitted": bool(newest and newest.definition and candidate and _is_fit(newest, candidate)),
        "refused": typed.error,
        "gate": gate,
        "checks": _checks(ready, gate),
        "looks": looks[:LISTED],
        "kinds": GateKind,
        "graders": graders,
        "where": {"run": run.public_id},
        "others": [_grader(run, name, graders) for name in gates.other_graders(run)],
        "chosen": _chosen(run, user, query, {"read": read.groups, "held": decided(held).group_P.tolist()}, graders),
        "may_admin": user.may(Role.ADMIN, run.team_id),
        "may_fit": user.may(Role.REVIEWER, run.team_id),
    }


def _chosen(run: Run, user, query: Mapping[str, str], pools: Mapping[str, Iterable[int]], graders: Choice):
    """The groups behind a count: of a pool, of a look that spent them, or that another grader ranked too."""
    count, other = query.get("count", ""), query.get("other", "")
    if count in pools:
        words, found = COUNTS[count], pools[count]
    elif count == "look":
        looks = Gate.objects.visible_to(user).filter(team=run.team_id)  # few: each spends thirty groups or more
        look = next((one for one in looks if str(one.pk) == query.get("look")), None)
        words, found = COUNTS[count], look.spent.values_list("group", flat=True) if look else ()
    elif count == "other" and other in gates.other_graders(run):
        words, found = f"{COUNTS[count]} {other}", decided(gates.both_graded(run, other, graders)[0]).group_P.tolist()
    else:
        return None
    return behind(user, {group: (None, 0) for group in found}, query, words=words)


def _ties(pairs) -> int:
    return int((pairs.first_P == 0.5).sum())


def _candidate(run: Run, newest: Fit | None, query: Mapping[str, str], typed: Typed) -> Rubric | None:
    """The numbers a gate would look at: those of the address, else the fitted ones; None where they are in force."""
    if any(name in query for name in FIELDS):
        rubric = typed.rubric
    else:
        rubric = Rubric.from_json(newest.definition, name="fitted") if newest and newest.definition else None
    return None if rubric is None or same_numbers(rubric, run.rubric.rubric) else rubric


def _is_fit(newest: Fit, candidate: Rubric) -> bool:
    return same_numbers(Rubric.from_json(newest.definition), candidate)


def _named(candidate: Rubric | None, now: Rubric) -> dict | None:
    if candidate is None:
        return None
    old, new = typed_of(now), typed_of(candidate)
    changed = [{"name": n.removeprefix("weight-"), "now": old[n], "new": new[n]} for n in FIELDS if old[n] != new[n]]
    return {"fields": new, "changed": changed}


def _plotted(newest: Fit | None) -> list[dict]:
    def x(weight: float) -> float:
        return round(LEFT + WIDE * min(weight, MOST) / MOST, 1)

    rows = newest.report["weights"].get("rows", ()) if newest else ()
    return [
        row | {"x_now": x(row["now"]), "x_fit": x(row["fitted"]), "x_ci": [x(end) for end in row["interval"] or ()]}
        for row in rows
    ]


def _checks(ready: gates.Ready, gate: Gate | None) -> list[dict]:
    if gate:
        gain = f"Gain {100 * gate.gain:+.1f} points, interval {100 * gate.low:+.1f} to {100 * gate.high:+.1f}"
        return [
            {"ok": True, "words": f"{gate.groups} held-out groups (at least {GROUPS})"},
            {"ok": True, "words": f"{gate.pairs} decided pairs (at least {PAIRS})"},
            {"ok": True, "words": f"{gain}: above 0"},
        ]
    return [
        {
            "ok": ready.groups >= GROUPS,
            "words": f"{ready.groups} held-out groups not spent yet (at least {GROUPS})",
            "count": "held",
        },
        {"ok": ready.pairs >= PAIRS, "words": f"{ready.pairs} decided pairs in them (at least {PAIRS})"},
        {"ok": False, "words": "The gain’s interval excludes 0: nobody has looked at these numbers, or it did not"},
    ]


def _grader(run: Run, name: str, choice: Choice) -> dict:
    return {"name": name, "ready": gates.ready(gates.both_graded(run, name, choice)[0])}
