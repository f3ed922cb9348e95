"""Groups as their grader ranked them, with what might sway it: order of presentation, lengths, families of models."""

from collections import defaultdict

from grading.calibration.answers import compared, said_of
from grading.calibration.bias import Judged, family_of
from grading.calibration.identity import BY, EVERYBODY, Choice, Identity
from grading.models import Grading, Review, Trajectory, Verdict
from grading.review.decisions import PERSON
from grading.states import ENDED, Purpose

NEWEST = 2000  # groups
NAMES = ("model", "model_name", "policy_model")  # of a rollout's extra fields


def judged_of(groups, by: Choice = EVERYBODY) -> list[Judged]:
    """The newest decided groups among `groups` whose last valid verdict of a grader is one of these graders'."""
    seen = groups.filter(state__in=ENDED, verdicts__purpose=Purpose.TRAINING, verdicts__is_valid=True)
    pks = list(seen.order_by("-pk").values_list("pk", flat=True).distinct()[:NEWEST])
    verdicts = Verdict.objects.filter(group__in=pks, purpose=Purpose.TRAINING, is_valid=True).exclude(grader=PERSON)
    newest = {group: row for group, *row in verdicts.order_by("pk").values_list("group", "pk", "ranking", *BY)}
    ranked = {group: row[:2] for group, row in newest.items() if by.takes(Identity.of(*row[2:]))}
    gradings = {g.verdict_id: g for g in Grading.objects.filter(verdict__in=[pk for pk, _ in ranked.values()])}
    facts, people = _facts(pks), _people(pks)
    return [
        _judged(group, said_of(ranking, {}), gradings.get(pk), facts[group], people.get(group))
        for group, (pk, ranking) in ranked.items()
    ]


def _judged(group: int, said, grading: Grading | None, facts: dict, people) -> Judged:
    order = grading.order if grading else []
    in_one_order = bool(order) and all(isinstance(letter, str) for letter in order)
    place = {letter: n for n, letter in enumerate(order)} if in_one_order else {}
    return Judged(
        group=group, grader=said, people=people,
        presented={id: -place[letter] for id, letter in facts["letter"].items() if letter in place},
        patch=facts["patch"], events=facts["events"], families=facts["family"],
        grader_family=family_of(grading.model) if grading else "", flips=grading.flips if grading else None,
    )  # fmt: skip


def _facts(pks: list[int]) -> dict[int, dict[str, dict]]:
    found: dict[int, dict[str, dict]] = defaultdict(lambda: {"letter": {}, "patch": {}, "events": {}, "family": {}})
    rows = Trajectory.objects.filter(group__in=pks, is_late=False).order_by()
    fields = ("group", "external_id", "letter", "patch_bytes", "event_count", "extra")
    for group, id, letter, patch, events, extra in rows.values_list(*fields):
        facts = found[group]
        facts["letter"][id], facts["patch"][id] = letter, patch
        if events is not None:
            facts["events"][id] = events
        name = next((extra[key] for key in NAMES if isinstance(extra.get(key), str)), "") if extra else ""
        if family := family_of(name):
            facts["family"][id] = family
    return found


def _people(pks: list[int]) -> dict:
    """One person's order for each group, blind where there is one."""
    found = compared(Review.objects.filter(group__in=pks))
    return {one.group: one.person for kind in ("grader_shown", "grader_blind") for one in found[kind]}
