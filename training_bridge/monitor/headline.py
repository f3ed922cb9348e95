"""The six figures on top of the monitor."""

from grading.templatetags.figures import ago, fixed, percent, signed
from training_bridge.monitor import metrics
from training_bridge.monitor.derived import common_reason
from training_bridge.monitor.standing import LAST_STEPS, Standing

BACK = 10  # steps between a figure and what it is compared with


def figures(here: Standing) -> list[dict]:
    """Name, value and words of each."""
    points: metrics.Points = {}
    if here.step is not None:
        first = max(0, here.step - 3 * BACK)
        points = metrics.reported({here.run.pk: first}, ("pass_rate", "entropy"))[here.run.pk]
    rate, before = _newest(points.get("pass_rate", {}))
    entropy, entropy_before = _newest(points.get("entropy", {}))
    sums = here.sums
    kept = sums["paid"] / sums["due"] if sums.get("due") else None
    penalty = sums["penalised"] / sums["penalty"] if sums.get("penalty") else None
    left = f"penalty {percent(penalty)}, last {LAST_STEPS} steps" if kept is not None else ""
    return [
        _figure("Step", "–" if here.step is None else str(here.step), _heard(here)),
        _pass_rate(rate, before, sums),
        _figure("Entropy", fixed(entropy, 3), _change(entropy, entropy_before, digits=3)),
        _figure("Credit kept", percent(kept), left),
        _figure("Fallback", percent(here.fallback_share), _why(sums)),
        _figure("For people", str(here.waiting), f"of {here.undecided} undecided"),
    ]


def _pass_rate(rate: float | None, before: float | None, sums: dict) -> dict:
    """As the job reports it; until it does, of the groups that were paid, as in the panel."""
    if rate is None and sums.get("n_valid"):
        return _figure("Pass rate", percent(sums["n_passes"] / sums["n_valid"], 1), f"last {LAST_STEPS} steps")
    return _figure("Pass rate", percent(rate, 1), _change(rate, before, scale=100, digits=1, unit=" pt"))


def _figure(name: str, value: str, words: str) -> dict:
    return {"name": name, "value": value, "words": words}


def _newest(points: dict[int, float | None]) -> tuple[float | None, float | None]:
    """The newest value, and the one of some steps before it."""
    known = [(step, value) for step, value in sorted(points.items()) if value is not None]
    if not known:
        return None, None
    step, value = known[-1]
    return value, next((old for at, old in reversed(known) if at <= step - BACK), None)


def _change(now: float | None, before: float | None, *, scale: float = 1, digits: int, unit: str = "") -> str:
    return "" if before is None else f"{signed((now - before) * scale, digits)}{unit} over {BACK} steps"


def _heard(here: Standing) -> str:
    if here.life is None:
        return here.state
    return f"{here.state}, life {here.life}, heard {ago(here.heard_at)}"


def _why(sums: dict) -> str:
    reason = common_reason(sums) if sums else ""
    return f"most: {reason}" if reason else f"last {LAST_STEPS} steps"
