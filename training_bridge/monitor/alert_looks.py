"""One look at one run: new steps are read, each sign says what it sees. Nothing is written here but the readings."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field

from grading.models import RolloutGroup, Run
from training_bridge.models import Alert, AlertDesk, Receipt, StepReading
from training_bridge.monitor import alert_anchors, alert_moves, alert_readings, alert_values, alert_words
from training_bridge.monitor.alert_anchors import Rounds
from training_bridge.monitor.alert_signs import FALL, SHARE, SIGNS, Rule, Sign
from training_bridge.monitor.alert_values import Measured
from training_bridge.monitor.standing import Standing

SOCKET_MIN = 28  # minutes that a job with an open socket may say nothing, beyond what it may without one
UNWANTED = (Receipt.Status.TOO_LATE, Receipt.Status.EXPIRED)


@dataclass(frozen=True)
class Seen:
    """What one sign says now, and what follows from it."""

    sign: Sign
    rule: Rule
    found: Measured
    words: str
    step: int | None
    move: str | None = None


@dataclass
class Look:
    """What a look found: `seen` in the order in which it happened, and what the desk must remember."""

    run: Run
    seen: list[Seen] = field(default_factory=list)
    memory: dict = field(default_factory=dict)
    looked_step: int = -1
    life: int = 0


def look(
    here: Standing, desk: AlertDesk, rules: dict[str, Rule], alerts: dict[str, Alert], rounds: Rounds | None = None
) -> Look:
    """Read what is new, in the order of the steps, then what is true now. `alerts`: the open ones, by sign."""
    done = Look(here.run, memory=deepcopy(desk.memory), looked_step=_before_life(here, desk), life=here.life or 0)
    is_open = {key: True for key in alerts}
    last = min(alert_readings.settled(here), done.looked_step + alert_readings.AT_ONCE)
    if last > done.looked_step:
        alert_readings.read_steps(here.run, done.looked_step + 1, last)
        _look_at_steps(done, rules, is_open, last)
        done.looked_step = last
    anchors = alert_anchors.read(rounds, done.memory, rules) if rounds else {}
    for key, (found, more) in (_now(here) | anchors).items():
        sign, rule = SIGNS[key], rules[key]
        words = alert_words.said(sign, rule, found, more=more)
        _judge(done, Seen(sign, rule, found, words, here.step), is_open, at=here.now.timestamp())
    return done


def _before_life(here: Standing, desk: AlertDesk) -> int:
    """The step looked at last; a life that went back to a checkpoint repeats its steps, and they are read again."""
    if here.life is None or here.life == desk.life:
        return desk.looked_step
    first = RolloutGroup.objects.filter(run=here.run, life__n=here.life).order_by("step").values_list("step", flat=True)
    begun = first.first()
    return desk.looked_step if begun is None else min(desk.looked_step, begun - 1)


def _look_at_steps(done: Look, rules: dict[str, Rule], is_open: dict[str, bool], last: int) -> None:
    widest = max(rule.window for rule in rules.values())
    rows = StepReading.objects.filter(run=done.run, step__gt=done.looked_step - widest, step__lte=last)
    sums = dict(rows.values_list("step", "sums"))
    for step in range(done.looked_step + 1, last + 1):
        if step not in sums:
            continue
        for key, rule in rules.items():
            sign = SIGNS[key]
            if not (sign.is_read_by_step and rule.is_on):
                continue
            window = [sums[s] for s in range(step - rule.window + 1, step + 1) if s in sums]
            found = _measured(done, sign, rule, window)
            if found.value is not None:
                words = alert_words.said(sign, rule, found)
                _judge(done, Seen(sign, rule, found, words, step), is_open, at=step)


def _measured(done: Look, sign: Sign, rule: Rule, window: list[dict]) -> Measured:
    memory = done.memory.setdefault(sign.key, {})
    if sign.compares_with_start and memory.get("start") is None:
        first = StepReading.objects.filter(run=done.run).order_by("step")[: alert_values.MOST_START * rule.window]
        memory["start"] = alert_values.start_of(sign, rule, list(first.values_list("sums", flat=True)))
    found = alert_values.measure(sign, rule, window, start=memory.get("start"), best=memory.get("best"))
    if sign.kind == FALL and found.now is not None and found.n >= rule.least:
        memory["best"] = max(found.now, memory.get("best", found.now))
    return found


def _judge(done: Look, seen: Seen, is_open: dict[str, bool], *, at: float) -> None:
    """Keep what is seen, with the move that follows."""
    sign, rule, value = seen.sign, seen.rule, seen.found.value
    if value is None or not rule.is_on or (sign.unit == SHARE and seen.found.n < rule.least):
        return
    memory, move = alert_moves.advance(
        done.memory.get(sign.key, {}),
        at=at,
        is_bad=alert_values.is_bad(sign, rule, value),
        is_over=alert_values.is_over(sign, rule, value),
        is_open=is_open.get(sign.key, False),
        pace=alert_moves.BY_STEP if sign.is_read_by_step else alert_moves.BY_CLOCK,
    )
    done.memory[sign.key] = memory
    if move:
        is_open[sign.key] = move == alert_moves.FIRE
    if move or is_open.get(sign.key):
        done.seen.append(Seen(sign, rule, seen.found, seen.words, seen.step, move))


def _now(here: Standing) -> dict[str, tuple[Measured, str]]:
    """What needs no step to be over: sign -> its value, and what more there is to say."""
    # In a pause the job waits for no row: what came too late then is no sign.
    told = {status: n - here.paused_receipts.get(status, 0) for status, n in here.receipts.items()}
    total, late = sum(told.values()), sum(told.get(status, 0) for status in UNWANTED)
    broken = ", ".join(f"{name} is {word}" for name, word in here.broken_metrics)
    counts = {
        "waiting": here.unsent,
        "not_finite": len(here.broken_metrics),
        "refused": here.sums.get("refused") or 0,
        "inverted": here.sums.get("inverted") or 0,
        "dead_letters": here.dead_letters,
    }
    found = {key: (Measured(float(n), n), broken if key == "not_finite" else "") for key, n in counts.items()}
    found["silent"] = (Measured(silence_min(here)), f"{here.undecided} groups undecided")
    if total:
        found["late"] = (Measured(late / total, total), "")
    return found


def silence_min(here: Standing) -> float:
    """Minutes without a word beyond what is normal; 0 for a job that has ended, or has not begun."""
    if not here.run.is_live or here.heard_at is None or here.has_ended:
        return 0.0
    usual = SOCKET_MIN if here.is_connected else 0
    return max(0.0, (here.now - here.heard_at).total_seconds() / 60 - usual)


def newest(seen: list[Seen]) -> Iterator[Seen]:
    """The last word of each sign."""
    yield from {one.sign.key: one for one in seen}.values()
