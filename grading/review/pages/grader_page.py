"""The grader page of a run: what gradings cost, what was wrong with them, whether they drift; and each one's row.

Figures are of the newest gradings only: nothing here grows with the run.
"""

import re
from collections import Counter, defaultdict
from statistics import fmean, median, quantiles

from django.db.models import Count, Q

from grading import clock
from grading.models import Grading, Review, Role, Run, Trajectory, VerdictCandidate
from grading.review.pages import bounded
from grading.review.pages.bounded import BoundedPages
from grading.review.pages.group_page import problem_words
from grading.review.refusal_words import with_letters
from grading.review.rounds import Round

NEWEST = 500  # gradings that the figures are of
PAGE = 50
PROBLEM_CHARS = 240
SPANS = 20  # of the newest gradings, for drift
ENDED = (Grading.State.VALID, Grading.State.INVALID, Grading.State.FAILED)
PLACE = re.compile(r"\[\d+\]")
FIGURES = ("state", "duration_s", "cost_usd", "turns", "tool_calls", "input_tokens", "cached_tokens", "output_tokens",
           "retries", "flips", "verdict_id", "group__held", "group__is_blind")  # fmt: skip


def grader_page(run: Run, gradings, user, query: dict) -> dict:
    """Context of grading/grader.html; `gradings` are those this user may see."""
    mine = gradings.filter(group__run=run)
    newest = list(mine.exclude(state=Grading.State.RUNNING).order_by("-pk").values(*FIGURES)[:NEWEST])
    state = query.get("state", "")
    rows = mine.filter(state=state) if state in Grading.State.values else mine
    pages = BoundedPages(rows.select_related("group__task", "group__run").order_by("-pk"), PAGE)
    page = pages.get_page(query.get("page"))
    return {
        "run": run,
        "page": page,
        "more_than": bounded.COUNTED if pages.is_cut else None,
        "rows": _rows(page, user),
        "filters": {"state": state, "states": Grading.State.choices},
        "figures": figures(newest),
        "running": mine.filter(state=Grading.State.RUNNING).count(),
        "reasons": reasons(mine),
        "drift": drift(newest[::-1]),
    }


def figures(newest: list[dict]) -> list[dict]:
    """Each figure with its words; a median beside the value that nine of ten stay under."""
    ended = [row for row in newest if row["state"] in ENDED]
    count = Counter(row["state"] for row in newest)
    costs = [row["cost_usd"] for row in newest if row["cost_usd"] is not None]
    flips = [row["flips"] for row in newest if row["flips"] is not None]
    tokens = sum(row["input_tokens"] for row in newest)
    cached = sum(row["cached_tokens"] for row in newest)
    calls = sum(row["turns"] + row["retries"] + (row["state"] == Grading.State.FAILED) for row in newest)
    return [
        {"name": "gradings", "value": len(newest), "more": f"the newest {NEWEST} at most"},
        {"name": "valid", "share": _share(count["valid"], len(ended)), "more": f"{count['valid']} of {len(ended)}"},
        {"name": "seconds a group", **_middle([row["duration_s"] for row in ended if row["duration_s"] is not None])},
        {"name": "turns a group", **_middle([row["turns"] for row in ended])},
        {"name": "cost a group, $", **_middle(costs), "total": sum(costs) if costs else None},
        {"name": "input from cache", "share": _share(cached, tokens), "more": f"of {tokens:,} tokens"},
        {"name": "calls tried again", "share": _share(sum(row["retries"] for row in newest), calls), "more": ""},
        {"name": "flipped pairs", "share": fmean(flips) if flips else None, "more": f"{len(flips)} in more orders"},
    ]  # fmt: skip


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _middle(values: list[float]) -> dict:
    if not values:
        return {"middle": None, "most": None}
    most = quantiles(values, n=10, method="inclusive")[-1] if len(values) > 1 else values[0]
    return {"middle": median(values), "most": most}


def reasons(gradings) -> list[dict]:
    """Why replies did not count: the kinds of problem of the newest that failed, the most frequent first."""
    failed = gradings.filter(state__in=(Grading.State.INVALID, Grading.State.FAILED, Grading.State.DIED))
    count, example = Counter(), {}
    for pk, problems in failed.order_by("-pk").values_list("pk", "problems")[:NEWEST]:
        kinds = {kind_of(problem) for problem in problems} or {"no reason given"}
        count.update(kinds)
        for kind in kinds:
            example.setdefault(kind, pk)
    return [{"words": kind, "gradings": n, "example": example[kind]} for kind, n in count.most_common(12)]


def kind_of(problem: dict) -> str:
    """A problem without the candidates and places it names, so that the same fault counts as the same."""
    where = PLACE.sub("", problem.get("where") or "")
    if where.startswith("candidates.scores"):
        return "scores missing or out of 1 to 5"
    if where.endswith("citations"):
        return "claims without a citation that resolves"
    kinds = {"candidates": "candidates missing, doubled or invented", "order": "an order against the rules",
             "revisions": "revisions against the rules", "findings": "findings that cite nothing"}  # fmt: skip
    return kinds.get(where.split(".")[0]) or (problem.get("what") or "no reason given")[:120]


def drift(oldest_first: list[dict]) -> list[dict]:
    """Shares over the newest gradings, oldest first, each over an equal span of them."""
    rows = [row for row in oldest_first if row["state"] in ENDED]
    size = -(-len(rows) // SPANS) if rows else 1
    spans = [rows[i : i + size] for i in range(0, len(rows), size)]
    verdicts = [row["verdict_id"] for row in rows if row["verdict_id"] and not is_asked_blind(row)]
    tiers = VerdictCandidate.objects.filter(verdict__in=verdicts).order_by().values("verdict")
    placed = {
        verdict: (first, all_)
        for verdict, first, all_ in tiers.annotate(first=Count("pk", Q(tier=1)), all=Count("pk")).values_list(
            "verdict", "first", "all"
        )
    }
    first = [[placed.get(row["verdict_id"], (0, 0)) for row in span] for span in spans]
    return [
        {"name": "T1 share", "values": [_share(sum(a for a, _ in s), sum(b for _, b in s)) for s in first]},
        {"name": "valid share", "values": [_share(sum(r["state"] == "valid" for r in s), len(s)) for s in spans]},
        {"name": "seconds", "values": [_mean([r["duration_s"] for r in s]) for s in spans]},
        {"name": "turns", "values": [_mean([r["turns"] for r in s]) for s in spans]},
    ]


def is_asked_blind(row: dict) -> bool:
    """Whether somebody may still have to rank the group before they learn anything of its verdict."""
    return bool(row.get("group__held") and row.get("group__is_blind"))


def _mean(values: list) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _rows(page, user) -> list[dict]:
    """Problems name rollouts by their letters, and of a group that this person has yet to rank nothing is said."""
    gradings = list(page)
    letters, hidden = _letters(gradings), _hidden(gradings, user)
    return [_row(grading, letters[grading.group_id], is_hidden=grading.group_id in hidden) for grading in gradings]


def _letters(gradings: list[Grading]) -> dict[int, dict[str, str]]:
    groups = {grading.group_id for grading in gradings if grading.problems}
    found: dict[int, dict[str, str]] = defaultdict(dict)
    rows = Trajectory.objects.filter(group__in=groups).exclude(letter="") if groups else ()
    for row in rows and rows.values_list("group", "external_id", "letter"):
        found[row[0]][row[1]] = row[2]
    return found


def _hidden(gradings: list[Grading], user) -> set[int]:
    asked = {g.group_id: g.group for g in gradings if g.group.held and g.group.is_blind}
    if not asked or not user.may(Role.REVIEWER, next(iter(asked.values())).run.team_id):
        return set()
    reviews = defaultdict(list)
    for row in Review.objects.filter(group__in=asked):
        reviews[row.group_id].append(row)
    return {pk for pk, group in asked.items() if Round(group, reviews[pk], clock.now()).hides_verdict(user)}


def _row(grading: Grading, letters: dict[str, str], *, is_hidden: bool) -> dict:
    shown = {"grading": grading, "group": grading.group, "is_hidden": is_hidden, "is_bad": grading.state in BAD}
    if is_hidden or not grading.problems:
        return shown | {"problem": "hidden until your own order is in" if is_hidden else None}
    more = len(grading.problems) - 1
    words = with_letters(problem_words(grading.problems[0]), letters)[:PROBLEM_CHARS]
    return shown | {"problem": f"{words}{f' and {more} more' if more > 0 else ''}"}


BAD = (Grading.State.INVALID, Grading.State.FAILED, Grading.State.DIED)
