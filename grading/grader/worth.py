"""Which groups no ranking can change an advantage of (method.md 3), so that nobody pays for one. Core.

Findings do not count here: a group with a strong integrity signal is worth a grade whatever its ranking could change.
"""

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction

from grading.scoring.criteria import Rubric
from grading.scoring.rows import EffectiveRow

REDISTRIBUTE, DOWNWEIGHT_ONLY, REWARD_DISCOUNT = "redistribute", "downweight_only", "reward_discount"
ADDITIVE_RUBRIC = "additive_rubric"
SHUFFLED, INVERTED = "redistribute_shuffled", "redistribute_inverted"


def why_unchanged(
    rows: Sequence[EffectiveRow],
    tied: Mapping[str, Hashable],
    *,
    method: str,
    rubric: Rubric,
    neutral_when_equal: bool = False,
) -> str:
    """Say why the advantages are the outcome advantages under every valid ranking.

    A ranking can give any candidate `f_low` (a flag makes it T3) and another one 1 (alone at the top of T1), so only
    who must tie, who stands above the mean, and the rubric's constants matter. A redistribution that falls back because
    it would turn the order over counts as a change: whether it does is not asked here.

    Args:
        rows: the group as it counts, mixed: at least one pass and one failure, rewards finite.
        tied: pass -> its tied class; passes of one class tie in every valid verdict (same patch, no event to cite).
        method: the run's; `outcome` asks for no ranking at all.
        rubric: whose constants count.
        neutral_when_equal: whether factors are divided by the best one of the group.
    Returns:
        The reason in words; "" if some ranking changes an advantage.
    """
    valid = [row for row in rows if row.valid]
    passes = {row.id: Fraction(row.reward) for row in valid if row.passing}
    mean = sum(Fraction(row.reward) for row in valid) / len(valid)
    low = Fraction(rubric.f_low)
    if method == REWARD_DISCOUNT:
        return _discount(passes.values(), low)
    if method == ADDITIVE_RUBRIC:
        return _additive(passes, tied, low)
    if method not in (REDISTRIBUTE, DOWNWEIGHT_ONLY, SHUFFLED, INVERTED):
        return "the run's method uses no ranking"
    if any(reward < mean for reward in passes.values()):
        return ""  # Eq. (8) lifts it to 0 whatever the ranking, and a fallback does not
    above = {tied[id] for id, reward in passes.items() if reward > mean}
    if not above:
        return "no pass stands above the mean of its group: there is no credit to share out"
    if low == 1:
        return "the rubric gives every candidate the factor 1"
    if method == DOWNWEIGHT_ONLY or len(above) > 1:
        return ""
    is_lone, is_one_class = sum(reward > mean for reward in passes.values()) == 1, len({*map(tied.get, passes)}) == 1
    if method == SHUFFLED and not is_lone and not is_one_class:
        return ""  # dealt out again, factors of others may part passes that tie
    neutral = neutral_when_equal and is_one_class  # else another pass may be the best one
    if not neutral and rubric.lambda_max is not None and low * Fraction(rubric.lambda_max) < 1:
        return ""  # in T3 the cap binds, and even a pass that is alone loses credit
    alone = "one pass has" if is_lone else "passes that must tie have"
    return f"{alone} all the credit, and lambda gives it back whatever the factor is"


def _discount(rewards: Sequence[Fraction], low: Fraction) -> str:
    if any(reward < 0 for reward in rewards):
        return "a pass has a negative reward: such groups are never discounted"
    if low == 1:
        return "the rubric gives every candidate the factor 1"
    return "" if any(rewards) else "no pass has a reward to discount"


def _additive(passes: Mapping[str, Fraction], tied: Mapping[str, Hashable], low: Fraction) -> str:
    if low == 1:
        return "the rubric gives every candidate the factor 1"
    return "" if len({tied[id] for id in passes}) > 1 else "there is nobody to compare with: all passes must tie"
