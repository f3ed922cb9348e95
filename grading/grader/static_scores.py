"""From counts to the five scores: the formulas of the static grader. Core.

Each score falls with what it counts and never rises by adding comments, blanks or files: padding cannot pay.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from grading.grader.shape import EVIDENCE_BELOW
from grading.grader.static_measures import SPOTS_KEPT, Measures, Spot
from grading.scoring.criteria import CRITERIA

SLACK = 5  # lines added to both sizes, so that 3 lines are not "three times" 1 line
NOT_JUDGED = 4  # approach of a patch that changes code; all criteria of one without lines to count


@dataclass(frozen=True)
class Norm:
    """What the passing patches have in common. `smallest` in changed lines; None where there is nothing to compare."""

    smallest: int | None
    shared: frozenset[str] | None


@dataclass
class Judged:
    """Scores of one patch with a reason each, and the spots that show those below 4 (None: its outcome)."""

    scores: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    spots: dict[str, list[Spot | None]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def judge(own: Measures, norm: Norm) -> Judged:
    """Score one patch. Without effect (no readable diff, or only comments, blanks and spacing) it has 1 on every
    criterion: T3, below every patch that does something. One that changes only tests or documents has 2 on approach
    and precision; one whose changes have no lines (binary, renamed, mode) has 4 on every criterion. Else:

    - approach: 4, not judged.
    - precision: waste = (lines of foreign files + spacing + comments and blanks beyond one per line of code + debug
      lines) / lines of code in the other files; 5 up to 0, 4 up to 0.5, 3 up to 1.5, else 2.
    - minimality: ratio = (changed lines + 5) / (those of the smallest passing patch + 5); 5 up to 1.5, 4 up to 2.5,
      3 up to 5, 2 up to 10, else 1. Lines of tests and documents do not count; at most 4 if something has no lines.
    - side_effects: 5, minus 3 if existing tests are removed or skipped, else minus 1 if they are edited; minus 1, 2, 3
      for 1, 2 to 3, more foreign files; minus 1 for files left behind; at least 1.
    - consistency: 5, minus 2 for 1 or 2 debug lines, minus 3 for more; minus 2 for files left behind; minus 1 for
      white space at the end of added lines; at least 1.

    A file is foreign if the passing patches do not share it, for a patch with code in a file they do share.
    A score below 4 for which no changed line can be cited becomes 4, and a note says so.

    Args:
        own: counts of the patch.
        norm: what the passing patches of the group have in common.
    Returns:
        Scores from 1 to 5, reasons, spots and notes.
    """
    judged = Judged(notes=list(_unseen(own)))
    if not own.effect and not own.unmeasured:
        _without_effect(own, judged)
    elif not own.effect:
        for criterion in CRITERIA:
            _say(judged, criterion, NOT_JUDGED, f"no lines to count: {_some(own.unmeasured)}", [])
    else:
        _say(judged, "approach", NOT_JUDGED, "the static grader does not judge it", [])
        _precision(own, norm, judged)
        _minimality(own, norm, judged)
        _side_effects(own, norm, judged)
        _consistency(own, judged)
    return judged


def _say(judged: Judged, criterion: str, score: int, reason: str, spots: list[Spot]) -> None:
    """Set a score with what shows it; below 4 with nothing to show it becomes 4."""
    if score < EVIDENCE_BELOW and not spots:
        judged.notes.append(f"{criterion} would be {score} ({reason}), but no changed line can be cited for it: 4")
        score = EVIDENCE_BELOW
    judged.scores[criterion], judged.reasons[criterion] = score, reason
    if score < EVIDENCE_BELOW:
        judged.spots[criterion] = list(dict.fromkeys(spots))[:SPOTS_KEPT]


def _without_effect(own: Measures, judged: Judged) -> None:
    if own.changes_tests_or_docs:
        reason, low, spot = "it changes tests or documents only", 2, own.any_spot
        rest = {c: NOT_JUDGED for c in CRITERIA if c not in ("approach", "precision")}
        if own.hurt_tests:
            rest["side_effects"] = low
    else:
        reason = (
            "the tests pass, and there is no readable diff" if own.is_null else "it changes comments and space only"
        )
        low, spot, rest = 1, own.any_spot, {}
    for criterion in CRITERIA:
        judged.scores[criterion] = rest.get(criterion, low)
        judged.reasons[criterion] = reason
        if judged.scores[criterion] < EVIDENCE_BELOW:
            judged.spots[criterion] = [spot]


def _precision(own: Measures, norm: Norm, judged: Judged) -> None:
    apart = _apart(own, norm)
    outside = sum(own.lines[path] for path in apart)
    idle = own.spacing + max(0, own.padding - own.effect)
    inside = sum(count for path, count in own.code.items() if path not in apart)
    waste = (outside + idle + own.debug_lines) / max(1, inside)
    said = f"{_many(outside, 'line')} in files the others do not share"
    reason = f"{said}, {idle} idle and {_many(own.debug_lines, 'debug line')}"
    spots = [own.first[path] for path in apart if path in own.first] if outside else []
    spots += own.spots.get("padding", []) if idle else []
    spots += own.spots.get("debug", [])
    _say(judged, "precision", _step(waste, (0, 0.5, 1.5)), f"{reason} beside {inside} lines of code", spots)


def _minimality(own: Measures, norm: Norm, judged: Judged) -> None:
    smallest = own.size if norm.smallest is None else norm.smallest
    score = _step((own.size + SLACK) / (smallest + SLACK), (1.5, 2.5, 5, 10))
    reason = f"{own.size} changed lines, the smallest passing patch has {smallest}"
    if own.unmeasured:
        score, reason = min(score, NOT_JUDGED), f"{reason}; not counted: {_some(own.unmeasured)}"
    spots = [own.first[path] for path, _ in own.lines.most_common() if path in own.first]
    _say(judged, "minimality", score, reason, spots)


def _side_effects(own: Measures, norm: Norm, judged: Judged) -> None:
    apart = _apart(own, norm)
    tests = 3 if own.hurt_tests else int(bool(own.edited_tests))
    files = 0 if not apart else 1 if len(apart) == 1 else 2 if len(apart) <= 3 else 3
    left = int(bool(own.left_files))
    said = [
        f"existing tests {'removed or skipped' if own.hurt_tests else 'edited'}" if tests else "",
        f"files the others do not touch: {_some(apart)}" if files else "",
        f"left behind: {_some(own.left_files)}" if left else "",
    ]
    spots = own.spots.get("tests", [])[:1] + [own.first[path] for path in apart if path in own.first]
    spots += own.spots.get("left", [])
    score = max(1, 5 - tests - files - left)
    _say(judged, "side_effects", score, "; ".join(filter(None, said)) or "nothing beside the shared files", spots)


def _consistency(own: Measures, judged: Judged) -> None:
    debug = 0 if not own.debug_lines else 2 if own.debug_lines <= 2 else 3
    left, ragged = 2 * bool(own.left_files), int(bool(own.ragged_lines))
    said = [
        _many(own.debug_lines, "debug line") if debug else "",
        f"left behind: {_some(own.left_files)}" if left else "",
        f"{own.ragged_lines} added lines end in white space" if ragged else "",
    ]
    spots = [spot for claim in ("debug", "left", "ragged") for spot in own.spots.get(claim, [])[:1]]
    score = max(1, 5 - debug - left - ragged)
    _say(judged, "consistency", score, "; ".join(filter(None, said)) or "no leftovers", spots)


def _apart(own: Measures, norm: Norm) -> list[str]:
    """Product files that the passing patches do not share, in order.

    None for a patch that works in other files altogether: that is another way, and those files are its way.
    """
    if norm.shared is None or not any(own.code[path] for path in norm.shared):
        return []
    return sorted(own.touched - norm.shared)


def _step(value: float, limits: tuple[float, ...]) -> int:
    """5 up to the first limit, one less up to each further one."""
    return next((5 - n for n, limit in enumerate(limits) if value <= limit), 5 - len(limits))


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _unseen(own: Measures) -> Iterator[str]:
    if own.unmeasured:
        yield f"changes without lines were not compared: {_some(own.unmeasured)}"
    if own.is_cut:
        yield "too long: comments were not told from code everywhere"


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
