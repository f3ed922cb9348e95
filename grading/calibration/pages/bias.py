"""The bias panel: what the grader's rankings go along with that has nothing to do with quality."""

from collections.abc import Mapping
from operator import attrgetter

from grading.calibration import bias
from grading.calibration.drawn import visible_groups
from grading.calibration.judged import judged_of
from grading.calibration.pages.behind import behind
from grading.calibration.pages.people import people_scope
from grading.models import Grading

NO_ORDER = "no grading kept one order of presentation: the static grader has none"
NO_PEOPLE = "people ordered no group whose facts differ"
EQUAL = "no group whose candidates differ in it"
FIGURES = {
    "flips": "Order flips",
    "place": "Place in the prompt",
    "patch": "Length of the patch",
    "events": "Length of the trajectory",
    "family": "Its own family",
}
SHARES = {"flips": "share", "family": "share"}
PLACE, PATCH, EVENTS = (attrgetter(name) for name in ("presented", "patch", "events"))
ROWS = {  # figure -> side -> what each group adds
    "flips": {"found": bias.flip_rows},
    "place": {"found": lambda judged: bias.leaning_rows(judged, PLACE)},
    "patch": {
        "found": lambda judged: bias.leaning_rows(judged, PATCH),
        "beside": lambda judged: bias.beside_people_rows(judged, PATCH),
    },
    "events": {
        "found": lambda judged: bias.leaning_rows(judged, EVENTS),
        "beside": lambda judged: bias.beside_people_rows(judged, EVENTS),
    },
    "family": {"found": bias.own_kind_rows, "beside": bias.own_kind_beside_people_rows},
}


def bias_page(user, query: Mapping[str, str]) -> dict:
    """Context of grading/calibration_bias.html."""
    context = people_scope(user, query)
    judged = judged_of(visible_groups(user, run=context["run"], team=context["team"]), context["graders"])
    return context | {
        "panels": panels(judged),
        "groups": len(judged),
        "flipped": _flipped(user, judged),
        "chosen": _chosen(user, judged, query),
    }


def _chosen(user, judged: list[bias.Judged], query: Mapping[str, str]) -> dict | None:
    """The groups behind a figure of the page, the highest first."""
    figure, side = query.get("figure", ""), query.get("side", "")
    if figure not in ROWS or side not in ROWS[figure]:
        return None
    title, words = FIGURES[figure], {"found": "the grader", "beside": "the grader less people"}[side]
    shown = {"found": SHARES.get(figure, "signed"), "beside": "points" if figure in SHARES else "signed"}[side]
    adds = bias.values_of(ROWS[figure][side](judged))
    return behind(user, adds, query, words=f"{title}, {words}", highest=True, shown=shown)


def panels(judged: list[bias.Judged]) -> list[dict]:
    """Each suspicion with its figure, and the same less what people do."""
    made = [
        {"name": "flips", "of": "groups", "neutral": "0 %",
         "words": "share of pairs that change sides when the same group is shown in another order",
         "found": bias.flips(judged), "beside": None},
        {"name": "place", "of": "groups", "neutral": "0",
         "words": "τ-b of rank with place: above 0 what is shown first is ranked first; the order is drawn at random",
         "found": bias.leaning(judged, PLACE, NO_ORDER), "beside": None},
        {"name": "patch", "of": "groups", "neutral": "0, less people",
         "words": "τ-b of rank with bytes: above 0 longer patches come first; minimality is a reason against them",
         "found": bias.leaning(judged, PATCH, EQUAL), "beside": bias.beside_people(judged, PATCH, NO_PEOPLE)},
        {"name": "events", "of": "groups", "neutral": "0, less people",
         "words": "τ-b of rank with the number of events",
         "found": bias.leaning(judged, EVENTS, EQUAL), "beside": bias.beside_people(judged, EVENTS, NO_PEOPLE)},
        {"name": "family", "of": "pairs", "neutral": "50 %, and 0 less people",
         "words": "how often a candidate of the grader's own family is put before one of another family",
         "found": bias.own_kind(judged), "beside": bias.own_kind_beside_people(judged), "beside_shown": "points"},
    ]  # fmt: skip
    return [one | {"title": FIGURES[one["name"]], "shown": SHARES.get(one["name"], "signed")} for one in made]


def _flipped(user, judged: list[bias.Judged]) -> list[Grading]:
    """The gradings with the most flips, to look at."""
    most = sorted((one for one in judged if one.flips), key=lambda one: -one.flips)[:20]
    rows = Grading.objects.visible_to(user).filter(group__in=[one.group for one in most], flips__gt=0)
    return list(rows.select_related("group__task", "group__run").order_by("-flips")[:20])
