"""What a grader may like for the wrong reasons: a place in the prompt, long patches, its own kind. Core.

Every figure is a mean over groups with its interval. What cannot be known is undefined with the reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from grading.calibration.agreement import Said
from grading.calibration.estimate import Estimate
from grading.calibration.intervals import difference, estimate, ratio
from grading.calibration.ranks import pairs_of

FAMILIES = {  # what a model's name begins with, after its maker or folder -> family
    "gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "codex": "openai", "chatgpt": "openai",
    "claude": "anthropic", "gemini": "google", "gemma": "google", "llama": "meta", "codellama": "meta", "qwen": "qwen",
    "qwq": "qwen", "deepseek": "deepseek", "mistral": "mistral", "mixtral": "mistral", "devstral": "mistral",
    "codestral": "mistral", "glm": "zhipu", "kimi": "moonshot", "phi": "microsoft", "grok": "xai", "minimax": "minimax",
    "seed": "bytedance",
}  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """One group as its grader ranked it, with what might sway it. Missing facts are absent from their mapping."""

    group: int
    grader: Said
    people: Said | None = None
    presented: Mapping[str, int] = None  # candidate -> place in the prompt, where it was shown in one order
    patch: Mapping[str, int] = None  # bytes
    events: Mapping[str, int] = None
    families: Mapping[str, str] = None  # of the policy that wrote it
    grader_family: str = ""
    flips: float | None = None  # share of pairs that changed sides between shuffled orders


def family_of(model: str) -> str:
    """The family a model's name tells; "" where it tells none: `openai:gpt-5` and `org/Qwen3-8B` do."""
    name = model.lower().rpartition(":")[2].rpartition("/")[2]
    return next((family for start, family in FAMILIES.items() if name.startswith(start)), "")


Rows = dict[int, tuple]  # group -> (hits, trials), or (hits, trials, those of people, their trials)


def flip_rows(judged: Sequence[Judged]) -> Rows:
    return {one.group: (one.flips, 1) for one in judged if one.flips is not None}


def flips(judged: Sequence[Judged]) -> Estimate:
    """The share of pairs that change sides when the same group is shown in another order; 0 is what one wants."""
    why = "no group was graded in several orders: set orders and their share on the Grader page"
    return _over(flip_rows(judged), why, is_share=True)


def _tau(said: Said | None, fact: Mapping[str, int] | None) -> float | None:
    """How far a larger fact goes with a better rank, -1 to 1; None where all are equal or unknown."""
    if said is None or not fact:
        return None
    ids = sorted(said.ranks.keys() & fact.keys())
    return pairs_of([said.ranks[id] for id in ids], [-fact[id] for id in ids]).tau_b


def leaning_rows(judged: Sequence[Judged], fact: Callable[[Judged], Mapping | None]) -> Rows:
    taus = {one.group: _tau(one.grader, fact(one)) for one in judged}
    return {group: (tau, 1) for group, tau in taus.items() if tau is not None}


def leaning(judged: Sequence[Judged], fact: Callable[[Judged], Mapping | None], undefined: str) -> Estimate:
    """Mean tau-b of the grader's ranks with a fact: above 0 it puts what has more of it first."""
    return _over(leaning_rows(judged, fact), undefined)


def beside_people_rows(judged: Sequence[Judged], fact: Callable[[Judged], Mapping | None]) -> Rows:
    both = {one.group: (_tau(one.grader, fact(one)), _tau(one.people, fact(one))) for one in judged}
    return {group: (mine, 1, theirs, 1) for group, (mine, theirs) in both.items() if None not in (mine, theirs)}


def beside_people(judged: Sequence[Judged], fact: Callable[[Judged], Mapping | None], undefined: str) -> Estimate:
    """The grader's tau-b less that of people in the same groups: people may have good reasons, bias is the rest."""
    return _over(beside_people_rows(judged, fact), undefined, of=difference)


def own_kind_rows(judged: Sequence[Judged]) -> Rows:
    rows = {one.group: _own_pairs(one, one.grader) for one in judged}
    return {group: row for group, row in rows.items() if row[1]}


def own_kind(judged: Sequence[Judged]) -> Estimate:
    """Of pairs with one candidate of the grader's family and one of another: how often its own is put first."""
    return _over(own_kind_rows(judged), _why_no_kind(judged), is_share=True)


def own_kind_beside_people_rows(judged: Sequence[Judged]) -> Rows:
    both = {one.group: (*_own_pairs(one, one.grader), *_own_pairs(one, one.people)) for one in judged if one.people}
    return {group: row for group, row in both.items() if row[1] and row[3]}


def own_kind_beside_people(judged: Sequence[Judged]) -> Estimate:
    """`own_kind` of the grader less that of people, on the same groups."""
    why = _why_no_kind(judged) if not own_kind_rows(judged) else ""
    return _over(own_kind_beside_people_rows(judged), why or "people answered no such group", of=difference)


def values_of(rows: Rows) -> dict[int, tuple[float, float]]:
    """Group -> (its own value, n)."""
    how = {2: ratio, 4: difference}
    return {group: (float(how[len(row)](np.array(row, float))), row[1]) for group, row in rows.items()}


def _own_pairs(one: Judged, said: Said) -> tuple[float, int]:
    """(how many of the mixed pairs put the grader's own kind first, a tie half; mixed pairs)."""
    families = one.families or {}
    if not one.grader_family:
        return 0.0, 0
    ids = [id for id in sorted(said.ranks) if families.get(id)]
    first, n = 0.0, 0
    for a, b in combinations(ids, 2):
        own_a, own_b = (families[id] == one.grader_family for id in (a, b))
        if own_a != own_b:
            own, other = (a, b) if own_a else (b, a)
            first += 0.5 if said.ranks[own] == said.ranks[other] else float(said.ranks[own] < said.ranks[other])
            n += 1
    return first, n


def _why_no_kind(judged: Sequence[Judged]) -> str:
    if not any(one.grader_family for one in judged):
        return "the grader's family is not known: it uses no model, or one whose name says nothing"
    if not any(one.families for one in judged):
        return "no rollout names the model that wrote it"
    return "no group has candidates of the grader's family and of another one"


def _over(rows: Rows, undefined: str, *, of=ratio, is_share: bool = False) -> Estimate:
    sums_GM = np.array(list(rows.values()), float).reshape(len(rows), -1) if rows else np.zeros((0, 4))
    n = int(sums_GM[:, 1].sum()) if len(rows) else 0
    return estimate(sums_GM, of, n=n, undefined=undefined, is_share=is_share, resamples=1000)
