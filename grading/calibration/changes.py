"""What a replay changes in stored verdicts: orders, tiers, factors, ties. Core."""

from dataclasses import dataclass

import numpy as np

from grading.calibration.replay import Replayed, Scored

CHANGED = 1e-12  # of a factor: equal decimals are equal floats, written down either way


@dataclass(frozen=True)
class Changes:
    """By group, and the counts of tied groups (candidates that share a place are one).

    order_B: somebody's place inside a tier, or tier, is another. first_B: others stand first. tier_B, factor_B: at
    least one candidate's. dropped_B: a revision no longer applies. factor_change_B: (B,) float, sum of |change|.
    """

    order_B: np.ndarray
    first_B: np.ndarray
    tier_B: np.ndarray
    factor_B: np.ndarray
    dropped_B: np.ndarray
    factor_change_B: np.ndarray
    places_before: int
    places_after: int


def changes(scored: Scored, stored_factor_BG: np.ndarray, replayed: Replayed) -> Changes:
    """Compare stored tiers, places and factors with replayed ones.

    Args:
        scored: the verdicts, with what was stored.
        stored_factor_BG: (B, G) float, NaN where absent.
        replayed: the same verdicts under other numbers.
    Returns:
        The changes. No verdict: empty arrays and zeros.
    """
    before_BG = _standing(scored.own_tier_BG, scored.own_place_BG)
    after_BG = _standing(replayed.tier_BG, replayed.place_BG)
    moved_BG = np.where(scored.there_BG, np.abs(replayed.factor_BG - stored_factor_BG), 0.0)
    first_BG = (before_BG == _best(before_BG)) != (after_BG == _best(after_BG))
    return Changes(
        order_B=(before_BG != after_BG).any(-1),
        first_B=(first_BG & scored.there_BG).any(-1),
        tier_B=(scored.own_tier_BG != replayed.tier_BG).any(-1),
        factor_B=(moved_BG > CHANGED).any(-1),
        dropped_B=replayed.dropped_BT.any(-1),
        factor_change_B=moved_BG.sum(-1),
        places_before=_distinct(before_BG, scored.there_BG),
        places_after=_distinct(after_BG, scored.there_BG),
    )


def _standing(tier_BG: np.ndarray, place_BG: np.ndarray) -> np.ndarray:
    """Tier and place as one number, the best lowest."""
    return tier_BG.astype(np.int32) * 1000 + place_BG


def _best(standing_BG: np.ndarray) -> np.ndarray:
    there_BG = standing_BG >= 0
    return np.where(there_BG, standing_BG, np.iinfo(np.int32).max).min(-1, initial=np.iinfo(np.int32).max)[:, None]


def _distinct(standing_BG: np.ndarray, there_BG: np.ndarray) -> int:
    if standing_BG.shape[1] == 0:
        return 0
    ordered_BG = np.sort(np.where(there_BG, standing_BG, -1), axis=1)
    fresh_BG = ordered_BG[:, 1:] != ordered_BG[:, :-1]
    return int((ordered_BG[:, 0] >= 0).sum() + (fresh_BG & (ordered_BG[:, 1:] >= 0)).sum())
