"""The panels of the monitor: which series each draws, in which colour."""

from collections.abc import Mapping, Sequence

from grading.states import Method
from training_bridge.monitor.metrics import OTHERS, other_names

GAIN, WARN, DANGER = "var(--gain)", "var(--warn)", "var(--danger)"
CSS = ("series-1", "series-2", "series-3", "series-4")
COLOURS = ("accent", "gain", "loss", "ink-3")
WORDS = {  # what the word of a legend stands for, where the word alone does not say it
    "regime_exact": "sums kept exactly: λ gives the passes back what their factors take",
    "regime_bounded": "λ would have to be higher than its cap: a part of the credit is not given back",
    "regime_fallback": "no verdict counted: outcome advantages went out",
    "regime_other": "filtered, excluded or ineligible groups, and those of the methods baseline and clip",
    "fallback_deadline": "the deadline passed before a verdict counted",
    "fallback_grader": "the grader gave no valid verdict",
    "fallback_other": "the run was paused or only shadows its grader, or a person let them fall back",
    "fallback_own": "the job used its own advantages before the rows came",
}
INTERVAL = ("pass_rate_low", "pass_rate_high")


def _mix(colour: str, percent: int) -> str:
    return f"color-mix(in srgb, {colour} {percent}%, var(--surface))"


def _lines(*named: tuple[str, str], dash: Sequence[str] = ()) -> list[dict]:
    return [
        {"series": series, "label": label, "colour": COLOURS[i], "css": CSS[i], "dash": series in dash}
        | {"words": WORDS.get(series, "")}
        for i, (series, label) in enumerate(named)
    ]


def _bands(*named: tuple[str, str, str, str]) -> list[dict]:
    return [
        {"series": s, "label": label, "colour": colour, "css": css, "dash": False, "words": WORDS.get(s, "")}
        for s, label, colour, css in named
    ]


def _panel(key: str, title: str, sub: str, lines: list[dict], *, unit="number", digits=2, low=None, high=None) -> dict:
    kind = "bands" if lines[0]["css"].startswith("band-") else "lines"
    shown = {"key": key, "title": title, "sub": sub, "kind": kind, "unit": unit, "digits": digits, "lines": lines}
    return shown | {"min": low, "max": high}


REGIMES = _bands(
    ("regime_exact", "exact", _mix(GAIN, 55), "band-exact"),
    ("regime_bounded", "bounded", _mix(WARN, 60), "band-bounded"),
    ("regime_other", "other", "rule-strong", "band-ineligible"),
    ("regime_fallback", "fallback", _mix(DANGER, 75), "band-fallback"),
)
TIERS = _bands(
    ("tier_1", "T1", _mix("var(--tier-1)", 70), "band-t1"),
    ("tier_2", "T2", _mix("var(--tier-2)", 45), "band-t2"),
    ("tier_3", "T3", _mix("var(--tier-3)", 65), "band-t3"),
)
JOB = [
    _panel(
        "pass_rate", "Pass rate", "avg@k",
        _lines(("pass_rate", "passed"), ("pass_rate_low", "95 % from"), ("pass_rate_high", "to"), dash=INTERVAL),
        unit="percent", digits=1, low=0, high=1,
    ),
    _panel("turns", "Turns", "mean of the rollouts", _lines(("turns", "turns")), digits=1, low=0),
    _panel(
        "length", "Length", "tokens, mean", _lines(("response_tokens", "response"), ("tokens", "whole rollout")),
        digits=0, low=0,
    ),
    _panel(
        "spoilt", "Truncated and invalid", "share of the rollouts",
        _lines(("truncated_share", "truncated"), ("invalid_share", "infra-invalid")), unit="percent", digits=1, low=0,
    ),
    _panel("pg_loss", "Policy-gradient loss", "", _lines(("pg_loss", "loss")), digits=4),
    _panel("entropy", "Entropy", "of the policy", _lines(("entropy", "entropy")), digits=3, low=0),
]  # fmt: skip
CREDIT = [
    _panel(
        "kept", "Credit and penalty kept", "share",
        _lines(("credit_kept", "credit, passes"), ("penalty_kept", "penalty, failures")), unit="percent", digits=1,
    ),
    _panel("balance", "Token-weighted balance", "Σ A len / Σ len", _lines(("balance", "balance")), digits=4),
    _panel("regimes", "Regimes", "share of the groups", REGIMES, unit="percent", digits=0, low=0, high=1),
    _panel("tiers", "Tiers", "share of the ranked passes", TIERS, unit="percent", digits=0, low=0, high=1),
    _panel(
        "weights", "Lambda and factors", "redistributed groups",
        _lines(
            ("lambda_mean", "λ, mean"), ("factor_mean", "factor, mean"), ("lambda_highest", "λ, highest"),
            dash=("lambda_highest",),
        ), low=0,
    ),
    _panel(
        "cap", "Cap on lambda", "share of the redistributed groups", _lines(("cap_share", "bounded")), unit="percent",
        digits=0, low=0, high=1,
    ),
]  # fmt: skip
WORK = [
    _panel(
        "fallbacks", "Fallbacks by reason", "groups",
        _lines(
            ("fallback_deadline", "deadline"), ("fallback_grader", "grader"), ("fallback_other", "other"),
            ("fallback_own", "job did not wait"),
        ), digits=0, low=0,
    ),
    _panel(
        "grading_time", "Grading time", "complete to graded",
        _lines(
            ("grading_median", "median"), ("grading_p90", "90 %"), ("grading_mean", "mean"),
            ("grading_slowest", "slowest"), dash=("grading_slowest",),
        ), unit="seconds", digits=1, low=0,
    ),
    _panel(
        "queue", "Queue depth", "groups, as a step was declared",
        _lines(("queue_undecided", "undecided"), ("queue_people", "for people")), digits=0, low=0,
    ),
    _panel(
        "missed", "Missed", "groups",
        _lines(("deadlines_missed", "deadline decided"), ("came_too_late", "came too late")), digits=0, low=0,
    ),
    _panel(
        "sent_after", "Delivery lag", "decision to socket",
        _lines(("sent_after_mean", "mean"), ("sent_after_slowest", "slowest"), dash=("sent_after_slowest",)),
        unit="seconds", digits=2, low=0,
    ),
    _panel(
        "used_after", "Used after", "steps, mean of the applied groups", _lines(("used_after_steps", "steps")),
        digits=1, low=0,
    ),
]  # fmt: skip
DEFICIT = _panel(
    "deficit", "Deficit D", "Eq. 1, reward units a group", _lines(("deficit", "taken, not given")), digits=4, low=0
)


def of_run(method: str, names: Mapping[str, str], also: Sequence[str]) -> list[dict]:
    """The panels of a run: the fixed ones, D where passes are only downweighted, the job's other names.

    Args:
        method: of the run.
        names: what the job reported, with its units.
        also: names asked for beyond the first ones.
    """
    credit = [*CREDIT, DEFICIT] if method == Method.DOWNWEIGHT_ONLY else CREDIT
    first = other_names(names)
    others = [*first[:OTHERS], *(name for name in dict.fromkeys(also) if name in first[OTHERS:])]
    return [_with_units(panel, names) for panel in (*JOB, *credit, *WORK)] + [other_panel(n, names[n]) for n in others]


def _with_units(panel: dict, names: Mapping[str, str]) -> dict:
    units = [names[line["series"]] for line in panel["lines"] if names.get(line["series"])]
    return panel | {"sub": f"{panel['sub']} · {units[0]}".strip(" ·")} if units else panel


def other_panel(name: str, unit: str = "") -> dict:
    """A panel for a metric that only the job knows."""
    sub = f"reported by the job · {unit}" if unit else "reported by the job"
    return _panel(f"job-{name}", name.replace("_", " "), sub, _lines((name, name)), unit="plain", digits=3)
