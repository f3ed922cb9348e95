"""The step that announces groups before their rollouts: one, or a whole step of the job in one transaction."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from django.db import transaction

from grading import clock, wake
from grading.errors import Conflict, GradingError, WrongShape
from grading.ingest.lives import open_life
from grading.models import GroupEvent, Life, RolloutGroup, Run, Task
from grading.states import GroupState

Declared = tuple[RolloutGroup, bool]  # the group, and whether it is new


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What the job says of a group before it rolls out; `task` is a key of the team's register."""

    key: str
    task: str
    step: int
    group_size: int
    policy_version: str = ""
    eligible: bool = True


def declare_group(*, run: Run, life: int, **said) -> Declared:
    """Announce one group. The same again changes nothing; anything else is a Conflict. Args: as `Declaration`."""
    [declared] = declare_all(run=run, life=life, declarations=[Declaration(**said)])
    if isinstance(declared, GradingError):
        raise declared
    return declared


@transaction.atomic
def declare_all(*, run: Run, life: int, declarations: Sequence[Declaration]) -> list[Declared | GradingError]:
    """Announce groups. Returns one answer each, in their order; what is refused leaves the others as they are.

    Raises NotFound or Fenced where the life may declare nothing at all.
    """
    of_life = open_life(run, life, lock=True)  # whoever declares in this life waits here: no key is made twice
    of_team = Task.objects.filter(team=run.team_id, key__in={said.task for said in declarations})
    tasks = dict(of_team.values_list("key", "pk"))
    known = RolloutGroup.objects.filter(run=run, life=of_life, key__in={said.key for said in declarations})
    groups = {group.key: group for group in known}
    fresh: dict[str, dict] = {}
    for said in declarations:
        if said.task in tasks and said.key not in groups:
            fresh.setdefault(said.key, _fields(said, tasks))
    groups |= {group.key: group for group in _announce(run, of_life, fresh)}
    return [_answer(said, tasks, groups, fresh) for said in declarations]


def _announce(run: Run, life: Life, fresh: dict[str, dict]) -> list[RolloutGroup]:
    if not fresh:
        return []
    within = run.collect_deadline_s if run.is_live else None
    collect_by = None if within is None else clock.now() + timedelta(seconds=within)
    made = RolloutGroup.objects.bulk_create(
        RolloutGroup(run=run, life=life, key=key, collect_by=collect_by, **fields) for key, fields in fresh.items()
    )
    by, state = f"life:{life.n}", GroupState.COLLECTING
    GroupEvent.objects.bulk_create(GroupEvent(group=g, old=state, new=state, by=by, reason="declared") for g in made)
    wake.pages(run.pk)
    return made


def _fields(said: Declaration, tasks: dict[str, int]) -> dict:
    fields = asdict(said)
    del fields["key"]
    return {"task_id": tasks[fields.pop("task")], **fields}


def _answer(
    said: Declaration, tasks: dict[str, int], groups: dict[str, RolloutGroup], fresh: dict[str, dict]
) -> Declared | GradingError:
    if said.task not in tasks:
        expected = f"a key that was sent before: PUT /tasks/{said.task}"
        return WrongShape("no such task", got=said.task, expected=expected, where="task")
    group = groups[said.key]
    return _declared_otherwise(group, _fields(said, tasks)) or (group, fresh.pop(said.key, None) is not None)


def _declared_otherwise(group: RolloutGroup, said: dict) -> Conflict | None:
    changed = {name: getattr(group, name) for name, value in said.items() if getattr(group, name) != value}
    if not changed:
        return None
    return Conflict(
        f"group {group.key} was declared otherwise",
        got={name.removesuffix("_id"): said[name] for name in changed},
        expected={name.removesuffix("_id"): value for name, value in changed.items()},
        where=", ".join(name.removesuffix("_id") for name in changed),
    )
