"""The one verdict shape: what any grader, a program of your own or a person's correction says about a group. Core.

`wire` reads it from JSON; whether what it says is allowed is for `parse.check` to decide.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grading.errors import BadInput
from grading.review.anchors import Citation
from grading.scoring import tiers
from grading.scoring.rows import FINDINGS

Order = Mapping[str, tuple[tuple[str, ...], ...]]
TIER_NAMES = tuple(tiers.TIER_NAMES.values())
FINDING_KINDS = FINDINGS
EVIDENCE_BELOW = 4  # a score below it bars T1, so it must be shown


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a reply: where it stands, what it is, what was got and what is expected."""

    where: str
    what: str
    got: str | None = None
    expected: str | None = None

    def __str__(self) -> str:
        said = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.got is not None:
            said.append(f"got {self.got}")
        if self.expected is not None:
            said.append(f"expected {self.expected}")
        return ", ".join(said)

    def to_json(self) -> dict[str, str | None]:
        return {"where": self.where, "what": self.what, "got": self.got, "expected": self.expected}


class BadReply(BadInput):
    """A reply that has not the shape of a verdict; `problems` holds all that is wrong, not the first thing."""

    status = 422

    def __init__(self, problems: list[Problem]):
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{first.what}{more}", got=first.got, expected=first.expected, where=first.where)
        self.problems = problems


@dataclass(frozen=True)
class Cited:
    """A citation and the claim it stands for: a criterion or a flag of the candidate that carries it."""

    about: str
    citation: Citation


@dataclass(frozen=True)
class CandidateReply:
    """What is said of one candidate. Scores are kept as they came: a "5" or 4.5 is `parse`'s to refuse."""

    id: str
    scores: Mapping[str, Any]
    reasons: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)
    citations: tuple[Cited, ...] = ()


@dataclass(frozen=True)
class Revision:
    """Candidates that stand elsewhere in the order than their weighted score says, and why."""

    candidates: tuple[str, ...]
    reason: str
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True)
class Finding:
    """A leaked or hacked result. It counts if its own citation resolves, whatever the rest of the reply is worth."""

    id: str
    kind: str
    reason: str
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True)
class GraderReply:
    """A whole reply. `order` None means: by weighted score. Ids are read as ids, never as positions."""

    candidates: tuple[CandidateReply, ...]
    order: Order | None = None
    revisions: tuple[Revision, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: str = ""

    def to_json(self) -> dict[str, Any]:
        """Give the reply as JSON values; `wire.from_json` of it is equal to the reply."""
        return {
            "candidates": [_candidate_json(candidate) for candidate in self.candidates],
            "order": None if self.order is None else {t: [list(tied) for tied in g] for t, g in self.order.items()},
            "revisions": [
                {"candidates": list(r.candidates), "reason": r.reason, "citations": [c.to_json() for c in r.citations]}
                for r in self.revisions
            ],
            "findings": [
                {"id": f.id, "kind": f.kind, "reason": f.reason, "citations": [c.to_json() for c in f.citations]}
                for f in self.findings
            ],
            "notes": self.notes,
        }


def _candidate_json(candidate: CandidateReply) -> dict[str, Any]:
    return {
        "id": candidate.id,
        "scores": dict(candidate.scores),
        "reasons": dict(candidate.reasons),
        "flags": dict(candidate.flags),
        "citations": [{"about": cited.about, **cited.citation.to_json()} for cited in candidate.citations],
    }
