"""The drift page: anchors and their rounds, version against version, and what a grader does lately against before."""

from collections.abc import Mapping
from urllib.parse import quote

from django.db.models import Count, Q

from grading.calibration import anchors, answers, drift, graded, watching
from grading.calibration.anytime import BASELINE, LEVEL, Watched
from grading.calibration.drawn import visible_groups
from grading.calibration.pages.behind import behind
from grading.calibration.pages.people import people_scope
from grading.models import Anchor, AnchorRound, Grading, Role

ROUNDS = 20
LISTED = 100
WORDS = {
    "tier shares": ("T1 share", "χ² and PSI over all three tiers"),
    "W": ("mean W", "Kolmogorov-Smirnov over the whole distribution"),
    "fallback": ("fallbacks", "grader failures and missed deadlines"),
    "cap": ("cap binds", "groups with pass-or-fail rewards"),
    "ties": ("tied candidates", "of all ranked ones"),
    "corrections": ("corrected by a person", "of the groups that a person saw"),
    "seconds": ("seconds a group", "mean"),
    "tokens": ("tokens a group", "mean, in and out"),
}
SHARES = {"tier shares", "fallback", "cap", "ties", "corrections"}
OF = {"tier shares": "candidates", "W": "candidates", "ties": "candidates"}
TIMES = {"before": "before", "now": "now"}
WATCH = "watched-"
WATCHED = {
    "agreement": ("agreement with blind orders", "pairs alike in a group's first blind order, a tie half"),
    "corrections": ("corrected by a person", "first decision of each group that a person decided"),
    "fallback": ("fallbacks", "grader failures and missed deadlines, all groups"),
}
ANCHORED = {  # figure of two versions -> words, how it is shown, whether the highest is the worst
    "tau_b": ("τ-b to the last version", "number", False),
    "moved": ("pairs turned round", "share", True),
    "tiers": ("candidates in another tier", "share", True),
    "gain": ("accuracy gained", "points", False),
}


def drift_page(user, query: Mapping[str, str]) -> dict:
    """Context of grading/calibration_drift.html. Anchors are the team's; a round asks one run's grader."""
    context = people_scope(user, query)
    team = context["team"] or (context["run"].team if context["run"] else None)
    scope = {"run": context["run"], "team": context["team"]}
    groups = visible_groups(user, **scope)
    rows = graded.newest(groups, context["graders"])
    stream = graded.shifts_of(rows)
    streams = watching.streams_of(groups, answers.reviews_of(user, **scope), context["graders"])
    watched = watching.watched_of(streams)
    rounds = _rounds(team)
    chosen = _chosen(rounds, query)
    anchored = graded.anchored(chosen["round"]) if chosen else []
    found = drift.versions(anchored) if chosen else None
    steady = {one.group: drift.steadiness(one) for one in anchored}
    return context | {
        "anchor_team": team,
        "may_admin": bool(team) and user.may(Role.ADMIN, team.pk),
        "anchors": [{"anchor": one, "steady": steady.get(one.group_id)} for one in _listed(team)],
        "anchor_count": anchors.of_team(team).count() if team else 0,
        "wanted": anchors.WANTED,
        "rounds": rounds,
        "chosen": chosen,
        "chosen_round": str(chosen["round"].pk) if chosen else "",
        "last": graded.before(chosen["round"]) if chosen else None,
        "versions": found,
        "stream": [_line(one) for one in stream],
        "watched": [_watched_line(name, one) for name, one in watched.items()],
        "level": LEVEL,
        "baseline": BASELINE,
        "groups": len(rows),
        "chosen_groups": _behind(user, rows, streams, query) or _behind_anchors(user, anchored, query),
        "alarms": drift.alarms(found, stream, list(watched.items())),
        "why_no_round": anchors.why_no_round(context["run"]) if context["run"] else "",
        "due": anchors.why_due(context["run"]) if context["run"] else "",
    }


def _behind(user, rows: list[graded.Graded], streams, query: Mapping[str, str]) -> dict | None:
    """The groups behind a figure of the stream, the highest first, or of what is watched, the worst first."""
    figure, time = query.get("figure", ""), query.get("time", "")
    if time not in TIMES:
        return None
    if figure in WORDS:
        adds = graded.behind_shift(rows, figure, now=time == "now")
        shown, words = "share" if figure in SHARES else "number", f"{WORDS[figure][0]}, {TIMES[time]}"
        return behind(user, adds, query, words=words, highest=True, shown=shown)
    if figure.removeprefix(WATCH) in streams and figure.startswith(WATCH):
        name = figure.removeprefix(WATCH)
        values = list(streams[name].items())
        part = values[BASELINE:] if time == "now" else values[:BASELINE]
        words = f"{WATCHED[name][0]}, {'since the baseline' if time == 'now' else 'the baseline'}"
        adds = {group: (value, 1) for group, value in part}
        return behind(user, adds, query, words=words, highest=watching.WORSE[name] > 0, shown="share")
    return None


def _behind_anchors(user, anchored: list[drift.Anchored], query: Mapping[str, str]) -> dict | None:
    """The anchors behind a figure of two versions, those that moved most first."""
    figure = query.get("figure", "")
    if figure not in ANCHORED:
        return None
    title, shown, highest = ANCHORED[figure]
    return behind(user, drift.by_anchor(anchored, figure), query, words=title, highest=highest, shown=shown)


def _listed(team) -> list[Anchor]:
    if team is None:
        return []
    return list(anchors.of_team(team).select_related("group__task", "group__run", "chosen_by")[:LISTED])


def _rounds(team) -> list[dict]:
    if team is None:
        return []
    ended = ~Q(gradings__state=Grading.State.RUNNING)
    counts = {"asked": Count("gradings"), "ended": Count("gradings", ended),
              "valid": Count("gradings", Q(gradings__state=Grading.State.VALID))}  # fmt: skip
    rows = AnchorRound.objects.filter(run__team=team).select_related("run").annotate(**counts)
    return [{"round": row, "is_done": row.asked == row.ended} for row in rows.order_by("-pk")[:ROUNDS]]


def _chosen(rounds: list[dict], query: Mapping[str, str]) -> dict | None:
    """The round asked for, else the newest with a verdict."""
    asked = next((row for row in rounds if str(row["round"].pk) == query.get("round", "")), None)
    return asked or next((row for row in rounds if row["round"].valid), None)


def _line(one: drift.Shift) -> dict:
    title, words = WORDS[one.name]
    shown, of = "share" if one.name in SHARES else "number", OF.get(one.name, "groups")
    return {"shift": one, "title": title, "words": words, "shown": shown, "of": of, "address": quote(one.name)}


def _watched_line(name: str, one: Watched) -> dict:
    title, words = WATCHED[name]
    return {"name": name, "title": title, "words": words, "found": one, "of": "groups"}
