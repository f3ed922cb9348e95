"""Publish a rubric version, once, and choose one for a run. Nothing publishes by itself."""

from django.db import transaction

from grading.calibration.rubric_form import same_numbers
from grading.errors import BadInput, Conflict, NotAllowed, WrongState
from grading.models import Fit, Gate, GateKind, Role, RubricVersion, Run, RunEvent
from grading.scoring.criteria import Rubric

NAME, REASON = 60, 500


def publish(definition: object, *, name: str, reason: str, parent: RubricVersion, user) -> RubricVersion:
    """The next version, frozen from here on.

    Raises:
        NotAllowed: no admin of any team.
        BadInput: a rule of publishing is broken (all are named), or there is no name or reason.
        Conflict: a version has these numbers already, be it published at the same moment.
        WrongState: fitted numbers that passed no gate.
    """
    if not user.is_superuser and not user.memberships.filter(role=Role.ADMIN).exists():
        raise NotAllowed("publishing a rubric version needs the role admin in a team")
    for what, text, most in (("name", name, NAME), ("reason", reason, REASON)):
        if not 1 <= len(text) <= most:
            raise BadInput(f"a rubric version needs a {what}", got=f"{len(text)} characters", expected=f"1 to {most}")
    try:
        rubric = Rubric.from_json(definition, name=name)
    except ValueError as wrong:
        raise BadInput(str(wrong)) from wrong
    gate = passed_gate(rubric, user)
    if gate is None and _was_fitted(rubric, user):
        raise WrongState("these numbers were fitted and have passed no gate on held-out groups: run the gate first")
    return _store(rubric, name=name, reason=reason, parent=parent, gate=gate, user=user)


def _was_fitted(rubric: Rubric, user) -> bool:
    fitted = Fit.objects.visible_to(user).exclude(definition=None).values_list("definition", flat=True)
    return any(same_numbers(Rubric.from_json(one), rubric) for one in fitted)


def _refuse_known(rubric: Rubric) -> None:
    for version in RubricVersion.objects.all():
        if same_numbers(version.rubric, rubric):
            raise Conflict(f"{version} has these numbers already: choose it for the run")


@transaction.atomic
def _store(rubric: Rubric, *, name: str, reason: str, parent: RubricVersion, gate: Gate | None, user) -> RubricVersion:
    # One publisher at a time: of two with the same numbers the second must see what the first one stored.
    RubricVersion.objects.select_for_update(no_key=True).earliest("number")
    _refuse_known(rubric)
    newest = RubricVersion.objects.latest("number")
    return RubricVersion.objects.create(
        number=newest.number + 1, name=name, definition=rubric.to_json(), parent=parent, reason=reason, gate=gate,
        published_by=user,
    )  # fmt: skip


def passed_gate(rubric: Rubric, user) -> Gate | None:
    """The newest gate, of the teams this user sees, that these very numbers passed."""
    passed = Gate.objects.visible_to(user).filter(kind=GateKind.RUBRIC, passed=True).order_by("-pk")
    return next((gate for gate in passed if same_numbers(Rubric.from_json(gate.definition), rubric)), None)


@transaction.atomic
def choose(run: Run, version: RubricVersion, *, user) -> RunEvent | None:
    """From now on groups that become complete are pinned to this version; None where it is the run's already."""
    stored = Run.objects.select_for_update(no_key=True).select_related("rubric").get(pk=run.pk)
    if stored.rubric_id == version.pk:
        return None
    Run.objects.filter(pk=run.pk).update(rubric=version)
    changes = {"rubric": [stored.rubric.number, version.number]}
    return RunEvent.objects.create(run=stored, by=user.username, changes=changes)
