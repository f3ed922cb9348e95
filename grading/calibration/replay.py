"""Stored scores under any rubric version, many groups at once: W, tiers, ranks, factors. Core.

The scalar code of `scoring` says what is right; this is the same arithmetic over arrays, exact where that is exact.
Axes: B groups (one verdict each), G candidates, C criteria. A short group is masked by `there_BG`.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from grading.scoring.criteria import CRITERIA, FLAGS, Rubric
from grading.scoring.tiers import BARS_FROM_T1, SENDS_TO_T3

UNRANKED = -1
NOBODY = np.iinfo(np.int64).max
APPROACH, MINIMALITY, SIDE_EFFECTS = (CRITERIA.index(c) for c in ("approach", "minimality", "side_effects"))


@dataclass(frozen=True)
class Scored:
    """Verdicts as arrays. What an absent candidate holds is not read.

    scores_BGC: (B, G, C) int8, 1 to 5.
    flags_BG: (B, G) uint8, bit i is FLAGS[i].
    there_BG: (B, G) bool.
    revised_B: (B,) bool, the ranking is a revised order.
    own_tier_BG (int8), own_base_BG, own_place_BG (int16): (B, G), under the verdict's own version: the tier, the place
        inside it by W alone, and the place that was stored, which differs only in revised verdicts. -1 where absent.
    """

    scores_BGC: np.ndarray
    flags_BG: np.ndarray
    there_BG: np.ndarray
    revised_B: np.ndarray
    own_tier_BG: np.ndarray
    own_base_BG: np.ndarray
    own_place_BG: np.ndarray


@dataclass(frozen=True)
class Replayed:
    """What a rubric makes of verdicts.

    tier_BG: (B, G) int8, 1 to 3, -1 where absent. place_BG: (B, G) int16, zero-based tied group inside the tier.
    weighted_BG: (B, G) int64, W times `scale`, exact. factor_BG: (B, G) float64 in (0, 1], NaN where absent.
    dropped_BT: (B, 3) bool, by tier: a revision no longer applies there, the order by W stands.
    """

    tier_BG: np.ndarray
    place_BG: np.ndarray
    weighted_BG: np.ndarray
    scale: int
    factor_BG: np.ndarray
    dropped_BT: np.ndarray


def replay(scored: Scored, rubric: Rubric) -> Replayed:
    """Place, rank and weigh every candidate under a rubric.

    A revision argues about one tier as its own version saw it. It stands where the rubric leaves that tier the same
    candidates in the same order by W; elsewhere the order by W stands, and the tier is marked as dropped.

    Args:
        scored: the verdicts.
        rubric: whose weights, thresholds and constants count.
    Returns:
        The grades. Under its own version a verdict gets the very tiers, places and factors that were stored.
    """
    tier_BG = tiers(scored, rubric)
    weighted_BG, scale = weighted(scored, rubric)
    base_BG = places(tier_BG, weighted_BG)
    place_BG, dropped_BT = _with_revisions(scored, tier_BG, base_BG)
    return Replayed(tier_BG, place_BG, weighted_BG, scale, factors(tier_BG, place_BG, rubric), dropped_BT)


def weighted(scored: Scored, rubric: Rubric) -> tuple[np.ndarray, int]:
    """Weigh the scores in integers: candidates equal on paper are equal here. Eq. (5).

    Returns:
        (B, G) int64, W times the scale, and the scale: the smallest that makes every weight an integer.
    """
    exact = [Fraction(w) for w in rubric.weights]
    scale = lcm(*(w.denominator for w in exact))
    whole = [int(w * scale) for w in exact]
    weighted_BG = np.zeros(scored.there_BG.shape, np.int64)
    for c, weight in enumerate(whole):
        weighted_BG += scored.scores_BGC[..., c] * np.int64(weight)
    return weighted_BG, scale


def tiers(scored: Scored, rubric: Rubric) -> np.ndarray:
    """Place every candidate, in the order of `scoring.tiers.tier`: T3 is asked first.

    Returns:
        (B, G) int8, 1 to 3; -1 where absent.
    """
    scores_BGC = scored.scores_BGC
    out_of_scope_BG = scores_BGC[..., MINIMALITY] <= rubric.t3_minimality
    out_of_scope_BG &= scores_BGC[..., SIDE_EFFECTS] <= rubric.t3_side_effects
    third_BG = (scored.flags_BG & _bits(SENDS_TO_T3)) != 0
    third_BG |= out_of_scope_BG | (scores_BGC[..., APPROACH] <= rubric.t3_approach)
    first_BG = (scored.flags_BG & _bits(BARS_FROM_T1)) == 0
    for c in range(len(CRITERIA)):
        first_BG &= scores_BGC[..., c] >= rubric.t1_floor
    tier_BG = np.where(third_BG, np.int8(3), np.where(first_BG, np.int8(1), np.int8(2)))
    return np.where(scored.there_BG, tier_BG, np.int8(UNRANKED))


def places(tier_BG: np.ndarray, weighted_BG: np.ndarray) -> np.ndarray:
    """Number the tied groups inside each tier by W, best first, from 0.

    Args:
        tier_BG: (B, G) int8; below 1 is absent.
        weighted_BG: (B, G) int64, at least 0.
    Returns:
        (B, G) int16; -1 where absent.
    """
    groups, size = tier_BG.shape
    if size == 0:
        return np.empty((groups, 0), np.int16)
    top = int(weighted_BG.max(initial=0)) + 1
    bits = max(1, (size - 1).bit_length())
    # Tier, then W downwards, then the column it came from, in one integer: sorting it needs no argsort.
    key_BG = (tier_BG.astype(np.int64) * top + (top - 1 - weighted_BG)) << bits | np.arange(size)
    key_BG = np.where(tier_BG > 0, key_BG, NOBODY - (1 << bits) + 1 + np.arange(size))
    key_BG.sort(axis=1)
    column_BG, key_BG = key_BG & ((1 << bits) - 1), key_BG >> bits
    starts_BG = np.ones(key_BG.shape, np.int8)
    starts_BG[:, 1:] = key_BG[:, 1:] != key_BG[:, :-1]
    tied_BG = np.cumsum(starts_BG, axis=1, dtype=np.int16)
    tier_sorted_BG = np.take_along_axis(tier_BG, column_BG, 1)
    opens_BG = np.ones(key_BG.shape, bool)
    opens_BG[:, 1:] = tier_sorted_BG[:, 1:] != tier_sorted_BG[:, :-1]
    first_BG = np.maximum.accumulate(np.where(opens_BG, tied_BG, 0), axis=1)
    place_BG = np.empty(key_BG.shape, np.int16)
    np.put_along_axis(place_BG, column_BG, tied_BG - first_BG, 1)
    return np.where(tier_BG > 0, place_BG, np.int16(UNRANKED))


def factors(tier_BG: np.ndarray, place_BG: np.ndarray, rubric: Rubric) -> np.ndarray:
    """Read every factor from a table of the exact fractions, rounded once. Eq. (6).

    Args:
        tier_BG, place_BG: (B, G) int8, after revisions.
        rubric: whose constants count.
    Returns:
        (B, G) float64 in (0, 1]; NaN where absent. Bit-equal to `float` of `scoring.factors`.
    """
    f_runner, f_min, f_max, f_low = map(Fraction, (rubric.f_runner, rubric.f_min, rubric.f_max, rubric.f_low))
    k2_B = np.where(tier_BG == 2, place_BG, np.int16(UNRANKED)).max(-1, initial=UNRANKED).astype(np.int64) + 1
    table = np.full((int(k2_B.max(initial=0)) + 1, max(tier_BG.shape[-1], 1)), np.nan)
    for k2 in np.unique(k2_B[k2_B > 0]).tolist():
        step = (f_max - f_min) / max(k2 - 1, 1)
        table[k2, :k2] = [float(f_max - step * k) for k in range(k2)]
    factor_BG = np.full(tier_BG.shape, np.nan)
    second_BG = tier_BG == 2
    k2_BG = np.broadcast_to(k2_B[:, None], tier_BG.shape)
    factor_BG[second_BG] = table[k2_BG[second_BG], place_BG[second_BG]]
    factor_BG[tier_BG == 1] = float(f_runner)
    factor_BG[(tier_BG == 1) & (place_BG == 0)] = 1.0
    factor_BG[tier_BG == 3] = float(f_low)
    return factor_BG


def _with_revisions(scored: Scored, tier_BG: np.ndarray, base_BG: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    place_BG = base_BG
    dropped_BT = np.zeros((len(tier_BG), 3), bool)
    where = np.flatnonzero(scored.revised_B)
    if not len(where):
        return place_BG, dropped_BT
    place_BG = base_BG.copy()
    tier_bG, base_bG = tier_BG[where], base_BG[where]
    own_tier_bG, own_base_bG, own_place_bG = (
        own_BG[where] for own_BG in (scored.own_tier_BG, scored.own_base_BG, scored.own_place_BG)
    )
    for tier in (1, 2, 3):
        inside_bG = (tier_bG == tier) | (own_tier_bG == tier)
        same_bG = (tier_bG == own_tier_bG) & (base_bG == own_base_bG)
        stands_b = (same_bG | ~inside_bG).all(-1)
        argued_b = ((own_tier_bG == tier) & (own_base_bG != own_place_bG)).any(-1)
        taken_bG = stands_b[:, None] & (tier_bG == tier)
        place_BG[where] = np.where(taken_bG, own_place_bG, place_BG[where])
        dropped_BT[where, tier - 1] = argued_b & ~stands_b
    return place_BG, dropped_BT


def _bits(flags: frozenset[str]) -> np.uint8:
    return np.uint8(sum(1 << FLAGS.index(flag) for flag in flags))
