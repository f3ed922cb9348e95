"""The validity check of method.md 2: what of a reply counts. Tiers, ranks and factors are ours. Core.

A reply with a problem is a failure of the grader: the group falls back, nobody gets a low score for it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from grading.grader.material import GroupMaterial
from grading.grader.shape import (
    EVIDENCE_BELOW,
    FINDING_KINDS,
    TIER_NAMES,
    CandidateReply,
    Finding,
    GraderReply,
    Problem,
    Revision,
)
from grading.review.anchors import Citation
from grading.scoring.criteria import CRITERIA, FLAGS, HIGHEST, LOWEST, Candidate, Rubric, short
from grading.scoring.grades import Grades, grade
from grading.scoring.ranks import Ranking, moved_unnamed, rank

CLAIMS = (*CRITERIA, *FLAGS, *FINDING_KINDS, "revision")
PROBLEMS_KEPT = 200


@dataclass(frozen=True)
class Checked:
    """What a reply is worth. `grades` is None unless it is valid; `findings` stand either way."""

    valid: bool
    problems: tuple[Problem, ...]
    grades: Grades | None
    findings: tuple[Finding, ...]


def check(reply: GraderReply, material: GroupMaterial, rubric: Rubric, unread: Sequence[Problem] = ()) -> Checked:
    """Check a reply against its group.

    Args:
        reply: what the grader said, mapped by id and never by position.
        material: the group's rollouts.
        rubric: whose weights, thresholds and constants count.
        unread: what `wire.read` could not read of it.
    Returns:
        Whether it counts, all that is wrong with it, the grades that follow if it is valid, and the findings that
        stand: those of a rollout of this group with a citation of their own that resolves.
    """
    evidence = _Evidence(material)
    problems = [*unread]
    standing = tuple(_standing(reply.findings, evidence, problems))
    removed = material.confirmed | {finding.id for finding in standing}
    left = [candidate for candidate in material.passing if candidate not in removed]
    entries = _entries(reply.candidates, left, material, problems)
    for where, entry in entries.values():
        problems += chain(_score_problems(where, entry), _evidence_problems(where, entry, evidence))
    for i, revision in enumerate(reply.revisions):
        problems += _revision_problems(f"revisions[{i}]", revision, left, evidence)
    problems += _order_id_problems(reply, left, removed, material)
    grades = None if problems else _graded(reply, [entries[id][1] for id in left], rubric, problems)
    if grades is not None:
        problems += _untied_twins(reply, left, grades.ranking, material)
    if len(problems) > PROBLEMS_KEPT:
        more = Problem("", f"and {len(problems) - PROBLEMS_KEPT} problems more")
        problems = [*problems[:PROBLEMS_KEPT], more]
    return Checked(not problems, tuple(problems), None if problems else grades, standing)


class _Evidence:
    """Resolves citations, each once: the same line is often cited for several criteria."""

    def __init__(self, material: GroupMaterial):
        self.material = material
        self._why_not: dict[Citation, str | None] = {}

    def why_not(self, citation: Citation, owners: Sequence[str]) -> str | None:
        """Say why a citation proves nothing about the candidates it is cited for; None if it does."""
        if citation.candidate not in owners:
            return f"it is evidence of {short(citation.candidate)}, expected of {short(', '.join(owners))}"
        if citation not in self._why_not:
            candidate = self.material.get(citation.candidate)
            resolution = candidate.resolve(citation) if candidate else None
            lost = f"{short(citation.candidate)} is no rollout of this group"
            self._why_not[citation] = None if resolution and resolution.resolves else getattr(resolution, "why", lost)
        return self._why_not[citation]

    def problems(self, where: str, citations: Iterable[Citation], owners: Sequence[str]) -> Iterator[Problem]:
        for i, citation in enumerate(citations):
            if (why := self.why_not(citation, owners)) is not None:
                yield Problem(f"{where}.citations[{i}]", "the citation does not resolve", why, "evidence that is there")


def _standing(findings: Sequence[Finding], evidence: _Evidence, problems: list[Problem]) -> Iterator[Finding]:
    for i, finding in enumerate(findings):
        where = f"findings[{i}]"
        if evidence.material.get(finding.id) is None:
            problems.append(Problem(where, "no such candidate", short(finding.id), "an id of this group"))
            continue
        if not finding.citations:
            problems.append(Problem(where, f"the {finding.kind} of {finding.id} cites nothing", None, "a citation"))
        problems += evidence.problems(where, finding.citations, [finding.id])
        if any(evidence.why_not(citation, [finding.id]) is None for citation in finding.citations):
            yield finding


def _entries(
    replies: Sequence[CandidateReply], left: Sequence[str], material: GroupMaterial, problems: list[Problem]
) -> dict[str, tuple[str, CandidateReply]]:
    """Map the entries of those left to rank by id; name the missing, doubled, invented and failed."""
    found: dict[str, tuple[str, CandidateReply]] = {}
    count = Counter(reply.id for reply in replies)
    for i, reply in enumerate(replies):
        where = f"candidates[{i}]"
        if reply.id in material.failing:
            problems.append(Problem(where, "a failed rollout gets no rank", reply.id, short(list(left))))
        elif reply.id not in material.passing:
            problems.append(Problem(where, "no such candidate", short(reply.id), short(list(left))))
        elif reply.id in left:
            found.setdefault(reply.id, (where, reply))
    for id, times in count.items():
        if times > 1:
            problems.append(Problem("candidates", f"{short(id)} is there {times} times", None, "each candidate once"))
    for id in left:
        if id not in found:
            problems.append(Problem("candidates", f"{id} is missing", None, "every passing candidate once"))
    return found


def _score_problems(where: str, entry: CandidateReply) -> Iterator[Problem]:
    expected = f"an integer from {LOWEST} to {HIGHEST}"
    for criterion in CRITERIA:
        if criterion not in entry.scores:
            yield Problem(f"{where}.scores.{criterion}", f"{entry.id} has no {criterion} score", None, expected)
        elif not _is_score(score := entry.scores[criterion]):
            yield Problem(f"{where}.scores.{criterion}", f"{entry.id} has no valid score", short(score), expected)
    for kind, names, known in (("scores", entry.scores, CRITERIA), ("flags", entry.flags, FLAGS)):
        for name in names:
            if name not in known:
                yield Problem(f"{where}.{kind}", f"{entry.id} has unknown {kind}", short(name), ", ".join(known))


def _is_score(score: object) -> bool:
    return type(score) is int and LOWEST <= score <= HIGHEST  # a bool is an int to isinstance


def _evidence_problems(where: str, entry: CandidateReply, evidence: _Evidence) -> Iterator[Problem]:
    yield from evidence.problems(where, (cited.citation for cited in entry.citations), [entry.id])
    shown = {cited.about for cited in entry.citations}
    for about in sorted(shown - set(CLAIMS)):
        yield Problem(f"{where}.citations", "a citation is about no known claim", short(about), ", ".join(CLAIMS))
    low = [c for c in CRITERIA if _is_score(score := entry.scores.get(c)) and score < EVIDENCE_BELOW]
    for claim in (*low, *(flag for flag in FLAGS if entry.flags.get(flag))):
        if claim not in shown:
            what = f"{entry.id} has {claim} {entry.scores.get(claim, 'raised')} and no citation about it"
            yield Problem(f"{where}.citations", what, None, "one for every flag and every score below 4")


def _revision_problems(where: str, revision: Revision, left: Sequence[str], evidence: _Evidence) -> Iterator[Problem]:
    for id in revision.candidates:
        if id not in left:
            yield Problem(where, "a revision names who is not ranked", short(id), short(list(left)))
    if not revision.candidates:
        yield Problem(where, "a revision names nobody", None, "the candidates it moves")
    if not revision.reason.strip():
        yield Problem(where, "a revision gives no reason", None, "a reason")
    if not revision.citations:
        yield Problem(where, "a revision cites nothing", None, "a citation of a candidate it names")
    yield from evidence.problems(where, revision.citations, revision.candidates)


def _order_id_problems(
    reply: GraderReply, left: Sequence[str], removed: frozenset[str], material: GroupMaterial
) -> Iterator[Problem]:
    """Name all who are in the order wrongly, twice or not at all."""
    if reply.order is None:
        if reply.revisions:
            yield Problem("order", "there are revisions and no order", None, "the order they argue for")
        return
    count = Counter(id for tier in TIER_NAMES for tied in reply.order.get(tier, ()) for id in tied)
    for id, times in count.items():
        if times > 1:
            yield Problem("order", f"{short(id)} is ranked {times} times", None, "each candidate once")
        if id in removed:
            yield Problem("order", f"{id} is ranked although it is found to be leaked or hacked", None, "it left out")
        elif id in material.failing:
            yield Problem("order", f"{id} failed and gets no rank", None, "it left out")
        elif id not in material.passing:
            yield Problem("order", "no such candidate", short(id), short(list(left)))
    for id in left:
        if id not in count:
            yield Problem("order", f"{id} is not ranked", None, "every passing candidate once")


def _graded(
    reply: GraderReply, entries: Sequence[CandidateReply], rubric: Rubric, problems: list[Problem]
) -> Grades | None:
    """Grade entries that have no problem of their own; an order that breaks a rule is the problem then."""
    candidates = [
        Candidate(entry.id, entry.scores, frozenset(flag for flag, raised in entry.flags.items() if raised))
        for entry in entries
    ]
    if reply.order is None:
        return grade(candidates, rubric)
    by_score = rank(candidates, rubric)
    own = {id: f"T{tier}" for tier, groups in by_score.items() for tied in groups for id in tied}
    for tier, groups in reply.order.items():
        for id in (id for tied in groups for id in tied if own[id] != tier):
            problems.append(
                Problem(f"order.{tier}", f"{id} is ranked in {tier}", None, f"{own[id]}, by its scores and flags")
            )
    if problems:
        return None
    grades = grade(candidates, rubric, reply.order)
    named = {id for revision in reply.revisions for id in revision.candidates}
    for id in moved_unnamed(by_score, grades.ranking, named):
        what = f"{id} stands elsewhere than its weighted score says and no revision names it"
        problems.append(Problem("order", what, None, "the order by weighted score, or a revision"))
    return grades


def _untied_twins(
    reply: GraderReply, left: Sequence[str], ranking: Ranking, material: GroupMaterial
) -> Iterator[Problem]:
    """Name byte-identical patches that are not tied although no cited event separates them."""
    place = {id: (tier, k) for tier, groups in ranking.items() for k, tied in enumerate(groups) for id in tied}
    entries = {entry.id: entry for entry in reply.candidates}
    twins: dict[bytes, list[str]] = {}
    for id in left:
        twins.setdefault(material.passing[id].patch, []).append(id)
    for one, other in chain.from_iterable(combinations(same, 2) for same in twins.values()):
        if place[one] != place[other] and not _told_apart(reply, entries[one], entries[other]):
            what = f"{one} and {other} have the same patch, byte for byte, and are not tied"
            yield Problem("order", what, None, "a tie, or a cited event that separates them")


def _told_apart(reply: GraderReply, one: CandidateReply, other: CandidateReply) -> bool:
    """Whether an event is cited for something in which two candidates differ, or for a revision that names one."""
    differ = {c for c in CRITERIA if one.scores[c] != other.scores[c]}
    differ |= {flag for flag in FLAGS if bool(one.flags.get(flag)) != bool(other.flags.get(flag))}
    cited: list[Citation] = [c.citation for e in (one, other) for c in e.citations if c.about in differ]
    for revision in reply.revisions:
        if {one.id, other.id} & set(revision.candidates):
            cited += revision.citations
    return any(citation.kind == "event" and citation.candidate in (one.id, other.id) for citation in cited)
