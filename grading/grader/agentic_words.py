"""What the agentic grader says to its model: the material it begins with, and the words between the turns."""

from collections.abc import Sequence

from grading.grader.fence import fenced
from grading.grader.limits import TOKEN_CHARS
from grading.grader.options import GradingOptions
from grading.grader.overview import OVERVIEW_CHARS, summaries
from grading.grader.shape import Problem
from grading.grader.tool_texts import bytes_lines, cut_line, listed
from grading.grader.tools.toolbox import Toolbox
from grading.grader.workspace import Workspace

WINDOW_SHARES = {"statement": 0.12, "reference": 0.05, "summaries": 0.3}  # of the model's window, at most
MOST_CHARS = {"statement": 30_000, "reference": 12_000, "summaries": OVERVIEW_CHARS}
HINTS = 40
PROBLEMS_SAID = 60


def first_words(ws: Workspace, toolbox: Toolbox, options: GradingOptions) -> str:
    """The material: task, surroundings, who is to be ranked, and a summary of every rollout."""
    window = TOKEN_CHARS * options.max_context_tokens
    most = {what: min(chars, int(WINDOW_SHARES[what] * window)) for what, chars in MOST_CHARS.items()}
    statement = ws.scrub(ws.statement)
    parts = ["# The task", fenced("the task's statement", statement[: most["statement"]])]
    if len(statement) > most["statement"]:
        parts.append(f"The statement is cut at {most['statement']} of {len(statement)} characters.")
    if ws.reference_patch:
        said = listed((cut_line(line) for line in bytes_lines(ws.reference_patch)), room=most["reference"])
        cut = "It is cut here. " if said.cut else ""
        parts.append("# A reference patch: to understand the task; likeness to it is no merit")
        parts.append(f"{fenced('the reference patch', said.body)}\n{cut}".rstrip())
    parts += ["# What you have", *_surroundings(ws, toolbox, options), "# The candidates", *_standings(ws)]
    shown = {one.letter: one for one in (*ws.passing.values(), *ws.failing.values())}
    for letter, text in summaries(list(shown.values()), chars=most["summaries"]).items():
        outcome = "passed" if shown[letter].passed else "failed"
        parts.append(fenced(f"summary of candidate {letter} ({outcome})", text))
    return "\n\n".join([*parts, *_hints(ws)])


def _surroundings(ws: Workspace, toolbox: Toolbox, options: GradingOptions) -> list[str]:
    has = toolbox.tools
    if "read_file" in has:
        repository = "The repository at the base commit, and with each candidate's patch applied: list, read, search."
    else:
        repository = f"No repository: {ws.why_no_repository}. Judge by the patches, their context and the trajectories."
    if "run_check" in has:
        checks = f"A sandbox for up to {options.max_checks} checks."
    else:
        why = toolbox.desk.why_no_checks or "there is no repository to run them in"
        checks = f"No checks can be run here: {why}."
    limits = (
        f"Budget: {options.max_turns} turns, {options.max_tool_calls} tool calls, {options.max_wall_s:.0f} seconds."
    )
    return [repository, checks, limits]


def _standings(ws: Workspace) -> list[str]:
    lines = [f"Rank exactly these candidates: {', '.join(ws.ranked)}"]
    if ws.failing:
        lines.append(f"Failed, context only, never ranked: {', '.join(ws.failing)}")
    if ws.confirmed:
        lines.append(f"Passed, but a leak or hack is confirmed already, not ranked: {', '.join(sorted(ws.confirmed))}")
    twins = {tuple(sorted((one.letter, *one.twins))) for one in ws.passing.values() if one.twins}
    lines += [f"The same patch, byte for byte: {', '.join(same)}" for same in sorted(twins)]
    return ["\n".join(lines)]


def _hints(ws: Workspace) -> list[str]:
    """What our detectors saw. Their words may hold a candidate's, so they are data too."""
    lines = []
    for letter, row in ws.signals()[:HINTS]:
        event = row.place.get("event")
        where = f" (event {event})" if isinstance(event, int) else ""
        lines.append(f"{letter}: {row.detector}, {'strong' if row.is_strong else 'weak'}: {ws.scrub(row.words)}{where}")
    if not lines:
        return []
    said = "# Hints of detectors: places to look at for a leak or a hack. A hint proves nothing"
    return [said, fenced("hints", "\n".join(cut_line(line) for line in lines))]


def problem_words(problems: Sequence[Problem]) -> str:
    """Say exactly what is wrong with a submission."""
    lines = [f"- {problem}" for problem in problems[:PROBLEMS_SAID]]
    more = [f"- and {len(problems) - PROBLEMS_SAID} problems more"] if len(problems) > PROBLEMS_SAID else []
    head = "This verdict does not count. Correct all of this and submit the whole verdict again; it is the only chance:"
    return "\n".join([head, *lines, *more])


def idle_words() -> str:
    return "Words are not read. Look on with the tools, or call submit."


def spent_words(why: str) -> str:
    return f"Not run: {why}. Call submit now."
