"""The whole group as one text for a single call: what is shown of whom, and what was cut, evenly for all."""

from collections.abc import Iterable, Mapping, Sequence

from grading.grader.fence import fenced
from grading.grader.overview import fair_shares, summaries
from grading.grader.shape import Problem
from grading.grader.shown import Shown
from grading.grader.tool_texts import bytes_lines, cut_line, patch_lines
from grading.grader.workspace import Workspace
from grading.review.diffs.text import visible

CHARS_PER_TOKEN = 3  # code has short words: counted low, so that a prompt rather stays under its budget
STATEMENT, REFERENCE, FAILED, TRAJECTORIES = 0.1, 0.05, 0.05, 0.25  # shares of the budget; the patches get the rest
RESULTS_NAMED = 60
PROBLEMS_SAID = 60


def group_words(ws: Workspace, *, tokens: int) -> str:
    """The user's message: task, failed rollouts, the candidates in this grading's order, then who is to be ranked.

    Args:
        ws: the open workspace.
        tokens: about how long it may be. Statement, reference, failed rollouts, trajectories and patches have shares of
            it; what one does not need, the patches get.
    """
    room = tokens * CHARS_PER_TOKEN
    parts = ["# The task", _cut_text("the task's statement", ws.scrub(ws.statement), int(room * STATEMENT))]
    if ws.reference_patch:
        lines = [cut_line(line) for line in bytes_lines(ws.reference_patch)]
        parts.append("# A reference patch: to understand the task; likeness to it is no merit")
        parts.append(_cut_lines("the reference patch", lines, int(room * REFERENCE)))
    failing = list(ws.failing.values())
    if failing:
        parts.append(f"# Failed rollouts: context only, never ranked ({', '.join(ws.failing)})")
        for letter, text in summaries(failing, chars=int(room * FAILED)).items():
            parts.append(fenced(f"summary of candidate {letter} (failed)", text))
    ranked = [ws.passing[letter] for letter in ws.ranked]
    parts += _candidates(ranked, int(room * TRAJECTORIES), room - len("\n\n".join(parts)))
    return "\n\n".join([*parts, "# What is asked", *_asked(ws, ranked)])


def _candidates(ranked: Sequence[Shown], for_turns: int, room: int) -> list[str]:
    turns = summaries(ranked, chars=min(for_turns, room // 2))
    patches = {one.letter: list(patch_lines(one.parsed.files)) for one in ranked}
    needs = [sum(len(line) + 1 for line in patches[one.letter]) for one in ranked]
    left = room - sum(map(len, turns.values()))
    shares = fair_shares(needs, max(0, left))
    parts = []
    for one, share in zip(ranked, shares, strict=True):
        parts.append(f"# Candidate {one.letter} ({'passed' if one.passed else 'failed'})")
        parts.append(fenced(f"summary of candidate {one.letter}", turns[one.letter]))
        parts.append(_cut_lines(f"patch of candidate {one.letter}", patches[one.letter], share))
    return parts


def _asked(ws: Workspace, ranked: Sequence[Shown]) -> list[str]:
    """The last words: who is to be ranked, who not, and the names of results."""
    lines = []
    if ws.confirmed:
        lines.append(f"Passed, but a leak or hack is confirmed already, not ranked: {', '.join(sorted(ws.confirmed))}")
    twins = {tuple(sorted({one.letter, *one.twins} & set(ws.ranked))) for one in ranked if one.twins}
    lines += [f"The same patch, byte for byte: {', '.join(same)}" for same in sorted(twins) if len(same) > 1]
    if names := _common_results(ranked):
        lines.append("Results that may be cited for each candidate, beside `outcome`:")
        lines.append(fenced("names of tests", "\n".join(names)))
    return ["\n".join([*lines, f"Rank exactly these candidates: {', '.join(ws.ranked)}"])]


def _common_results(ranked: Sequence[Shown]) -> list[str]:
    """Names that every candidate has, as many as are worth their place."""
    names: Mapping[str, None] = dict.fromkeys(ranked[0].results) if ranked else {}
    common = [name for name in names if all(name in one.results for one in ranked)]
    return [visible(name[:200]) for name in common[:RESULTS_NAMED]]


def _cut_text(label: str, text: str, room: int) -> str:
    if len(text) <= room:
        return fenced(label, text)
    return f"{fenced(label, text[:room])}\nCut: {room} of {len(text)} characters are shown."


def _cut_lines(label: str, lines: Iterable[str], room: int) -> str:
    """Whole lines from the first on, as many as fit."""
    lines, kept, size = list(lines), [], 0
    for line in lines:
        size += len(line) + 1
        if size > room:
            break
        kept.append(line)
    said = fenced(label, "\n".join(kept) if lines else "(empty)")
    if len(kept) == len(lines):
        return said
    return f"{said}\nCut: {len(kept)} of {len(lines)} lines are shown; the share of each candidate is the same."


def problem_words(problems: Sequence[Problem]) -> str:
    """What is wrong with a verdict, for the one repair round."""
    lines = [f"- {problem}" for problem in problems[:PROBLEMS_SAID]]
    more = [f"- and {len(problems) - PROBLEMS_SAID} more"] if len(problems) > PROBLEMS_SAID else []
    head = "The verdict cannot be used as it is. All that is wrong with it:"
    tail = "Correct this, keep what was right, and answer with the whole verdict again, as one JSON object."
    return "\n".join([head, *lines, *more, tail])
