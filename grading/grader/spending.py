"""What a step may still spend on grades: groups, dollars and seconds (step_* of the run's options)."""

from dataclasses import replace

from django.db.models import Count, Q, Sum

from grading.grader.options import GradingOptions
from grading.models import Grading, RolloutGroup

LEAST_COST_USD = 1e-6


class Later(Exception):
    """What runs now may use up the rest of the budget: ask again when it has ended."""


def spent_out(group: RolloutGroup, options: GradingOptions) -> str:
    """Which of the step's budgets is used up, in words; "" while the group may be graded.

    Ask under the claim's lock. A grading that runs counts with all that it may cost, where the run limits that.

    Raises:
        Later: only with what still runs would the money be gone.
    """
    if options.step_groups is options.step_cost_usd is options.step_wall_s is None:
        return ""
    spent = _spent(group)
    if options.step_groups is not None and spent["groups"] >= options.step_groups:
        return f"the step's budget of {options.step_groups} groups is used up"
    if options.step_wall_s is not None and spent["wall_s"] >= options.step_wall_s:
        return f"the step's budget of {options.step_wall_s:g} s of grading is used up"
    if options.step_cost_usd is not None:
        left = options.step_cost_usd - spent["cost_usd"]
        if left <= 0:
            return f"the step's budget of ${options.step_cost_usd:g} is used up"
        if spent["running"] and left <= spent["running"] * (options.max_cost_usd or 0):
            raise Later
    return ""


def bounded(group: RolloutGroup, options: GradingOptions) -> GradingOptions:
    """The options of one grading, with no more money and time than its step has left."""
    if options.step_cost_usd is options.step_wall_s is None:
        return options
    spent = _spent(group)
    if options.step_cost_usd is not None:
        others = max(spent["running"] - 1, 0) * (options.max_cost_usd or 0)  # this one runs, too
        left = max(options.step_cost_usd - spent["cost_usd"] - others, LEAST_COST_USD)
        options = replace(options, max_cost_usd=min(left, options.max_cost_usd or left))
    if options.step_wall_s is not None:
        options = replace(options, max_wall_s=min(options.max_wall_s, max(options.step_wall_s - spent["wall_s"], 1.0)))
    return options


def _spent(group: RolloutGroup) -> dict:
    """What the step's gradings used so far; those that a person asked for are not of the step's budget."""
    step = Grading.objects.filter(group__run=group.run_id, group__step=group.step, asked_by="")
    spent = step.aggregate(
        groups=Count("group", distinct=True, filter=~Q(group=group.pk)),
        cost_usd=Sum("cost_usd", default=0.0),
        wall_s=Sum("duration_s", default=0.0),
        running=Count("pk", filter=Q(state=Grading.State.RUNNING)),
    )
    return spent
