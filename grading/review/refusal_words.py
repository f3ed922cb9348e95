"""Why a correction is not valid yet, in the words of the page: letters, no places inside a reply. Core."""

import re
from collections.abc import Mapping, Sequence

from grading.grader.material import GroupMaterial
from grading.grader.shape import GraderReply, Problem
from grading.review.anchors import Citation
from grading.scoring.criteria import CRITERIA, FLAGS, short

CITED = re.compile(r"(candidates|revisions|findings)\[(\d+)\]\.citations\[(\d+)\]")


def sentences(
    problems: Sequence[Problem], reply: GraderReply, material: GroupMaterial, letters: Mapping[str, str]
) -> tuple[str, ...]:
    """Say what is wrong, each thing once.

    Args:
        problems: of the check of this reply.
        reply: the corrected reply, which the problems' places point into.
        material: the group's rollouts.
        letters: external id -> letter.
    Returns:
        A sentence for each problem, in their order.
    """
    return tuple(dict.fromkeys(_sentence(problem, reply, material, letters) for problem in problems))


def _sentence(problem: Problem, reply: GraderReply, material: GroupMaterial, letters: Mapping[str, str]) -> str:
    if not (found := CITED.fullmatch(problem.where)):
        return with_letters(str(Problem("", problem.what, problem.got, problem.expected)), letters)
    carrier = getattr(reply, found[1])[int(found[2])]
    entry = carrier.citations[int(found[3])]
    citation: Citation = getattr(entry, "citation", entry)
    letter = letters.get(citation.candidate, "nobody here")
    why = _why(citation, letter, material) or with_letters(problem.got or problem.what, letters)
    return f"Citation of {letter} about {_about(getattr(entry, 'about', 'revision'))}: {why}"


def _about(claim: str) -> str:
    if claim in (*CRITERIA, *FLAGS):
        return claim.replace("_", " ")
    return "the order" if claim == "revision" else f"the {claim}"


def _why(citation: Citation, letter: str, material: GroupMaterial) -> str:
    """Words for a line that is not there; "" where the check's own are plain enough."""
    candidate = material.get(citation.candidate)
    if citation.kind != "patch_line" or candidate is None:
        return ""
    if not any(list(candidate.parsed.files_at(citation.path, side)) for side in ("new", "old")):
        return f"the patch of {letter} does not touch {citation.path}"
    if citation.quote and candidate.resolve(citation).state == "lost":
        return f"no changed line of {citation.path} has these words, at line {citation.line} or elsewhere"
    return ""


def with_letters(text: str, letters: Mapping[str, str]) -> str:
    """Replace each rollout's id, whole or shortened for a message, by its letter."""
    names = {}
    for id, letter in letters.items():
        names[id] = names[short(id)] = names[short(id).strip("'\"")] = letter
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, names[name])
    return text
