"""The files a grader may look at: the base commit and each rollout's version of it, in parts, under shown names."""

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from grading.errors import BadInput, NotFound
from grading.grader.git import GitFailed
from grading.grader.repository import Base, NoRepository, base_of
from grading.grader.scrub import Scrub
from grading.grader.shown import Shown
from grading.grader.trees import FILE_BYTES, FilePart, Hit, Listed, Trees
from grading.models import Task

log = logging.getLogger(__name__)
PATTERN_CHARS = 500


class Files:
    """Files of one workspace; nothing is fetched or applied before it is asked for."""

    def __init__(self, task: Task, shown: Mapping[str, Shown], scrub: Scrub, folder: Callable[[], Path]):
        self._task, self._shown, self._scrub, self._folder = task, shown, scrub, folder
        self._lock = threading.RLock()
        self._found: tuple[Base | None, str] | None = None
        self._opened: Trees | None = None
        self._made: dict[str | None, tuple[str, str]] = {}  # letter -> (tree, why there is none)

    @property
    def base(self) -> Base | None:
        return self._look()[0]

    @property
    def why_not(self) -> str:
        return self._look()[1]

    def _look(self) -> tuple[Base | None, str]:
        # No cached_property: in Python 3.11 its one lock would make every other grading wait for our fetch.
        with self._lock:
            if self._found is None:
                try:
                    self._found = base_of(self._task), ""
                except NoRepository as refused:
                    self._found = None, self._scrub.words(str(refused))
            return self._found

    @property
    def _trees(self) -> Trees:
        with self._lock:
            if self._opened is None:
                self._opened = Trees(self.base, self._folder())
            return self._opened

    def why_no_tree(self, letter: str | None) -> str:
        """Why a rollout's version cannot be looked at; "" where it can."""
        return self._tree(letter)[1]

    def copy(self, letter: str | None) -> Path | None:
        """The files on disk, unchanged since they were made; None without a tree."""
        tree, why = self._tree(letter)
        return None if why else self._trees.copy(tree, name=letter or "base")

    def changed(self, letter: str | None) -> list[str]:
        """Paths that somebody wrote to in the newest copy."""
        return self._trees.changed(letter or "base") if self.base else []

    def read(self, path: str, letter: str | None, *, offset: int = 0, limit: int = FILE_BYTES) -> FilePart:
        """Bytes of a file by its shown path; what a patch touched is scrubbed like the patch."""
        real = self._real(path, letter)
        data, left = self._trees.blob(self._tree_of(letter), real)
        if letter and real in self._shown[letter].touched:
            text = self._scrub.code(data.decode("utf-8", "surrogateescape"), real).text
            data = text.encode("utf-8", "surrogateescape")
        start = max(offset, 0)
        return FilePart(data[start : start + max(limit, 0)], start, len(data) + left)

    def listed(self, under: str, letter: str | None, *, start: int, limit: int) -> Listed:
        """`items` are trees.File, by their shown paths."""
        inside = under.strip("/")
        shown = self._shown[letter].shown_path if letter else str
        tree = self._tree_of(letter)
        every = sorted(file._replace(path=shown(file.path)) for file in self._trees.files(tree).values())
        found = [file for file in every if not inside or file.path == inside or file.path.startswith(f"{inside}/")]
        first = max(start, 0)
        return Listed(tuple(found[first : first + max(limit, 0)]), first, len(found))

    def search(
        self, pattern: str, letter: str | None, *, start: int, limit: int, under: str = "", is_regex: bool = False,
        ignore_case: bool = False,
    ) -> Listed:  # fmt: skip
        """`items` are trees.Hit. A line in which a name was scrubbed is found by what is left of it only."""
        if not pattern or len(pattern) > PATTERN_CHARS or "\0" in pattern or "\n" in pattern:
            raise BadInput(
                "this cannot be searched for", got=repr(pattern)[:80], expected=f"1 to {PATTERN_CHARS} chars"
            )
        real = self._real(under.strip("/"), letter) if under.strip("/") else ""
        try:
            hits, is_cut = self._trees.search(
                self._tree_of(letter), pattern, under=real, is_regex=is_regex, ignore_case=ignore_case
            )
        except GitFailed as refused:
            why = self._scrub.words(str(refused))[:300]
            raise BadInput(why, expected="a plain or an extended regular expression") from refused
        if letter:
            still = None if is_regex else pattern.lower() if ignore_case else pattern
            hits = [shown for hit in hits if (shown := self._hit(hit, self._shown[letter], still, ignore_case))]
        first = max(start, 0)
        return Listed(tuple(hits[first : first + max(limit, 0)]), first, len(hits), is_cut)

    def _hit(self, hit: Hit, shown: Shown, still: str | None, ignore_case: bool) -> Hit | None:
        if hit.path not in shown.touched:
            return hit
        text = self._scrub.code(hit.text, hit.path).text
        if text != hit.text and (still is None or still not in (text.lower() if ignore_case else text)):
            return None  # whoever asks for a name must not learn who has it
        return Hit(shown.shown_path(hit.path), hit.line, text)

    def _real(self, path: str, letter: str | None) -> str:
        try:
            path.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise NotFound("no such file", got=repr(path)[:200]) from None
        self._tree_of(letter)
        return self._shown[letter].raw_path(path) if letter else path

    def _tree_of(self, letter: str | None) -> str:
        tree, why = self._tree(letter)
        if why:
            raise NotFound(why)
        return tree

    def _tree(self, letter: str | None) -> tuple[str, str]:
        if letter is not None and letter not in self._shown:
            return "", f"no candidate {letter[:20]!r} in this group"
        if self.base is None:
            return "", self.why_not
        with self._lock:
            if letter not in self._made:
                self._made[letter] = self._make(letter)
            return self._made[letter]

    def _make(self, letter: str | None) -> tuple[str, str]:
        if letter is None:
            return self.base.tree, ""
        try:
            return self._trees.patched(self._shown[letter].raw.patch), ""
        except GitFailed as refused:
            return "", self._scrub.words(f"{letter}: {refused}")

    def close(self) -> None:
        """Look once more whether the base is what it was; the next grading builds a broken one anew."""
        if self._found and self._found[0] and not self._found[0].is_intact():
            log.error("the mirror of the repository of task %s was changed while it was looked at", self._task)
