"""What the static grader counts in one patch, each count with the lines that show it. Core."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from grading.grader.static_lines import Budget, Sort, sorted_lines
from grading.integrity.h1_tests import edited_tests
from grading.integrity.paths import is_doc, is_leftover, is_scratch, is_test
from grading.integrity.rollout import Rollout
from grading.review.anchors import Citation
from grading.review.diffs.patch import FilePatch, Line, Patch, Side
from grading.review.diffs.text import line_text

Spot = tuple[str, Side, int]
_DEBUG = {
    ".py": r"print\(|breakpoint\(\)|(?:import\s+)?i?pdb\b|(?:i?pdb)\.set_trace\(|pprint\(",
    ".js .ts .jsx .tsx .mjs": r"console\.(?:log|debug)\(|debugger\b|alert\(",
    ".java .kt .scala": r"System\.(?:out|err)\.print|\w+\.printStackTrace\(\)|println\(",
    ".go": r"fmt\.Print(?:ln|f)?\(|println\(",
    ".rb": r"binding\.(?:pry|irb)\b|byebug\b|puts\s",
    ".rs": r"dbg!\(|println!\(",
    ".php": r"var_dump\(|print_r\(|dd\(",
    ".c .cc .cpp .h .hpp": r"printf\(|std::c(?:out|err)\s*<<",
}
_DEBUG_OF = {suffix: re.compile(rf"\s*(?:{p})") for suffixes, p in _DEBUG.items() for suffix in suffixes.split()}
SPOTS_KEPT = 3  # of one claim: the reader needs an example, not the list


@dataclass
class Measures:
    """Counts over one patch; lines of product files unless said otherwise. Spots are changed lines that can be cited.

    `lines` and `code` are by path; `first` is the first spot of a path. `is_null`: no readable diff at all.
    """

    is_null: bool = False
    lines: Counter[str] = field(default_factory=Counter)
    code: Counter[str] = field(default_factory=Counter)
    padding: int = 0
    spacing: int = 0
    changes_tests_or_docs: bool = False
    unmeasured: list[str] = field(default_factory=list)  # binary, renamed, mode: changes without lines, in words
    touched: set[str] = field(default_factory=set)
    new: set[str] = field(default_factory=set)
    debug_lines: int = 0
    ragged_lines: int = 0
    left_files: list[str] = field(default_factory=list)
    hurt_tests: int = 0  # files with tests that were removed, skipped or deleted
    edited_tests: int = 0  # files with tests that were changed
    spots: dict[str, list[Spot]] = field(default_factory=dict)  # claim -> where it is seen
    first: dict[str, Spot] = field(default_factory=dict)
    any_spot: Spot | None = None
    is_cut: bool = False  # too long to tell comments from code everywhere

    @property
    def size(self) -> int:
        """Changed lines of product files."""
        return self.lines.total()

    @property
    def effect(self) -> int:
        """Changed lines of product files that are code."""
        return self.code.total()

    def see(self, claim: str, spot: Spot | None) -> None:
        """Keep a spot for a claim, if there is room."""
        kept = self.spots.setdefault(claim, [])
        if spot is not None and len(kept) < SPOTS_KEPT:
            kept.append(spot)


def measure(patch: Patch) -> Measures:
    """Count what the static grader scores.

    Args:
        patch: one candidate's patch.
    Returns:
        Its counts. A blank patch or one without a readable diff is null; what has no lines is named in `unmeasured`.
    """
    found = Measures(is_null=not patch.files)
    citable = _citable(patch)
    budget = Budget()
    for file in patch.files:
        _measure_file(file, found, citable, budget)
    for signal in edited_tests(Rollout("", patch)):
        hurts = signal.strength == "strong"
        found.hurt_tests += hurts
        found.edited_tests += not hurts
        found.see("tests", _spot_of(signal.place, citable))
    found.is_cut = budget.is_spent
    return found


def _measure_file(file: FilePatch, found: Measures, citable: set[Spot], budget: Budget) -> None:
    path = file.path
    left = file.is_new and (is_leftover(path) or is_scratch(path))
    if not left and (is_test(path) or is_doc(path)):
        found.changes_tests_or_docs |= bool(file.hunks) or file.status != "modified"
        found.any_spot = found.any_spot or next(_spots(file, citable), None)
        return
    found.touched.add(path)
    if file.is_new:
        found.new.add(path)
    if left:
        found.left_files.append(path)
        found.see("left", next(_spots(file, citable), None))
    if (
        file.is_binary
        or file.kind == "submodule"
        or file.status not in ("modified", "added", "deleted")
        or not file.hunks
    ):
        found.unmeasured.append(f"{path} ({'binary' if file.is_binary else file.kind} {file.status})")
    gone = {line.content.strip() for line in file.lines if line.kind == "del"}
    debug = _DEBUG_OF.get(PurePosixPath(path).suffix.lower())
    for line, sort in sorted_lines(file, budget):
        spot = _spot(file, line, citable)
        found.lines[path] += 1
        found.any_spot = found.any_spot or spot
        if spot is not None:
            found.first.setdefault(path, spot)
        is_debug = line.kind == "add" and debug and line.content.strip() not in gone and _is_debug(line, debug)
        _measure_line(line, sort, spot, found, path=path, is_debug=bool(is_debug))


def _measure_line(line: Line, sort: Sort, spot: Spot | None, found: Measures, *, path: str, is_debug: bool) -> None:
    if sort == "code":
        found.code[path] += 1
        if is_debug:
            found.debug_lines += 1
            found.see("debug", spot)
    else:
        found.padding += sort != "spacing"
        found.spacing += sort == "spacing" and line.kind == "add"
        found.see("padding", spot)
    if line.kind == "add" and line.content[-1:] in (b" ", b"\t") and sort != "spacing":
        found.ragged_lines += 1
        found.see("ragged", spot)


def _is_debug(line: Line, debug: re.Pattern[str]) -> bool:
    return bool(debug.match(line_text(line.content[:300])))


def _citable(patch: Patch) -> set[Spot]:
    """Spots that name one changed line only: a path may stand twice in a patch, a number twice in broken hunks."""
    count = Counter(
        spot for file in patch.files for line in file.lines if line.is_changed and (spot := _raw_spot(file, line))
    )
    return {spot for spot, times in count.items() if times == 1}


def _raw_spot(file: FilePatch, line: Line) -> Spot | None:
    path = file.path_on(line.side)
    return (path, line.side, line.number) if path and path.strip() and line.number else None


def _spot(file: FilePatch, line: Line, citable: set[Spot]) -> Spot | None:
    spot = _raw_spot(file, line)
    return spot if spot in citable else None


def _spots(file: FilePatch, citable: set[Spot]) -> Iterator[Spot]:
    return (spot for line in file.lines if line.is_changed and (spot := _spot(file, line, citable)))


def _spot_of(place: Citation | None, citable: set[Spot]) -> Spot | None:
    spot = (place.path, place.side, place.line) if place else None
    return spot if spot in citable else None
