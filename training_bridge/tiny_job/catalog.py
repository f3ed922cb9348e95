"""The tasks: small Python projects with a bug, read from one TOML file each."""

import functools
import tomllib
from dataclasses import dataclass, field
from importlib import resources

from training_bridge.tiny_job import tree as trees
from training_bridge.tiny_job.errors import BrokenTask

EDIT_KINDS = ("fix", "partial", "break", "special", "rewrite")


@dataclass(frozen=True)
class Written:
    """An edit that is written out in a task file.

    Args:
        name: unique in its task.
        kind: one of EDIT_KINDS.
        say: what the author of the edit says about it.
        swaps: (old, new) pairs; each old text must occur exactly once.
        text: the new module as a whole, for a rewrite; else None.
    """

    name: str
    kind: str
    say: str
    swaps: tuple[tuple[str, str], ...]
    text: str | None


@dataclass(frozen=True)
class Task:
    """One small project and everything that can be done to it.

    Args:
        key: name of the task.
        title: one line.
        statement: what the policy is asked to do.
        module: path of the file with the bug.
        failing: name of the visible test that shows the bug.
        base: the project as it is found, path -> text; holds the visible tests and the answer file.
        hidden: tests that decide the outcome, path -> text.
        edits: the edits of the task file.
        answer: path of the file with the answer that lies around.
    """

    key: str
    title: str
    statement: str
    module: str
    failing: str
    base: trees.Tree = field(hash=False)
    hidden: trees.Tree = field(hash=False)
    edits: tuple[Written, ...]
    answer: str

    @property
    def visible_tests(self) -> tuple[str, ...]:
        """Paths of the tests the policy sees."""
        return tuple(path for path in sorted(self.base) if path.startswith("test_"))

    @property
    def reference(self) -> trees.Tree:
        """The project with the first right fix, the patch a grader may look at."""
        return {**self.base, self.module: swap(self.base[self.module], self.edits[0].swaps)}


def swap(text: str, swaps: tuple[tuple[str, str], ...]) -> str | None:
    """Replace texts that occur exactly once.

    Args:
        text: the file.
        swaps: (old, new) pairs, done in order.
    Returns:
        The new file; None if an old text does not occur exactly once.
    """
    for old, new in swaps:
        if text.count(old) != 1:
            return None
        text = text.replace(old, new)
    return text


@functools.cache
def load() -> dict[str, Task]:
    """Return every task by key, in alphabetical order.

    Raises:
        BrokenTask: a task file lacks something or contradicts itself.
    """
    folder = resources.files("training_bridge.tiny_job") / "tasks"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    return {task.key: task for task in (_read(entry.name[:-5], entry.read_text("utf-8")) for entry in files)}


def _read(key: str, text: str) -> Task:
    raw = tomllib.loads(text)
    try:
        edits = tuple(_edit(key, entry) for entry in raw["edits"])
        module, source = raw["module"], raw["files"][raw["module"]]
        solved = swap(source, edits[0].swaps)
        if edits[0].kind != "fix" or solved is None:
            raise BrokenTask(f"task {key!r}: the first edit is {edits[0].name!r}, expected a fix that applies")
        answer = f"vendor/upstream/{module}"
        base = {
            **raw["files"],
            "README.md": f"# {module.removesuffix('.py')}\n\n{raw['title']}.\n\nTests: `python -m unittest`\n",
            answer: f"# Copied from the next release of {module}; kept for reference only.\n{solved}",
        }
        return Task(key, raw["title"], raw["statement"], module, raw["failing"], base, raw["hidden"], edits, answer)
    except KeyError as missing:
        raise BrokenTask(f"task {key!r} has no {missing}, expected title, statement, module, failing, files…") from None


def _edit(key: str, entry: dict) -> Written:
    if entry["kind"] not in EDIT_KINDS:
        raise BrokenTask(f"task {key!r}: edit {entry['name']!r} is {entry['kind']!r}, expected one of {EDIT_KINDS}")
    swaps = tuple((old, new) for old, new in entry.get("swaps", ()))
    return Written(entry["name"], entry["kind"], entry["say"], swaps, entry.get("text"))
