"""The shared workspace of one group: who is shown under which letter, in which order, on which repository.

Opening costs two queries and the passing patches; events, logs, repository and trees are read when looked at.
"""

import random
import re
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from django.conf import settings

from grading import bodies
from grading.grader import gather, repository, safe_files
from grading.grader.files import Files
from grading.grader.material import CandidateMaterial, GroupMaterial
from grading.grader.options import GradingOptions
from grading.grader.parse import check
from grading.grader.presented import Ids
from grading.grader.repository import Base
from grading.grader.scrub import Scrub, signers
from grading.grader.shape import GraderReply, Problem
from grading.grader.shown import Shown
from grading.grader.trees import FILE_BYTES, FilePart, Listed
from grading.models import RolloutGroup, Signal, Trajectory
from grading.scoring.criteria import Rubric

TELLING = ("model", "agent", "scaffold", "author", "user", "system", "vendor", "team", "submission", "run", "name")
NAME_CHARS = (3, 120)
SIGNED_BYTES = 200_000  # of a patch, in which somebody signs
SIGNERS = 8  # of a patch
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Workspace:
    """One group for one grading. Use `with Workspace.open(group) as ws`; its folder is gone afterwards.

    `order` are the letters of the passing rollouts, shuffled; `confirmed` those of them that nobody ranks.
    """

    def __init__(self, group: RolloutGroup, seed: int | str | None = None):
        self.group = group
        self.seed = random.SystemRandom().getrandbits(63) if seed is None else seed
        self.material = self._read_material()
        rows = {row.external_id: row for row in group.trajectories.counted()}
        self.letters: Mapping[str, str] = _letters(rows, self.material)  # id -> letter
        self._set_out(rows, ids=[*rows, group.run.public_id, group.run.name], passed=self.material.passing)

    def _set_out(
        self,
        rows: Mapping[str, Trajectory],
        *,
        ids: Iterable[str],
        passed: Collection[str],
        makers: Collection[str] = (),
    ) -> None:
        """Lay the rollouts out: scrubbed, under their letters, shuffled; `passing` are those that are to be ranked."""
        material = self.material
        names = _names(rows).union(*map(_signers, (*material.passing.values(), *material.failing.values())), makers)
        self._scrub = Scrub(names=names, ids=ids, about=self.group.task.statement)
        shown = [
            Shown(letter, rows[id], material.get(id), self._scrub, passed=id in passed)
            for id, letter in self.letters.items()
        ]
        random.Random(f"{self.group.pk}:{self.seed}").shuffle(shown)
        self.passing: Mapping[str, Shown] = {one.letter: one for one in shown if one.raw.id in material.passing}
        self.failing: Mapping[str, Shown] = {one.letter: one for one in shown if one.letter not in self.passing}
        self.shown: Mapping[str, Shown] = {**self.passing, **self.failing}
        self.order: tuple[str, ...] = tuple(self.passing)
        self.confirmed = frozenset(self.letters[id] for id in material.confirmed)
        for one in shown:
            same = (other.letter for other in shown if other is not one and other.raw.patch == one.raw.patch)
            one.twins = tuple(sorted(same))
        self._ids = Ids(self.shown, self._scrub)

    @classmethod
    @contextmanager
    def open(cls, group: RolloutGroup, seed: int | str | None = None) -> Iterator["Workspace"]:
        """Open the group; the same seed gives the same order. Whatever it made on disk is removed at the end."""
        workspace = cls(group, seed)
        try:
            yield workspace
        finally:
            workspace.close()

    def close(self) -> None:
        if "files" in self.__dict__:
            self.files.close()
        if "folder" in self.__dict__:
            safe_files.remove(self.folder)

    @cached_property
    def folder(self) -> Path:
        """A folder of its own, made when something first needs one."""
        home().mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"group-{self.group.pk}-", dir=home()))

    @property
    def ranked(self) -> tuple[str, ...]:
        """The letters a verdict has to rank, in the order of presentation."""
        return tuple(letter for letter in self.order if letter not in self.confirmed)

    def prompt_name(self, grader: str) -> str:
        """The prompt by which a grader of this name works here."""
        return grader

    def standing(self, shown: Shown) -> str:
        """What the grader is told of a rollout's place in this grading."""
        if shown.letter in self.confirmed:
            return "passed, but a leak or hack is confirmed: not ranked"
        return "passed, to be ranked" if shown.passed else "failed, context only"

    def signals(self) -> list[tuple[str, Signal]]:
        """What detectors saw, strong ones first, with the letter of the rollout."""
        rows = Signal.objects.standing().filter(group=self.group, trajectory__is_late=False).exclude(detector="")
        rows = rows.select_related("trajectory").order_by("-is_strong", "pk")
        found = ((self.letters.get(row.trajectory.external_id), row) for row in rows)
        return [(letter, row) for letter, row in found if letter]

    def _read_material(self) -> GroupMaterial:
        return gather.material_of(self.group)

    @property
    def _rubric(self) -> Rubric:
        return (self.group.rubric or self.group.run.rubric).rubric

    @property
    def statement(self) -> str:
        return self.group.task.statement

    @cached_property
    def reference_patch(self) -> bytes | None:
        """A fix that is known to work: to understand the task, no criterion."""
        return bodies.read_bytes(key) if (key := self.group.task.reference_patch) else None

    @cached_property
    def files(self) -> Files:
        """The repository at its base commit, and every rollout's version of it."""
        return Files(self.group.task, self.shown, self._scrub, lambda: self.folder / "git")

    @property
    def repository(self) -> Base | None:
        """The base commit; None where there is none to look at, `why_no_repository` says why."""
        return self.files.base

    @property
    def why_no_repository(self) -> str:
        return self.files.why_not

    def tree(self, letter: str | None = None) -> Path | None:
        """A private copy of the base, or of a rollout's version of it; None where `why_no_tree` has words."""
        return self.files.copy(letter)

    def why_no_tree(self, letter: str | None = None) -> str:
        return self.files.why_no_tree(letter)

    def read_file(self, path: str, letter: str | None = None, *, offset: int = 0, limit: int = FILE_BYTES) -> FilePart:
        """Bytes of a file, of the base or of a rollout's version; `.total` says how long it is. NotFound has words."""
        return self.files.read(path, letter, offset=offset, limit=limit)

    def list_files(self, under: str = "", letter: str | None = None, *, start: int = 0, limit: int = 500) -> Listed:
        """Files below a folder, in the order of their paths."""
        return self.files.listed(under, letter, start=start, limit=limit)

    def search_files(
        self, pattern: str, letter: str | None = None, *, start: int = 0, limit: int = 100, **how
    ) -> Listed:
        """Lines that hold a pattern; `how`: under, is_regex, ignore_case."""
        return self.files.search(pattern, letter, start=start, limit=limit, **how)

    @cached_property
    def options(self) -> GradingOptions:
        return GradingOptions.from_json(self.group.run.grading or {})

    def scrub(self, text: str) -> str:
        """The text without names: for words that reach the grader from elsewhere, such as a check's output."""
        return self._scrub.words(text)

    def to_ids(self, reply: GraderReply) -> GraderReply:
        """The reply about ids instead of letters, its citations as the raw rollouts have them."""
        return self._ids.reply(reply)

    def check(self, reply: GraderReply) -> list[Problem]:
        """What `parse` will refuse of a reply by letters, in words of letters; results of checks made since count."""
        material, rubric = self._read_material(), self._rubric
        if problems := check(reply, self._lettered(material), rubric).problems:
            return list(problems)
        return [self._in_letters(problem) for problem in check(self.to_ids(reply), material, rubric).problems]

    def _lettered(self, material: GroupMaterial) -> GroupMaterial:
        def of(ids: Mapping[str, Any]):
            return [self.shown[self.letters[id]].lettered(ids[id].results) for id in ids if id in self.letters]

        confirmed = [self.letters[id] for id in material.confirmed if id in self.letters]
        return GroupMaterial.of(of(material.passing), of(material.failing), confirmed)

    def _in_letters(self, problem: Problem) -> Problem:
        def said(text: str | None) -> str | None:
            return text and self.scrub(ids.sub(lambda found: self.letters[found[0]], text))

        longest = sorted(self.letters, key=len, reverse=True)
        ids = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest)) or '(?!)'})(?![\w-])")
        return Problem(problem.where, said(problem.what) or "", said(problem.got), said(problem.expected))


def home() -> Path:
    """Where workspaces lie."""
    return Path(settings.GAGAR_DATA_DIR) / "workspaces"


def sweep(older_than_s: float = 86_400) -> int:
    """Delete what killed workers left, also half-built mirrors; returns how many folders."""
    edge = time.time() - older_than_s
    left = [*home().glob("group-*"), *repository.home().glob("building-*")]
    old = [path for path in left if path.lstat().st_mtime < edge]
    for path in old:
        safe_files.remove(path)
    return len(old)


def _letters(rows: Mapping[str, Trajectory], material: GroupMaterial) -> dict[str, str]:
    """Letters as they were drawn for the group; whoever has none yet gets the next free one."""
    known = [id for id in rows if material.get(id)]
    taken = {rows[id].letter for id in known}
    free = (first + last for first in ("", *LETTERS) for last in LETTERS if first + last not in taken)
    return {id: rows[id].letter or next(free) for id in known}


def _signers(one: CandidateMaterial) -> list[str]:
    """People who sign in a patch: they are named in its prose, too. A few, as every text is searched for each."""
    return sorted(signers(one.patch[:SIGNED_BYTES].decode("utf-8", "replace")))[:SIGNERS]


def _names(rows: Mapping[str, Trajectory]) -> set[str]:
    """Names that the rollouts brought along: of models, agents, people."""
    found: set[str] = set()
    pending: list[tuple[str, Any]] = [("", row.extra) for row in rows.values()]
    while pending:
        key, value = pending.pop()
        if isinstance(value, dict):
            pending += [(f"{key}.{name}".lower(), inner) for name, inner in value.items()]
        elif isinstance(value, list):
            pending += [(key, inner) for inner in value]
        elif isinstance(value, str) and _is_name(key.rpartition(".")[2], value):
            found |= {value} if " " in value else {value, value.rpartition("/")[2]}
    return {name for name in found if NAME_CHARS[0] <= len(name)}


def _is_name(key: str, value: str) -> bool:
    is_short = NAME_CHARS[0] <= len(value) <= NAME_CHARS[1] and "\n" not in value
    if not is_short or not any(word in key for word in TELLING) or not any(char.isalpha() for char in value):
        return False
    # one plain word ("baseline") stands everywhere; a person's name is one all the same
    return not value.isalpha() or value[1:] != value[1:].lower() or "author" in key or "user" in key
