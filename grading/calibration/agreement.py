"""What two raters of the same groups agree on: pairs, ranks, the first place, tiers, criteria. Core."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations

import numpy as np

from grading.calibration import alpha, kappa, ranks
from grading.calibration.estimate import Estimate
from grading.calibration.intervals import Statistic, estimate, ratio, resampled
from grading.review.agreement import Pairs
from grading.scoring.criteria import CRITERIA

TIERS, SCORES = (1, 2, 3), (1, 2, 3, 4, 5)
NOBODY = "nobody answered so"
TIED_ALL = "people tied every pair"
NO_TIERS, NO_SCORES = "no tiers were given", "no scores were given"
ONE_LABEL = "nothing was rated twice, or all of it alike"


@dataclass(frozen=True)
class Said:
    """One rater's answer by candidate: rank (1 best, ties equal), and where they were given tier and scores."""

    ranks: Mapping[str, int]
    tiers: Mapping[str, int] = field(default_factory=dict)
    scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Compared:
    """A person's answer beside another one, the grader's or a person's; only candidates of both count."""

    group: int
    person: Said
    other: Said
    weighted: Mapping[str, float] = field(default_factory=dict)  # the grader's W
    counts: float = 1.0  # 1/2 where the same two people are compared from both sides

    def pairs(self) -> Pairs:
        return self._pairs

    @cached_property
    def _pairs(self) -> Pairs:
        return ranks.pairs_of(*self._common(self.person.ranks, self.other.ranks))

    def top(self):
        return ranks.top(*self._common(self.person.ranks, self.other.ranks))

    def tier_table(self) -> np.ndarray:
        """(3, 3) counts: rows are the person's tiers."""
        return kappa.confusion(*self._common(self.person.tiers, self.other.tiers), TIERS)

    def score_table(self, criterion: str) -> np.ndarray:
        """(5, 5) counts: rows are the person's scores."""
        mine, theirs = (
            {id: scores[criterion] for id, scores in said.scores.items() if criterion in scores}
            for said in (self.person, self.other)
        )
        return kappa.confusion(*self._common(mine, theirs), SCORES)

    @staticmethod
    def _common(mine: Mapping[str, int], theirs: Mapping[str, int]) -> tuple[list[int], list[int]]:
        ids = sorted(mine.keys() & theirs.keys())
        return [mine[id] for id in ids], [theirs[id] for id in ids]


@dataclass(frozen=True)
class Figure:
    """How one statistic is made: what a comparison adds, how sums become the value, how many things were counted."""

    name: str
    words: str
    adds: Callable[[Compared], np.ndarray]
    statistic: Statistic
    counted: Callable[[np.ndarray], float]
    undefined: str
    is_share: bool = False


def _pair_sums(one: Compared) -> np.ndarray:
    found = one.pairs()
    return np.array([found.same + found.tied_other / 2, found.same + found.opposite + found.tied_other])


def _three_way_sums(one: Compared) -> np.ndarray:
    found = one.pairs()
    return np.array([found.same + found.tied_both, found.n])


def _tau_sums(one: Compared) -> np.ndarray:
    tau = one.pairs().tau_b
    return np.zeros(2) if tau is None else np.array([tau, 1.0])


def _top_sums(one: Compared) -> np.ndarray:
    found = one.top()
    return np.zeros(2) if found is None else np.array([found.pick, 1.0])


def _flat_tiers(one: Compared) -> np.ndarray:
    return one.tier_table().ravel()


def _on_table(statistic: Callable, k: int) -> Statistic:
    return lambda sums: statistic(sums.reshape(*sums.shape[:-1], k, k))


def _alpha(labels: Sequence[int], table_KK: np.ndarray) -> np.ndarray:
    """Two ratings of a unit: both orders count 1."""
    return alpha.alpha(table_KK + np.swapaxes(table_KK, -1, -2), labels)


def _all(sums: np.ndarray) -> float:
    return sums.sum()


def _last(sums: np.ndarray) -> float:
    return sums[-1]


RANKING = (
    Figure("pairs", "pairs alike, a tie of the grader half", _pair_sums, ratio, _last, TIED_ALL, True),
    Figure("three_way", "pairs alike, ties an answer of their own", _three_way_sums, ratio, _last, "no pair", True),
    Figure("tau_b", "τ-b of a group, then the mean", _tau_sums, ratio, _last, "somebody tied everything in each group"),
    Figure("top_1", "the grader's first is the people's first", _top_sums, ratio, _last, "no candidate", True),
)
_TIER = {"weighted κ": kappa.cohen, "α ordinal": partial(_alpha, TIERS), "AC1": kappa.gwet,
         "AC2 ordinal": partial(kappa.gwet, kind="ordinal"), "raw": kappa.raw}  # fmt: skip
TIER = tuple(
    Figure(f"tier {name}", name, _flat_tiers, _on_table(how, 3), _all, NO_TIERS, name == "raw")
    for name, how in _TIER.items()
)


def _criterion(criterion: str) -> tuple[Figure, ...]:
    def adds(one: Compared) -> np.ndarray:
        return one.score_table(criterion).ravel()

    how = {"weighted κ": kappa.cohen, "α ordinal": partial(_alpha, SCORES),
           "AC2 ordinal": partial(kappa.gwet, kind="ordinal"), "raw": kappa.raw}  # fmt: skip
    return tuple(
        Figure(f"{criterion} {name}", name, adds, _on_table(statistic, 5), _all, NO_SCORES, name == "raw")
        for name, statistic in how.items()
    )


BY_CRITERION = {criterion: _criterion(criterion) for criterion in CRITERIA}
FIGURES = {f.name: f for f in (*RANKING, *TIER, *(f for every in BY_CRITERION.values() for f in every))}


def sums_by_group(compared: Sequence[Compared], adds: Callable[[Compared], np.ndarray]) -> dict[int, np.ndarray]:
    """Group -> what its comparisons add; groups that add nothing are left out."""
    found: dict[int, np.ndarray] = {}
    for one in compared:
        found[one.group] = found.get(one.group, 0) + one.counts * adds(one)
    return {group: sums for group, sums in found.items() if np.any(sums)}


def measure_all(
    compared: Sequence[Compared], figures: Sequence[Figure], *, resamples: int = 1000
) -> dict[str, Estimate]:
    """Name -> figure over comparisons, with its interval over groups; figures of the same sums share resamples."""
    found: dict[str, Estimate] = {}
    for adds in dict.fromkeys(figure.adds for figure in figures):
        sums_GM = np.array(list(sums_by_group(compared, adds).values()))
        drawn_RM = resampled(sums_GM, lambda sums: sums, resamples=resamples) if len(sums_GM) > 1 else None
        for figure in (figure for figure in figures if figure.adds is adds):
            found[figure.name] = _measured(figure, sums_GM, drawn_RM, is_any=bool(compared))
    return found


def _measured(figure: Figure, sums_GM: np.ndarray, drawn_RM: np.ndarray | None, *, is_any: bool) -> Estimate:
    if not len(sums_GM):
        return Estimate.undefined(figure.undefined if is_any else NOBODY)
    n = round(figure.counted(sums_GM.sum(0)))
    why = ONE_LABEL if figure.undefined in (NO_TIERS, NO_SCORES) else figure.undefined
    return estimate(sums_GM, figure.statistic, n=n, undefined=why, is_share=figure.is_share, drawn_RM=drawn_RM)


def measure(compared: Sequence[Compared], figure: Figure) -> Estimate:
    """One figure over comparisons."""
    return measure_all(compared, [figure])[figure.name]


def undefined_groups(compared: Sequence[Compared]) -> int:
    """In how many groups no tau-b is defined."""
    return len({one.group for one in compared}) - len(sums_by_group(compared, _tau_sums))


def tier_confusion(compared: Sequence[Compared]) -> np.ndarray:
    """(3, 3) counts over all comparisons: rows people, columns the other."""
    return sum((one.counts * one.tier_table() for one in compared), np.zeros((3, 3)))


def preferences(compared: Sequence[Compared]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs that people decide: group, W of the one with more minus W of the other, and whether they prefer it.

    Returns:
        (P,) int, (P,) float >= 0, (P,) float: 1 or 0; 1/2 where W is equal, whichever people prefer.
    """
    rows = []
    for one in compared:
        ids = sorted(one.person.ranks.keys() & one.weighted.keys())
        for a, b in combinations(ids, 2):
            above = one.person.ranks[b] - one.person.ranks[a]
            difference = one.weighted[a] - one.weighted[b]
            if above:
                prefers = 0.5 if difference == 0 else float((above > 0) == (difference > 0))
                rows.append((one.group, abs(difference), prefers))
    found = np.array(rows, float).reshape(-1, 3)
    return found[:, 0].astype(int), found[:, 1], found[:, 2]
