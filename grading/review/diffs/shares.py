"""Which changes several candidates share: the number in a line's margin, and what folds. Core."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from grading.review.diffs.patch import FilePatch, Line, Patch

LineKey = tuple[str, str, bytes, str]  # path, kind, content, line end


def line_key(path: str, line: Line) -> LineKey:
    return path, line.kind, line.content, line.eol


@dataclass(frozen=True, slots=True)
class Shares:
    """Who changes what. A set of candidates is an int whose n-th bit is the n-th patch.

    `of` is the number of patches counted.
    """

    of: int = 0
    lines: dict[LineKey, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)

    def who(self, path: str, line: Line) -> int:
        """Returns: bit set of the patches that make this very change (path, kind, content, line end)."""
        return self.lines.get(line_key(path, line), 0)

    def count(self, path: str, line: Line) -> int:
        """Returns: how many patches make this very change."""
        return self.who(path, line).bit_count()

    def file_count(self, path: str) -> int:
        """Returns: how many patches touch this file."""
        return self.files.get(path, 0).bit_count()

    def common(self, path: str, lines: Iterable[Line]) -> int:
        """Returns: how many patches make all of these changes; 0 for no changed line."""
        everyone = (1 << self.of) - 1
        who, any_changed = everyone, False
        for line in lines:
            if line.is_changed:
                any_changed = True
                who &= self.who(path, line)
        return who.bit_count() if any_changed else 0

    def only(self, n: int, path: str) -> bool:
        """Returns: whether patch n is the only one that touches this file."""
        return self.files.get(path, 0) == 1 << n


def shared_changes(patches: Sequence[Patch]) -> Shares:
    """Count over candidates which changed lines and files they have in common.

    Args:
        patches: one per candidate counted (the passing ones on the review page), in any order.
    Returns:
        Shares; a line that one patch makes twice counts once for it.
    """
    shares = Shares(of=len(patches))
    for n, patch in enumerate(patches):
        bit = 1 << n
        for file in patch.files:
            shares.files[file.path] = shares.files.get(file.path, 0) | bit
            for line in file.lines:
                if line.is_changed:
                    key = line_key(file.path, line)
                    shares.lines[key] = shares.lines.get(key, 0) | bit
    return shares


def files_alone(patches: Sequence[Patch], shares: Shares) -> list[tuple[FilePatch, ...]]:
    """Returns: per patch the files that no other patch touches."""
    return [tuple(f for f in patch.files if shares.only(n, f.path)) for n, patch in enumerate(patches)]
