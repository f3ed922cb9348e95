"""Which changes several candidates share: the number in a line's margin, and what folds. Core."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from grading.review.diffs.patch import Line, Patch

MIN_FOLD_LINES = 2
LineKey = tuple[str, str, bytes, str]  # path, kind, content, line end


def line_key(path: str, line: Line) -> LineKey:
    return path, line.kind, line.content, line.eol


@dataclass(frozen=True, slots=True)
class Shares:
    """Who changes what. A set of candidates is an int whose n-th bit is the n-th patch.

    `of` is the number of patches counted; `files` are the paths they touch.
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

    def touching(self, path: str) -> int:
        """Returns: how many patches touch a file."""
        return self.files.get(path, 0).bit_count()

    def folds(self, path: str, lines: Sequence[Line]) -> int:
        """Returns: how many patches share a hunk that half of them make and that has two changes or more; else 0."""
        common = self.common(path, lines)
        # More than one: a lone candidate shares every change with itself.
        is_common = common > 1 and 2 * common >= self.of
        return common if is_common and sum(line.is_changed for line in lines) >= MIN_FOLD_LINES else 0

    def common(self, path: str, lines: Iterable[Line]) -> int:
        """Returns: how many patches make all of these changes; 0 for no changed line."""
        who, any_changed = (1 << self.of) - 1, False
        for line in lines:
            if line.is_changed:
                any_changed = True
                who &= self.who(path, line)
                if not who:
                    break
        return who.bit_count() if any_changed else 0


def shared_changes(patches: Sequence[Patch]) -> Shares:
    """Count over candidates which changed lines they have in common.

    Args:
        patches: one per candidate counted (the passing ones on the review page), in any order.
    Returns:
        Shares; a line that one patch makes twice counts once for it.
    """
    shares = Shares(of=len(patches))
    for n, patch in enumerate(patches):
        bit = 1 << n
        for file in patch.files:
            for path in {file.old_path, file.new_path} - {None}:
                shares.files[path] = shares.files.get(path, 0) | bit
            path, found = file.path, shares.lines
            for kind, _, _, content, eol, _ in file.lines:  # taken apart at once: there are tens of thousands
                if kind != "context":
                    key = (path, kind, content, eol)
                    found[key] = found.get(key, 0) | bit
    return shares
