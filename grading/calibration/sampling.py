"""Which graded groups a person is asked about: a coin for each on arrival, its bias stored. Core.

Poisson sampling: every group has its own probability, never 0, so whatever was drawn can speak for all.
"""

from math import expm1, log1p

EVEN = 0.5  # of the sample regardless of influence x uncertainty: the dull groups, too, must be known
MOST = 4.0  # times the usual priority: one wild group does not take the sample


def hold_probability(share: float, priority: float, usual: float | None) -> float:
    """The chance that a person sees a group: p = 1 - (1 - share)^m, m = 1/2 + 1/2 min(priority / usual, 4).

    Args:
        share: of groups that people can see, 0 to 1: about the mean of p.
        priority: influence x uncertainty of this group, >= 0, in passes.
        usual: the mean priority of the groups before it, same unit; None or 0 where there is none.
    Returns:
        p, 0 to 1; 0 only where share is 0, 1 where share is 1, `share` itself without a usual priority.
    Raises:
        ValueError: a share outside 0 to 1, or a negative priority.
    """
    if not 0 <= share <= 1 or priority < 0:
        raise ValueError(f"share {share} and priority {priority}: expected 0 to 1, and not below 0")
    if share in (0, 1) or not usual:
        return share
    weight = EVEN + (1 - EVEN) * min(priority / usual, MOST)
    return -expm1(weight * log1p(-share))
