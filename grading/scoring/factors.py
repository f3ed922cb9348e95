"""From a rank inside a tier to the factor on a positive advantage. Eq. (6)."""

from fractions import Fraction

from grading.scoring.criteria import Rubric
from grading.scoring.ranks import Ranking


def factors(ranking: Ranking, rubric: Rubric) -> dict[str, Fraction]:
    """Give every ranked candidate its factor; a tied group shares one. Eq. (6).

    Args:
        ranking: after revisions, and without confirmed leaks and hacks.
        rubric: whose constants count.
    Returns:
        id -> factor in (0, 1], no unit, exact. Nobody ranked: an empty dict.
    """
    f_runner, f_min, f_max, f_low = map(Fraction, (rubric.f_runner, rubric.f_min, rubric.f_max, rubric.f_low))
    last = max(len(ranking[2]) - 1, 1)  # K2 - 1; with one tied group k is 0 and the step does not matter
    by_tier = {
        1: lambda k: Fraction(1) if k == 0 else f_runner,
        2: lambda k: f_max - (f_max - f_min) * Fraction(k, last),
        3: lambda k: f_low,
    }
    return {id: by_tier[t](k) for t in by_tier for k, tied in enumerate(ranking[t]) for id in tied}
