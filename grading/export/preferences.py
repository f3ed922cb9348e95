"""Preference pairs out of rankings: two patches of one task, which is better, or that neither is."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

from grading.export.decided import Decided, decided
from grading.export.redact import Redactor
from grading.grader.workspace import Workspace
from grading.models import VerdictCandidate
from grading.scoring.criteria import weighted_score

MOST_CHARS = 200_000  # of one patch


def rows(runs, left_out: Counter) -> Iterator[dict[str, Any]]:
    """Every pair of ranked candidates of a group, once; a tie is a row that says so."""
    for one in decided(runs):
        yield from _pairs(one, left_out)


def _pairs(one: Decided, left_out: Counter) -> Iterator[dict[str, Any]]:
    placed = list(one.verdict.candidates.select_related("trajectory"))
    with Workspace.open(one.group, seed=0) as ws:
        redactor = Redactor()
        prompt = redactor.text(ws.scrub(ws.statement))
        patches = {}
        for candidate in placed:
            shown = ws.shown.get(ws.letters.get(candidate.trajectory.external_id, ""))
            patches[candidate.pk] = redactor.text(shown.patch.decode("utf-8", "replace")) if shown else None
    for better, worse in combinations(sorted(placed, key=_place), 2):
        chosen, rejected = patches[better.pk], patches[worse.pk]
        if chosen is None or rejected is None:
            left_out["a candidate counts no longer"] += 1
        elif chosen == rejected:
            left_out["both patches are the same, byte for byte"] += 1
        elif max(len(chosen), len(rejected)) > MOST_CHARS:
            left_out[f"a patch is longer than {MOST_CHARS} characters"] += 1
        else:
            yield _row(one, prompt, better, worse, texts=(chosen, rejected), redacted=redactor.count)


def _place(candidate: VerdictCandidate) -> tuple:
    return candidate.tier, candidate.rank, candidate.trajectory.letter


def _row(one: Decided, prompt: str, better, worse, *, texts: tuple[str, str], redacted: int) -> dict[str, Any]:
    rubric = one.verdict.rubric.rubric
    gap: Fraction = weighted_score(better.scores, rubric) - weighted_score(worse.scores, rubric)
    return {
        "prompt": prompt,
        "chosen": texts[0],
        "rejected": texts[1],
        "is_tie": _place(better)[:2] == _place(worse)[:2],
        "chosen_id": better.trajectory.external_id,
        "rejected_id": worse.trajectory.external_id,
        "chosen_tier": better.tier,
        "rejected_tier": worse.tier,
        "gap": float(gap),
        "provenance": one.provenance("preferences") | {"redacted": redacted},
    }
