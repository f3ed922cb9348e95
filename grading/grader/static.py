"""The static grader: no model, the patches alone. A baseline that cannot tell a right idea from a wrong one. Core.

Same patch, same scores: nothing else of a rollout is read. The formulas stand in `static_scores`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from grading.grader.material import OUTCOME, CandidateMaterial, GroupMaterial
from grading.grader.shape import CandidateReply, Cited, GraderReply
from grading.grader.static_measures import Measures, Spot, measure
from grading.grader.static_scores import Judged, Norm, judge
from grading.review.anchors import Citation
from grading.scoring.criteria import FLAGS

BASELINE = (
    "Static baseline: no model looked at this group. Scores come from the lines of the patches alone, compared with "
    "the other passing patches. Not looked at: the task, the repository, the reference patch, events, logs, and "
    "whether the approach is right (it is 4 for every patch that changes code). No flags, no findings, no revisions."
)


def grade(material: GroupMaterial) -> GraderReply:
    """Grade the passing candidates of a group.

    Args:
        material: the group; failed rollouts and those with a confirmed finding are not read.
    Returns:
        A reply that `parse.check` accepts: every score below 4 cites a changed line of the candidate, or its outcome
        where the patch has no line at all. Order by weighted score. `notes` say what was not looked at.
    """
    candidates = [c for id, c in material.passing.items() if id not in material.confirmed]
    measured: dict[bytes, Measures] = {}
    for candidate in candidates:
        if candidate.patch not in measured:
            measured[candidate.patch] = measure(candidate.parsed)
    norm = norm_of(measured.values())
    judged = {patch: judge(own, norm) for patch, own in measured.items()}
    return GraderReply(
        candidates=tuple(_entry(c, judged[c.patch]) for c in candidates),
        notes=_notes(candidates, judged, norm),
    )


def norm_of(measured: Iterable[Measures]) -> Norm:
    """What the passing patches have in common; byte-identical ones count once.

    Args:
        measured: counts of the distinct patches.
    Returns:
        The smallest patch that changes code, and the product files that more than half of such patches touch. No such
        file, or one such patch: nothing to compare files with.
    """
    working = [own for own in measured if own.effect]
    if not working:
        return Norm(smallest=None, shared=None)
    touched = Counter(path for own in working for path in own.touched)
    shared = frozenset(path for path, times in touched.items() if 2 * times > len(working))
    return Norm(
        smallest=min(own.size for own in working),
        shared=shared if shared and len(working) > 1 else None,
    )


def _entry(candidate: CandidateMaterial, judged: Judged) -> CandidateReply:
    cited = [
        Cited(criterion, _citation(candidate.id, spot)) for criterion, spots in judged.spots.items() for spot in spots
    ]
    return CandidateReply(candidate.id, judged.scores, judged.reasons, dict.fromkeys(FLAGS, False), tuple(cited))


def _citation(candidate: str, spot: Spot | None) -> Citation:
    """A changed line; without one, that the tests passed: all the evidence there is against an empty patch."""
    if spot is None:
        return Citation("result", candidate, result=OUTCOME)
    path, side, line = spot
    return Citation("patch_line", candidate, path=path, side=side, line=line)


def _notes(candidates: list[CandidateMaterial], judged: Mapping[bytes, Judged], norm: Norm) -> str:
    lines = [BASELINE]
    if norm.smallest is None:
        lines.append("No passing patch changes code: sizes were not compared.")
    if norm.shared is None:
        lines.append("No file is touched by more than half of the distinct passing patches: files were not compared.")
    for candidate in candidates:
        lines += [f"{candidate.id}: {note}" for note in judged[candidate.patch].notes]
        if candidate.parsed.problems:
            lines.append(f"{candidate.id}: not all of the patch could be read ({candidate.parsed.problems[0][:200]})")
    return "\n".join(lines)
