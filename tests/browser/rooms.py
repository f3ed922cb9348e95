"""What the browser tests look at: a team, its reviewer, a run, a held group with patches worth reading."""

from concurrent.futures import ThreadPoolExecutor

from django.db import connection
from django.test import Client
from playwright.sync_api import Page, expect

from grading.models import Role, RolloutGroup, Run, User
from grading.states import GroupState, Policy
from tests.factories import PASSWORD, make_group, make_run, make_task, make_team, make_user
from tests.verdicts import add_verdict

STATEMENT = """answer() is off by one

The answer is 42. `answer()` says 41, and so does everything that is built on it.
"""
REASON = "it rewrites more than the task asks"
EVENTS = [
    {"kind": "system", "text": "You mend small modules."},
    {"kind": "action", "text": "cat app.py", "tool": "bash"},
    {"kind": "observation", "text": "def answer():\n    return 41\n", "exit_code": 0},
    {"kind": "edit", "text": "app.py: return 42"},
    {"kind": "test", "text": "\x1b[31m1 failed\x1b[0m, 6 passed", "exit_code": 1},
    {"kind": "submit", "text": "done"},
]


def _file(path: str, removed: str, added: list[str]) -> str:
    body = "".join(f"+{line}\n" for line in added)
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
    return head + f"@@ -1,2 +1,{len(added) + 1} @@\n def answer():\n-{removed}\n{body}"


def small_patch(answer: str = "42") -> bytes:
    return _file("app.py", "    return 41", [f"    return {answer}"]).encode()


def wide_patch() -> bytes:
    """The fix, and eight files that nobody asked for: the later ones are out of sight."""
    parts = [_file("app.py", "    return 41", ["    return 6 * 7  # the answer"])]
    for n in range(8):
        lines = [f"    value_{i} = compute({i}, table[{n}])" for i in range(30)]
        parts.append(_file(f"extra/module_{n}.py", "    return 41", lines))
    return "".join(parts).encode()


def make_room(*, role: str = Role.REVIEWER, **fields) -> tuple[User, Run]:
    """A signed-up person and a run of their team."""
    team = make_team(slug="readers")
    user = make_user(username="rita", role=role, team=team)
    fields = {"public_id": "small-modules", "name": "Small modules", "policy": Policy.MANUAL} | fields
    run = make_run(team=team, **fields)
    return user, run


def make_held(run: Run, *, task: str = "answers", scores: dict[str, int] | None = None, **fields) -> RolloutGroup:
    """A is the plain fix, B the wide one, C a third; D failed, E is infra-invalid."""
    usual = {
        "outcomes": "PPPFI",
        "patches": [small_patch(), wide_patch(), small_patch("40 + 2"), small_patch("43"), b""],
        "events": EVENTS,
        "hold_reason": "policy manual",
    }
    made = make_task(team=run.team, key=task, statement=STATEMENT)
    group = make_group(run=run, state=GroupState.GRADED, held=True, task=made, **usual | fields)
    for trajectory in group.trajectories.all():
        status = "passed" if trajectory.outcome == "passed" else "failed"
        trajectory.tests = [{"name": f"test_{n}", "status": "passed"} for n in range(6)]
        trajectory.tests.append({"name": "test_answer", "status": status, "message": "41 != 42"})
        trajectory.save()
    add_verdict(group, {"A": 5, "B": 3, "C": 5} if scores is None else scores)
    return group


def sign_in(page: Page, server: str, user: User, *, password: str = PASSWORD) -> None:
    page.goto(f"{server}/sign-in")
    page.get_by_label("Name").fill(user.username)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    if password == PASSWORD:
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def enter(page: Page, server: str, user: User) -> None:
    """Signed in already: a session as the form makes it, without two more pages."""
    client = Client()
    client.force_login(user)
    page.context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": server}])


def open_group(page: Page, server: str, group: RolloutGroup, query: str = "") -> None:
    """The group's page, with the numbers that training gets arrived."""
    page.goto(f"{server}/groups/{group.pk}/{query}")
    expect(page.locator("#advantage-panel .sum-check")).to_be_visible()


def meanwhile(what) -> None:
    """Let the server's side do something. In a thread of its own: Playwright's loop runs in this one."""

    def work():
        try:
            what()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other:
        other.submit(work).result()


def lower(
    page: Page, criterion: str = "minimality", score: str = "2", reason: str = REASON, *, letter: str = "A"
) -> None:
    """Type another score, why, and the line that shows it; not saved yet."""
    page.get_by_label(f"{letter} {criterion}").fill(score)
    page.get_by_label("Reason").first.fill(reason)
    row = page.locator("[data-cite-row]").first
    row.get_by_label("candidate").select_option(letter)
    row.get_by_label("what it shows").select_option(criterion)
    row.get_by_label("place", exact=True).fill("app.py:2")
