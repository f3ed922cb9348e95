"""The explorer of groups: filters that narrow, orders that sort, one page of rows; a constant number of queries."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from django.db.models import Count, F, QuerySet

from grading.integrity.registry import DETECTORS
from grading.integrity.registry import WORDS as DETECTOR_WORDS
from grading.models import Decision, Grading, Review, Signal, Trajectory, Verdict, VerdictCandidate
from grading.models.groups import BY_INFLUENCE
from grading.review import agreement, decisions, queue
from grading.review.pages import bounded
from grading.review.pages.bounded import BoundedPages, PagesFromBothEnds
from grading.review.pages.lists import teams_to_review
from grading.scoring.criteria import FLAGS
from grading.states import AWAITING_REVIEW, DecisionKind, EndReason, GroupState, Integrity
from grading.storable import storable

PAGE = 50
COMPARED = 1_000  # groups with several reviews, the newest, whose answers are compared
STEPS = re.compile(r"(\d{1,9})(?:\s*[-–]\s*(\d{1,9}))?")
ORDERS = {
    "": ("newest first", (F("pk").desc(),)),
    "oldest": ("oldest first", (F("pk").asc(),)),
    "step": ("lowest step first", (F("step").asc(), F("pk").asc())),
    "-step": ("highest step first", (F("step").desc(), F("pk").desc())),
    "influence": ("most influence first", (BY_INFLUENCE.desc(), F("pk").desc())),
}
SIGNALS = {"any": "any", "strong": "any strong"}
SIGNALS |= {key: key.replace("-", " ") for name in DETECTORS for key in (name, f"{name}-strong")}
Narrow = Callable[[QuerySet, str], QuerySet]


@dataclass(frozen=True)
class Choice:
    """A filter with named values: `narrow` keeps the groups that fit one of them."""

    label: str
    values: Mapping[str, str]
    narrow: Narrow
    none: str = "any"


def _detected(rows: QuerySet, value: str) -> QuerySet:
    detector, _, strong = value.partition("-")
    signals = Signal.objects.standing()
    if strong or detector == "strong":
        signals = signals.filter(is_strong=True)
    if detector not in ("strong", "any"):
        signals = signals.filter(detector=detector)
    return rows.filter(pk__in=signals.values("group"))


def _found(rows: QuerySet, value: str) -> QuerySet:
    confirmed = Trajectory.objects.exclude(integrity="")
    confirmed = confirmed if value == "any" else confirmed.filter(integrity=value)
    return rows.filter(pk__in=confirmed.values("group"))


def _tiered(rows: QuerySet, value: str) -> QuerySet:
    """By the verdict that counts, before a decision by the standing one, unless somebody must not see that yet."""
    bit = {"1": 1, "2": 2, "3": 4, "only1": 1}[value]
    sums = [1] if value == "only1" else [tiers for tiers in range(1, 8) if tiers & bit]
    return rows.filter(tiers__in=sums).exclude(is_blind=True, held=True, state__in=AWAITING_REVIEW)


def _decided(rows: QuerySet, value: str) -> QuerySet:
    return rows.filter(decisions__kind=value, decisions__version=F("version"))


def _judged(rows: QuerySet, value: str) -> QuerySet:
    if value == "corrected":
        return rows.filter(pk__in=Verdict.objects.filter(grader=decisions.PERSON).values("group"))
    if value == "flips":
        return rows.filter(pk__in=Grading.objects.filter(flips__gt=0).values("group"))
    return rows.filter(pk__in=_differing(rows))


def _differing(rows: QuerySet) -> list[int]:
    """Groups whose reviews are all in and differ; before that nobody hears of the others' answers."""
    submitted = Review.objects.filter(state=Review.State.SUBMITTED, answer__isnull=False)
    several = rows.filter(reviews__in=submitted).annotate(many=Count("reviews")).filter(many__gte=2)
    newest = list(several.filter(many__gte=F("reviews_wanted")).order_by("-pk").values_list("pk", flat=True)[:COMPARED])
    said = defaultdict(list)
    for group, answer in submitted.filter(group__in=newest).values_list("group", "answer"):
        said[group].append(answer["ranking"])
    return [pk for pk, answers in said.items() if not all(agreement.is_same(*two) for two in combinations(answers, 2))]


CHOICES: dict[str, Choice] = {
    "state": Choice("state", dict(GroupState.choices), lambda rows, value: rows.filter(state=value)),
    "end": Choice("ended", dict(EndReason.choices), lambda rows, value: rows.filter(end_reason=value)),
    "decision": Choice("decision", dict(DecisionKind.choices), _decided),
    "tier": Choice("tiers", {"1": "has T1", "2": "has T2", "3": "has T3", "only1": "T1 only"}, _tiered),
    "signal": Choice(
        "signal",
        {"any": "any", "strong": "any strong"}
        | {
            f"{name}{more}": f"{name}{words}: {DETECTOR_WORDS[name]}"
            for name in DETECTORS
            for more, words in (("", ""), ("-strong", " strong"))
        },
        _detected,
        "with or without",
    ),
    "finding": Choice("finding", {"any": "confirmed"} | dict(Integrity.choices), _found, "any or none"),
    "people": Choice(
        "judged",
        {"corrected": "corrected by a person", "differ": "reviews differ", "flips": "grader flips"},
        _judged,
        "in any way",
    ),
}  # training_bridge adds regimes, from its sums by group


@dataclass
class Asked:
    """The filters of one address. What cannot be read filters nothing."""

    query: Mapping[str, str]
    values: dict[str, str] = field(default_factory=dict)

    def narrow(self, groups: QuerySet) -> QuerySet:
        rows = groups
        if run := self._text("run"):
            rows = rows.filter(run__public_id=run)
        if steps := STEPS.fullmatch(self._text("step")):
            first, last = int(steps[1]), int(steps[2] or steps[1])
            rows = rows.filter(step=first) if first == last else rows.filter(step__range=(first, last))
        elif self.values["step"]:
            self.values["step"] = ""
        if task := self._text("task"):
            rows = rows.filter(task__key__icontains=task)
        if repository := self._text("repository"):
            rows = rows.filter(task__repository_url__icontains=repository)
        for name, choice in CHOICES.items():
            if (value := self._choice(name)) in choice.values:
                rows = choice.narrow(rows, value)
            else:
                self.values[name] = ""
        return rows

    def _text(self, name: str) -> str:
        self.values[name] = storable(self.query.get(name, "").strip())[:200]
        return self.values[name]

    def _choice(self, name: str) -> str:
        value = self._text(name)
        if name == "people" and self.query.get("corrected") == "1":  # an older link
            value = "corrected"
        self.values[name] = value = value.upper() if name == "signal" and value[:1] == "h" else value
        return value


def groups_page(groups, runs, query: Mapping[str, str], *, user) -> dict:
    """Context of grading/groups.html; `groups` and `runs` are those this user may see."""
    asked, sort = Asked(query), query.get("sort", "")
    sort = sort if sort in ORDERS else ""
    rows = asked.narrow(groups)
    # Their numbers only: what a page skips and sorts is then an index, not rows.
    is_filtered = any(asked.values.values())
    paged = BoundedPages if is_filtered else PagesFromBothEnds
    pages = paged(rows.order_by(*ORDERS[sort][1]).values_list("pk", flat=True), PAGE)
    page = pages.get_page(query.get("page"))
    shown = list(page)  # the page is evaluated once: the template asks for its length
    mine = teams_to_review(user)
    return {
        "page": page,
        "more_than": bounded.COUNTED if is_filtered and pages.is_cut else None,
        "rows": _group_rows(groups, shown),
        "may_withdraw": mine is None or bool(mine),
        "filters": {
            "runs": list(runs.order_by("name")[:500]),
            "choices": [_shown(name, asked.values[name]) for name in CHOICES],
            "orders": [(key, words) for key, (words, _) in ORDERS.items()],
            "sort": sort,
            "is_set": is_filtered,
            "detectors": list(DETECTORS),
            "flags": [(flag, flag.replace("_", " ")) for flag in FLAGS],
            **{name: asked.values[name] for name in ("run", "step", "task", "repository")},
        },
    }


def _shown(name: str, value: str) -> dict:
    choice = CHOICES[name]
    said = {"label": choice.label, "none": choice.none, "values": choice.values.items()}
    return {"name": name, "value": value, **said}


def _group_rows(groups, pks: list[int]) -> list[dict]:
    found = {group.pk: group for group in queue.with_counts(groups.filter(pk__in=pks).select_related("run", "task"))}
    decided = {d.group_id: d for d in Decision.objects.filter(group__in=pks).order_by("version")}
    verdicts = [d.verdict_id for d in decided.values() if d.verdict_id]
    placed = VerdictCandidate.objects.filter(verdict__in=verdicts).values_list("verdict_id", "tier")
    tiers = Counter(placed)
    confirmed = Trajectory.objects.filter(group__in=pks).exclude(integrity="").order_by("letter")
    findings = defaultdict(list)
    for group, letter, integrity in confirmed.values_list("group_id", "letter", "integrity"):
        findings[group].append(f"{integrity} {letter}")
    return [
        {
            "group": group,
            "passed": group.passed,
            "valid": group.valid,
            "findings": findings[group.pk],
            "decision": (decision := decided.get(group.pk)),
            "tiers": [tiers[decision.verdict_id, t] for t in (1, 2, 3)] if decision and decision.verdict_id else None,
        }
        for group in (found[pk] for pk in pks if pk in found)
    ]
