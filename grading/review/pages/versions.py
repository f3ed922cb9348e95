"""Several versions of one group's ranking side by side: what differs, candidate by candidate, and the whole order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grading.grader.shape import CandidateReply
from grading.review.agreement import TIERS, Ranking
from grading.review.pages.sitting import Sitting
from grading.scoring.criteria import CRITERIA, FLAGS
from grading.templatetags.figures import words as plain

NO_RANKING = "no ranking"


@dataclass(frozen=True)
class Version:
    """One column. `entries` and `ranking` are by external id."""

    title: str
    by: str
    entries: Mapping[str, CandidateReply]
    ranking: Ranking
    words: str = ""
    at: object = None
    pk: int = 0
    url: str = ""
    is_yours: bool = False


def order_words(ranking: Ranking, letters: Mapping[str, str]) -> str:
    """C > A=H > F | – | K: tiers apart by a bar."""
    tiers = [" > ".join("=".join(letters.get(id, "?") for id in tied) for tied in ranking.get(t, ())) for t in TIERS]
    return " | ".join(tier or "–" for tier in tiers) if ranking else NO_RANKING


def table(sitting: Sitting, versions: Sequence[Version]) -> list[dict]:
    """The rows in which versions are not all equal, and the orders. A cell is changed where the first has another."""
    letters = sitting.letter_of
    ids = {id for v in versions for id in v.entries if id in letters}
    ids = sorted(ids, key=lambda id: (len(letters[id]), letters[id]))
    seats = [_seats(v.ranking) for v in versions]
    rows = []
    for id in ids:
        entries = [v.entries.get(id) for v in versions]
        for name in CRITERIA:
            said = [str(e.scores.get(name, "–")) if e else "–" for e in entries]
            rows.append(_row(f"{letters[id]} {plain(name)}", said))
        for name in FLAGS:
            said = ["set" if e and e.flags.get(name) else "–" for e in entries]
            rows.append(_row(f"{letters[id]} {plain(name)}", said))
        rows.append(_row(f"{letters[id]} tier, place", [found.get(id, "–") for found in seats]))
    rows = [row for row in rows if row["differs"]]
    return [*rows, _row("order", [order_words(v.ranking, letters) for v in versions])]


def _row(label: str, said: list[str]) -> dict:
    cells = [{"text": text, "is_changed": text != said[0]} for text in said]
    return {"label": label, "cells": cells, "differs": len(set(said)) > 1}


def _seats(ranking: Ranking) -> dict[str, str]:
    return {id: f"{tier}, {n}" for tier in TIERS for n, tied in enumerate(ranking.get(tier, ()), 1) for id in tied}
