"""How a run's signs are judged: the defaults, and what people changed, with its history."""

from collections.abc import Collection, Mapping

from django.db import transaction

from grading.errors import BadInput
from grading.models import Run, RunEvent
from training_bridge.models import AlertDesk, AlertRule
from training_bridge.monitor.alert_signs import SIGNS, Rule

FIELDS = ("is_on", "threshold", "window", "least")
MOST_WINDOW, MOST_LEAST, MOST_THRESHOLD = 200, 1_000_000, 1e9


def rules_of(runs: Collection[Run]) -> dict[int, dict[str, Rule]]:
    """Run pk -> sign -> rule, of several runs in one query."""
    found = {run.pk: {key: sign.rule for key, sign in SIGNS.items()} for run in runs}
    for row in AlertRule.objects.filter(run__in=[run.pk for run in runs], sign__in=SIGNS):
        found[row.run_id][row.sign] = Rule(row.threshold, row.window, row.least, row.is_on)
    return found


@transaction.atomic
def change_rule(run: Run, sign: str, rule: Rule, *, user) -> RunEvent | None:
    """Set one sign's rule, and say so in the run's history; None where nothing changed.

    What the sign remembered of the run goes: its start and its best belong to the old window.
    """
    _check(sign, rule)
    Run.objects.select_for_update(no_key=True).get(pk=run.pk)  # of two people one after the other
    old = rules_of([run])[run.pk][sign]
    changes = {
        f"alert {SIGNS[sign].title}, {name}": [getattr(old, name), getattr(rule, name)]
        for name in FIELDS
        if getattr(old, name) != getattr(rule, name)
    }
    if not changes:
        return None
    values = {name: getattr(rule, name) for name in FIELDS}
    if rule == SIGNS[sign].rule:
        AlertRule.objects.filter(run=run, sign=sign).delete()
    else:
        AlertRule.objects.update_or_create(run=run, sign=sign, defaults=values)
    _forget(run, sign)
    return RunEvent.objects.create(run=run, by=user.username, changes=changes)


def _forget(run: Run, sign: str) -> None:
    desk = AlertDesk.objects.select_for_update(no_key=True).filter(run=run).first()
    if desk and desk.memory.pop(sign, None) is not None:
        AlertDesk.objects.filter(pk=desk.pk).update(memory=desk.memory, version=desk.version + 1)


def _check(sign: str, rule: Rule) -> None:
    if sign not in SIGNS:
        raise BadInput("no such sign", got=sign[:40], expected=", ".join(SIGNS), where="sign")
    if not -MOST_THRESHOLD <= rule.threshold <= MOST_THRESHOLD:  # NaN compares false
        raise BadInput("the threshold is no number", got=rule.threshold, expected="a finite number", where="threshold")
    for name, most in (("window", MOST_WINDOW), ("least", MOST_LEAST)):
        if not 1 <= getattr(rule, name) <= most:
            got = getattr(rule, name)
            raise BadInput(f"{name} is out of range", got=got, expected=f"1 to {most}", where=name)


def read_rule(said: Mapping[str, str]) -> Rule:
    """A rule out of a form's fields."""
    try:
        whole = {name: int(said.get(name, "")) for name in ("window", "least")}
        return Rule(float(said.get("threshold", "")), is_on=said.get("is_on") == "1", **whole)
    except ValueError:
        got = ", ".join(f"{name}={said.get(name, '')[:20]!r}" for name in ("threshold", "window", "least"))
        expected = "a number, and two whole numbers"
        raise BadInput("threshold, window and minimum are numbers", got=got, expected=expected) from None
