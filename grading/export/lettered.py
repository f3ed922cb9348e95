"""A verdict by ids as the grader would have said it: letters, scrubbed paths and quotes, reasons before scores."""

from dataclasses import replace
from typing import Any

from grading.grader.shape import CandidateReply, Finding, GraderReply, Revision
from grading.grader.workspace import Workspace
from grading.review.anchors import Citation
from grading.scoring.criteria import CRITERIA, FLAGS


def in_letters(reply: GraderReply, ws: Workspace) -> GraderReply:
    """The opposite of `Workspace.to_ids`; an id of nobody here stays, for the check to refuse."""
    letter = lambda id: ws.letters.get(id, id)  # noqa: E731
    order = reply.order and {t: tuple(tuple(map(letter, tied)) for tied in g) for t, g in reply.order.items()}
    return GraderReply(
        candidates=tuple(_candidate(entry, ws) for entry in reply.candidates),
        order=order,
        revisions=tuple(
            Revision(tuple(map(letter, r.candidates)), ws.scrub(r.reason), tuple(_citation(c, ws) for c in r.citations))
            for r in reply.revisions
        ),
        findings=tuple(
            Finding(letter(f.id), f.kind, ws.scrub(f.reason), tuple(_citation(c, ws) for c in f.citations))
            for f in reply.findings
        ),
        notes=ws.scrub(reply.notes),
    )


def _candidate(entry: CandidateReply, ws: Workspace) -> CandidateReply:
    return CandidateReply(
        ws.letters.get(entry.id, entry.id),
        entry.scores,
        {about: ws.scrub(words) for about, words in entry.reasons.items()},
        entry.flags,
        tuple(replace(cited, citation=_citation(cited.citation, ws)) for cited in entry.citations),
    )


def _citation(said: Citation, ws: Workspace) -> Citation:
    letter = ws.letters.get(said.candidate)
    if letter is None:
        return said
    shown, found = ws.shown[letter], replace(said, candidate=letter)
    if said.kind == "result":
        return replace(found, result=shown.result_name(said.result))
    if said.kind == "event":
        return replace(found, quote=ws.scrub(said.quote))
    found = replace(found, path=shown.shown_path(said.path))
    return found if shown.parsed is shown.raw.parsed else replace(found, quote=None)  # a quote is optional here


def answer_json(reply: GraderReply) -> dict[str, Any]:
    """The verdict in the order in which the prompt asks for it: a reason before its score, all flags."""
    whole = reply.to_json()
    candidates = [
        {
            "id": entry["id"],
            "reasons": entry["reasons"],
            "scores": {c: entry["scores"][c] for c in CRITERIA},
            "flags": {flag: bool(entry["flags"].get(flag)) for flag in FLAGS},
            "citations": entry["citations"],
        }
        for entry in whole["candidates"]
    ]
    rest = {name: whole[name] for name in ("findings", "order", "revisions", "notes")}
    return {"candidates": candidates, **rest}
