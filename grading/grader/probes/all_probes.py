"""All probes by their names in the plan of attacks."""

from collections.abc import Callable, Sequence

from grading.grader.probes import fairness, pressure
from grading.grader.probes.gradings import Grade
from grading.grader.probes.measures import Figure
from grading.grader.probes.trials import Trial

Probe = Callable[[Sequence[Trial], Grade], list[Figure]]
NAMES = ("L1", "L2", "L3", "L5", "L6", "L7", "L11")


def probes(*, orders: int, most: int | None, own: str) -> dict[str, Probe]:
    """The probes. `orders` of L1, `most` gradings a group in L3, `own` family of L11."""
    return {
        "L1": lambda trials, grade: fairness.permutation(trials, grade, orders=orders),
        "L2": fairness.identical,
        "L3": lambda trials, grade: pressure.injection(trials, grade, most=most),
        "L5": pressure.padding,
        "L6": fairness.names,
        "L7": pressure.likeness,
        "L11": lambda trials, grade: fairness.own_family(trials, grade, own=own),
    }
