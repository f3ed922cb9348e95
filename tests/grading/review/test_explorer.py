"""The explorer of groups: each filter keeps what fits it and nothing else; orders; what must not be told."""

import pytest
from django.urls import reverse

from grading.models import Grading, Review, Role, Signal
from grading.review import decisions
from grading.review.pages import bounded
from grading.states import GroupState
from tests.factories import make_group, make_life, make_run, make_task, make_user
from tests.training_bridge.monitor.rows import deliver_group
from tests.verdicts import add_verdict, held_group

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return make_run(policy="manual", public_id="flash-code")


@pytest.fixture
def admin(run, client):
    user = make_user(username="ada", role=Role.ADMIN, team=run.team)
    client.force_login(user)
    return user


def found(client, query: str) -> list[str]:
    answer = client.get(f"{reverse('groups')}?{query}")
    assert answer.status_code == 200
    return [row["group"].key for row in answer.context["rows"]]


def review_of(group, ranking: dict, *, user=None) -> Review:
    user = user or make_user(role=Role.REVIEWER, team=group.run.team)
    fields = {"state": Review.State.SUBMITTED, "answer": {"reply": {}, "ranking": ranking, "is_changed": False}}
    return Review.objects.create(group=group, reviewer=user, **fields)


def test_steps_task_and_repository_narrow(client, admin, run):
    task = make_task(team=run.team, key="astro-1", repository_url="https://git.example/astro.git")
    for step in (3, 7, 12):
        make_group(run=run, outcomes="PF", key=f"at-{step}", step=step, task=task)
    make_group(run=run, outcomes="PF", key="other", step=7)
    assert found(client, "step=7") == ["other", "at-7"]
    assert found(client, "step=3-7&task=astro") == ["at-7", "at-3"]
    assert found(client, "repository=astro.git") == ["at-12", "at-7", "at-3"]
    assert len(found(client, "step=x&state=nope&sort=nope&tier=9")) == 4


def test_states_ends_and_decisions_narrow(client, admin, run):
    make_group(run=run, state=GroupState.DECIDED, outcomes="PP", key="all", end_reason="filtered_all_passed")
    group = held_group(run=run, outcomes="PF", key="decided")
    group.decisions.create(version=1, kind="verdict", by="ada")
    group.decisions.create(version=2, kind="fallback", by="ada")
    type(group).objects.filter(pk=group.pk).update(version=2)
    assert found(client, "end=filtered_all_passed") == ["all"]
    assert found(client, "state=graded") == ["decided"]
    assert found(client, "decision=fallback") == ["decided"]
    assert found(client, "decision=verdict") == []  # an older decision does not count


def test_tiers_are_of_the_standing_verdict(client, admin, run):
    mixed, plain = held_group(run=run, outcomes="PPF", key="mixed"), held_group(run=run, outcomes="PP", key="plain")
    first = add_verdict(mixed, {"A": 5, "B": 1}, parent=mixed.verdicts.first())
    add_verdict(plain, {"A": 5, "B": 5}, parent=plain.verdicts.first())
    assert found(client, "tier=3") == ["mixed"]
    assert found(client, "tier=only1") == ["plain"]
    add_verdict(mixed, {"A": 5, "B": 5}, parent=first, grader="person", author=admin)
    assert found(client, "tier=3") == [] and found(client, "people=corrected") == ["mixed"]
    assert found(client, "corrected=1") == ["mixed"]


def test_tiers_of_what_was_delivered_are_those_of_the_delivery(client, admin, run):
    make_life(run=run)
    mixed = deliver_group(run, step=4, scores={"A": 5, "B": 1}, key="mixed")
    plain = deliver_group(run, step=4, scores={"A": 5, "B": 5}, key="plain")
    assert (mixed.payout.tier_3, plain.payout.tier_3) == (1, 0)
    assert found(client, "tier=3") == ["mixed"] and found(client, "tier=only1") == ["plain"]
    assert found(client, "tier=1") == ["plain", "mixed"]


def test_a_tier_is_not_told_while_the_verdict_is_hidden(client, admin, run):
    group = held_group(run=run, outcomes="PPF", key="blind", is_blind=True)
    add_verdict(group, {"A": 5, "B": 1}, parent=group.verdicts.first())
    assert found(client, "tier=3") == []


def test_signals_narrow_by_detector_and_strength(client, admin, run):
    weak, strong = (held_group(run=run, outcomes="PF", key=key) for key in ("weak", "strong"))
    Signal.objects.create(trajectory=weak.trajectories.first(), detector="H1", is_strong=False, words="x")
    Signal.objects.create(trajectory=strong.trajectories.first(), detector="H17", is_strong=True, words="x")
    assert found(client, "signal=H1") == ["weak"] and found(client, "signal=h1") == ["weak"]
    assert found(client, "signal=H1-strong") == [] and found(client, "signal=H17-strong") == ["strong"]
    assert found(client, "signal=strong") == ["strong"] and len(found(client, "signal=any")) == 2


def test_reviews_that_differ_are_found_once_they_are_in(client, admin, run):
    groups = [held_group(run=run, outcomes="PPF", key=key, reviews_wanted=2) for key in ("differ", "agree", "open")]
    one, other = {"T1": [["a"], ["b"]]}, {"T1": [["a", "b"]]}
    for group, second in zip(groups, (other, one, None), strict=True):
        review_of(group, one)
        if second:
            review_of(group, second)
    assert found(client, "people=differ") == ["differ"]


def test_flips_of_the_grader_are_found(client, admin, run):
    for key, flips in (("flips", 0.25), ("firm", 0.0), ("once", None)):
        Grading.objects.create(group=held_group(run=run, outcomes="PF", key=key), grader="agentic", flips=flips)
    assert found(client, "people=flips") == ["flips"]


def test_the_regime_of_the_newest_delivery_is_a_filter_of_the_bridge(client, admin, run):
    make_life(run=run)
    group = deliver_group(run, step=4, scores={"A": 5, "B": 3})
    regime = group.payout.regime
    assert found(client, f"regime={regime}") == [group.key]
    assert found(client, "regime=excluded") == []


def test_orders_sort(client, admin, run):
    for step, influence in ((5, 0.5), (9, None), (1, 2.0)):
        make_group(run=run, outcomes="PF", key=f"at-{step}", step=step, influence=influence)
    assert found(client, "") == ["at-1", "at-9", "at-5"]
    assert found(client, "sort=oldest") == ["at-5", "at-9", "at-1"]
    assert found(client, "sort=-step") == ["at-9", "at-5", "at-1"]
    assert found(client, "sort=influence") == ["at-1", "at-5", "at-9"]


def test_every_filter_at_once_costs_as_many_queries_for_one_row_as_for_many(
    client, admin, run, django_assert_max_num_queries
):
    for n in range(6):
        held_group(run=run, outcomes="PPF", step=n)
    with django_assert_max_num_queries(14):
        assert len(found(client, "state=graded&people=&tier=2&step=0-9&sort=influence")) in (0, 6)


def test_a_filters_count_stops_and_says_so(client, admin, run, monkeypatch):
    monkeypatch.setattr(bounded, "COUNTED", 2)
    for n in range(4):
        make_group(run=run, outcomes="PF", step=1, key=f"g{n}")
    assert "more than 2 groups fit" in client.get(f"{reverse('groups')}?step=1").content.decode()
    assert "4 groups" in client.get(reverse("groups")).content.decode()


def test_groups_of_other_teams_fit_no_filter(client, admin):
    held_group(outcomes="PF", key="theirs", step=3)
    for query in ("", "step=3", "state=graded", "sort=influence"):
        assert found(client, query) == []


def test_what_is_decided_has_the_tiers_of_the_verdict_that_counts(client, admin, run):
    group = held_group(run=run, outcomes="PPF", key="mixed")
    verdict = add_verdict(group, {"A": 5, "B": 1}, parent=group.verdicts.first())
    group.refresh_from_db()
    assert (verdict.tiers, group.tiers) == (1 + 4, 1 + 4)
    decisions.approve(group, seen_verdict=verdict.pk, user=admin)
    add_verdict(group, {"A": 5, "B": 5}, parent=verdict, grader="person", author=admin)  # saved, and decides nothing
    assert found(client, "tier=3") == ["mixed"]
    group.refresh_from_db()
    decisions.fall_back(group, user=admin, reason="neither is right")
    assert found(client, "tier=3") == [] == found(client, "tier=1")


def test_a_hint_that_was_ruled_wrong_is_found_no_more(client, admin, run):
    group = held_group(run=run, outcomes="PF", key="hinted")
    Signal.objects.create(
        trajectory=group.trajectories.first(), detector="H1", is_strong=True, words="x", is_wrong=True
    )
    assert found(client, "signal=any") == [] == found(client, "signal=H1-strong")
