"""What stands between ranking and evidence: the tabs, and the open one's view of two candidates."""

from grading.models import Signal, Trajectory
from grading.review.pages import columns, compare, compare_results
from grading.review.pages.aligned import Aligned
from grading.review.pages.look import Look
from grading.review.pages.sitting import Sitting

Pair = tuple[Trajectory | None, Trajectory | None]


def workbench(sitting: Sitting, pair: Pair, *, tab: str, query: dict, own: list[dict]) -> dict:
    """The context of grading/_workbench.html. `own` are tabs that are there only now and then."""
    left, right = (t.letter if t else "" for t in pair)
    look = Look.of(query, left=left, right=right, tab=tab)
    signals = Signal.objects.filter(trajectory__in=[t.pk for t in pair if t]).order_by("-is_strong", "pk")
    signals, checks = list(signals), columns.checks_of(*pair)
    tabs = [*(one | {"href": look.href(tab=one["key"])} for one in own), *columns.tabs(pair, signals, checks, look)]
    context = {"tab": tab, "tabs": tabs, "look": look, "links": look.links()}
    if tab == "checks":
        shown = tuple(t.letter for t in pair if t)
        sides = [columns.checks_column(sitting, t, signals, checks, shown) for t in pair]
        return context | {"left": sides[0], "right": sides[1]}
    heads = [columns.head(sitting, t) for t in pair]
    context |= {"left": heads[0], "right": heads[1]}
    if tab == "tests":
        return context | {"tests": columns.results(*pair, show_all=query.get("all") == "1")}
    return context if tab == "events" else context | _diffs(sitting, pair, look, heads, checks)


def _diffs(sitting: Sitting, pair: Pair, look: Look, heads: list[dict], checks: list) -> dict:
    """Both patches aligned, or what differs between the two results."""
    for head, trajectory in zip(heads, pair, strict=True):
        if trajectory:
            head.update(compare.patch_words(compare.Side(sitting, trajectory, look)))
            head.update(columns.beside(sitting, trajectory, checks, look))
    if look.tab == "interdiff":
        return compare_results.compared(sitting, pair, look) if all(pair) else {"compared": []}
    return Aligned(sitting, pair, look).whole()
