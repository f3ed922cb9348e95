"""Saved rows for tests. Keyword-only functions; whatever is not given is made, with a name of its own.

An outcome is a letter: P passed, F failed, I infra_invalid; `outcomes="PPF"` is a group of three.
"""

import hashlib
from importlib import import_module
from itertools import count

from django.utils import timezone

from grading import bodies
from grading.models import (
    Life,
    MachineToken,
    Membership,
    RolloutGroup,
    RubricVersion,
    Run,
    Task,
    Team,
    Trajectory,
    User,
)
from grading.states import GroupState, Outcome

LETTERS = {"P": Outcome.PASSED, "F": Outcome.FAILED, "I": Outcome.INFRA_INVALID}
PASSWORD = "correct horse battery staple"
PATCH = b"""\
diff --git a/app.py b/app.py
--- a/app.py
+++ b/app.py
@@ -1,2 +1,2 @@
 def answer():
-    return 41
+    return 42
"""
FLASH = import_module("grading.migrations.0002_flash_rubric").FLASH
_number = count(1)


def make_team(*, slug: str = "") -> Team:
    slug = slug or f"team-{next(_number)}"
    return Team.objects.create(slug=slug, name=slug.capitalize())


def make_user(*, username: str = "", role: str = "", team: Team | None = None, **fields) -> User:
    """A user with PASSWORD; with a role, a member of `team`."""
    user = User.objects.create_user(username=username or f"user-{next(_number)}", password=PASSWORD, **fields)
    if role:
        Membership.objects.create(user=user, team=team or make_team(), role=role)
    return user


def flash() -> RubricVersion:
    """Rubric version 1; made anew where a transactional test has emptied the tables."""
    return RubricVersion.objects.get_or_create(number=1, defaults={"name": "Flash", "definition": FLASH})[0]


def make_run(*, team: Team | None = None, public_id: str = "", **fields) -> Run:
    public_id = public_id or f"run-{next(_number)}"
    fields = {"rubric": flash(), "name": public_id} | fields
    return Run.objects.create(team=team or make_team(), public_id=public_id, **fields)


def make_life(*, run: Run | None = None, **fields) -> Life:
    """The next life of the run."""
    run = run or make_run()
    newest = run.lives.order_by("-n").values_list("n", flat=True).first()
    return Life.objects.create(run=run, n=fields.pop("n", (newest or 0) + 1), **fields)


def make_task(*, team: Team | None = None, key: str = "", **fields) -> Task:
    fields.setdefault("statement", "Make answer() return 42.")
    return Task.objects.create(team=team or make_team(), key=key or f"task-{next(_number)}", **fields)


def make_token(*, run: Run | None = None, purposes=("ingest", "train")) -> tuple[MachineToken, str]:
    """The row, and the token for the header."""
    return MachineToken.issue(run or make_run(), name="job", purposes=purposes)


def make_trajectory(
    *,
    group: RolloutGroup,
    outcome: str = "P",
    external_id: str = "",
    patch: bytes = PATCH,
    events: list[dict] | None = None,
    log: bytes = b"",
    **fields,
) -> Trajectory:
    """One rollout of the group, with its bodies really stored."""
    external_id = external_id or f"rollout-{next(_number)}"
    if patch:
        fields |= {"patch": bodies.write_bytes(patch), "patch_bytes": len(patch)}
    if events is not None:
        stored = bodies.write_events(events)
        fields |= {"event_body": stored.sha256, "event_count": stored.events}
    if log:
        fields |= {"log": bodies.write_bytes(log), "log_bytes": len(log)}
    fields.setdefault("content_digest", hashlib.sha256(external_id.encode()).hexdigest())
    return Trajectory.objects.create(
        group=group,
        run=group.run,
        life=group.life,
        external_id=external_id,
        outcome=LETTERS.get(outcome, outcome),
        **fields,
    )


def make_group(
    *,
    run: Run | None = None,
    life: Life | None = None,
    task: Task | None = None,
    state: str = GroupState.COLLECTING,
    outcomes: str = "",
    key: str = "",
    events: list[dict] | None = None,
    patches: list[bytes] | None = None,
    **fields,
) -> RolloutGroup:
    """A group in any state, pinned and lettered (A, B, … in the order of `outcomes`) once it is past collecting.

    `patches` gives each rollout its patch; else every rollout has another one-line change.
    """
    run = run or (life.run if life else make_run())
    life = life or run.lives.order_by("-n").first() or make_life(run=run)
    if state != GroupState.COLLECTING:
        pins = {"policy": run.policy, "method": run.method, "rubric": run.rubric, "completed_at": timezone.now()}
        fields = pins | {"bodies_wanted": True, "bodies_ready": True} | fields
    group = RolloutGroup.objects.create(
        run=run,
        life=life,
        key=key or f"group-{next(_number)}",
        task=task or make_task(team=run.team),
        state=state,
        step=fields.pop("step", 1),
        group_size=fields.pop("group_size", max(len(outcomes), 1)),
        **fields,
    )
    for place, outcome in enumerate(outcomes):
        patch = patches[place] if patches else PATCH.replace(b"return 42", b"return %d" % (42 + place))
        letter = "" if state == GroupState.COLLECTING else chr(ord("A") + place)
        make_trajectory(group=group, outcome=outcome, patch=patch, events=events, letter=letter)
    return group
