"""Blind first: an order before any verdict is shown, and how near it stands to the grader's."""

from dataclasses import replace

import pytest
from django.urls import reverse

from grading import bodies
from grading.errors import BadInput, Conflict, NotAllowed, WrongState
from grading.grader import gather, regrade, verdicts
from grading.grader.parse import check
from grading.models import Grading, Review, Role, RolloutGroup, Verdict
from grading.review import blind, decisions, queue, reviews
from grading.review.blind_form import read_order
from grading.review.rounds import Round, Turn
from grading.states import GroupState, Policy
from tests.factories import make_group, make_run, make_user
from tests.verdicts import grade, held_group, reply_for

pytestmark = pytest.mark.django_db
SECRET = "unmistakable words of the grader"
PARTS = ("body", "whole")
EVENTS = [{"kind": "action", "text": "ls"}]


@pytest.fixture
def group():
    """A blind group whose verdict says SECRET wherever a verdict can speak."""
    run = make_run(policy=Policy.MANUAL)
    fields = {"held": True, "is_blind": True, "hold_reason": "policy manual", "events": EVENTS}
    group = make_group(run=run, state=GroupState.GRADED, outcomes="PPPF", **fields)
    reply, material = reply_for(group, {"A": 5, "B": 3, "C": 4}), gather.material_of(group)
    entries = [replace(e, reasons=dict.fromkeys(e.scores, SECRET)) for e in reply.candidates]
    reply = replace(reply, candidates=tuple(entries), notes=SECRET)
    stored = verdicts.store(group, reply, check(reply, material, run.rubric.rubric), material, grader="scripted")
    said = bodies.write_events([{"kind": "message", "text": SECRET}])
    fields = {
        "transcript": said.sha256,
        "event_count": 1,
        "problems": [{"where": "order", "what": SECRET}],
        "flips": 0.77,
    }
    Grading.objects.create(group=group, grader="scripted", state="invalid", verdict=stored, **fields)
    return group


@pytest.fixture
def rita(group):
    return make_user(username="rita", role=Role.REVIEWER, team=group.run.team)


def ids(group) -> dict[str, str]:
    return dict(group.trajectories.values_list("letter", "external_id"))


def give(group, user, *tied: str, **fields) -> Review:
    by_letter = ids(group)
    return blind.give_order(group, user=user, order=[[by_letter[one] for one in letters] for letters in tied], **fields)


def pages_of(group) -> dict[str, str]:
    """Every address that speaks of a group, by name."""
    pk, verdict = group.pk, group.verdicts.last().pk
    found = {
        f"group {tab}": f"{reverse('group', args=[pk])}?tab={tab}" for tab in ("diff", "events", "tests", "checks")
    }
    panels = ("history", "advantage-panel", "group-deliveries", "group-news")
    found |= {name: reverse(name, args=[pk]) for name in panels}
    found |= {"trajectory": reverse("trajectory", args=[pk, "B"]), "file": reverse("group-file", args=[pk, "B", 0])}
    found |= {"event": reverse("event", args=[pk, "B", 0]), "verdict": reverse("verdict", args=[pk, verdict])}
    found["group-news"] += "?verdict=0&version=0&claim=&in=0"
    told, run = group.gradings.first(), group.run.public_id
    found |= {"grading": reverse("grading", args=[told.pk]), "grader": reverse("grader", args=[run])}
    found |= {f"grading {part}": f"{found['grading']}events/0?part={part}" for part in PARTS}
    found |= {name: reverse(name, args=[run]) for name in ("run-reviews", "monitor")}
    return found | {name: reverse(name) for name in ("queue", "groups", "runs")}


@pytest.mark.parametrize("is_graded_again", [False, True])
def test_no_address_shows_the_verdict_before_the_order_is_in(client, group, rita, is_graded_again):
    if is_graded_again:  # what was hidden before somebody asked for another grading stays hidden
        regrade.ask(group, by=rita)
        group.refresh_from_db()
        assert group.state == GroupState.GRADING
    client.force_login(rita)
    for name, address in pages_of(group).items():
        answer = client.get(address, follow=True)
        said = answer.content.decode()
        refused = name in ("verdict", "advantage-panel") or name.startswith("grading")
        assert answer.status_code == (403 if refused else 200), name
        assert SECRET not in said and "score-A-" not in said and "is-cited" not in said, name
        assert "candidate-factor" not in said and "evidence-item" not in said, name
    for post in ("group-draft", "advantage-panel"):
        fields = {"verdict": group.verdicts.last().pk, "score-A-minimality": "2"}
        said = client.post(reverse(post, args=[group.pk]), fields).content.decode()
        assert SECRET not in said and "candidate-factor" not in said and "sum-check" not in said, post
    said = client.get(pages_of(group)["grader"]).content.decode()
    assert "hidden until your own order is in" in said
    assert '<td class="num strong">' not in client.get(reverse("queue")).content.decode()


def test_once_the_order_is_in_the_verdict_is_shown_to_that_person_only(client, group, rita):
    give(group, rita, "B", "A", "C")
    client.force_login(rita)
    assert SECRET in client.get(reverse("group", args=[group.pk])).content.decode()
    client.force_login(make_user(role=Role.REVIEWER, team=group.run.team))
    assert SECRET not in client.get(reverse("group", args=[group.pk])).content.decode()
    client.force_login(make_user(role=Role.VIEWER, team=group.run.team))  # nobody asks a viewer
    assert SECRET in client.get(reverse("group", args=[group.pk])).content.decode()


def test_nothing_is_decided_before_the_order_is_in(group, rita):
    seen = group.verdicts.last().pk
    for step in (
        lambda: reviews.approve(group, seen_verdict=seen, user=rita),
        lambda: reviews.fall_back(group, user=rita, reason="x"),
        lambda: reviews.correct(group, parent=seen, user=rita, reason="x", scores={}, flags={}),
    ):
        with pytest.raises(WrongState, match="your own order first"):
            step()
    give(group, rita, "BA", "C")
    assert reviews.approve(group, seen_verdict=seen, user=rita).verdict_id == seen
    review = Review.objects.get()
    assert (review.state, review.is_blind, review.seen_verdict_id) == ("submitted", True, seen)


def test_an_order_is_kept_as_it_was_given_with_ties_flags_and_tiers(group, rita):
    a, b, c = (ids(group)[letter] for letter in "ABC")
    give(group, rita, "BA", "C", flags={c: ["unrequested_rewrite"]}, tiers={c: 3}, notes="close", attention_s=3)
    review = Review.objects.get()
    kept = {"order": [[b, a], [c]], "flags": {c: ["unrequested_rewrite"]}, "tiers": {c: 3}, "notes": "close"}
    assert review.blind == kept and review.answer is None and review.ranked_at
    assert Verdict.objects.count() == 1  # no verdict is made of it: it has no scores
    with pytest.raises(Conflict, match="in already"):
        give(group, rita, "A", "B", "C")


@pytest.mark.parametrize("order", [["A", "B"], ["A", "B", "CC"], ["A", "B", "CD"]])
def test_an_order_places_every_passing_candidate_once(group, rita, order):
    with pytest.raises(BadInput, match="every passing candidate once"):
        give(group, rita, *order)


def test_a_group_that_is_not_blind_asks_for_no_order(rita):
    group = held_group(outcomes="PPF")
    with pytest.raises(WrongState, match="asks for no order"):
        give(group, rita, "A", "B")
    blind.refuse_hidden(group, rita)


def test_somebody_elses_claim_stops_an_order_too(group, rita):
    queue.claim(group, user=make_user(role=Role.REVIEWER, team=group.run.team))
    with pytest.raises(Conflict, match="holds group"):
        give(group, rita, "A", "B", "C")


def test_a_blind_group_with_two_seats_asks_for_an_order_then_an_answer(group, rita):
    RolloutGroup.objects.filter(pk=group.pk).update(reviews_wanted=2)
    group.refresh_from_db()
    bob = make_user(username="bob", role=Role.REVIEWER, team=group.run.team)
    seen = group.verdicts.last().pk
    for user in (rita, bob):
        assert Round.of(group).turn(user) == Turn.BLIND
        give(group, user, "A", "B", "C")
        assert Round.of(group).turn(user) == Turn.REVIEW
        reviews.submit(group, parent=seen, user=user, reason="", scores={}, flags={}, is_right=True)
    assert Round.of(group).turn(bob) == Turn.AGREED
    assert all(row.blind and row.answer for row in Review.objects.all())


def test_a_decision_ends_the_hiding(group, rita):
    with pytest.raises(NotAllowed):
        blind.refuse_hidden(group, rita)
    decisions.by_policy(group, decisions.graders_verdict(group), by=decisions.BY_DEADLINE)
    group.refresh_from_db()
    blind.refuse_hidden(group, rita)


def test_the_share_of_the_run_is_drawn_and_kept_with_its_probability(monkeypatch):
    monkeypatch.setattr(decisions, "draw", lambda: 0.3)
    for share, expected in ((0.25, False), (0.5, True)):
        group = make_group(run=make_run(policy="manual", blind_share=share), state="complete", outcomes="PPF")
        grade(group)
        assert (group.held, group.is_blind, group.blind_probability) == (True, expected, share)


def test_a_form_that_nobody_touched_is_no_order():
    posted = read_order({"place-A": [""], "place-B": [""]}, ["A", "B"])
    assert posted.errors == ("Not placed yet: A, B",)


def test_a_form_is_read_with_ties_and_what_is_no_place_is_said():
    fields = {
        "place-A": ["2"],
        "place-B": [" 1 "],
        "place-C": ["2"],
        "flag-C": ["unrequested_rewrite", "x"],
        "tier-C": ["3"],
    }
    posted = read_order(fields, ["A", "B", "C"])
    assert (posted.order, posted.errors) == ([["B"], ["A", "C"]], ())
    assert posted.flags == {"C": ("unrequested_rewrite",)} and posted.tiers == {"C": 3}
    for text in ("0", "100", "1.5", "٣", "-1"):
        assert read_order({"place-A": [text]}, ["A"]).errors == (
            f"A: {text!r} is no place, expected a whole number from 1 to 99",
        )


def test_a_form_without_all_places_comes_back_as_typed(client, group, rita):
    client.force_login(rita)
    answer = client.post(reverse("group-order", args=[group.pk]), {"place-A": "2", "place-B": "1", "notes": "so far"})
    said = answer.content.decode()
    assert answer.status_code == 400 and "Not placed yet: C" in said and SECRET not in said
    assert 'name="place-A" form="blind-order" value="2"' in said and "so far" in said
    fields = {"place-A": "2", "place-B": "1", "place-C": "1", "attention_s": "4"}
    assert client.post(reverse("group-order", args=[group.pk]), fields).status_code == 302
    assert Review.objects.get().blind["order"][-1] == [ids(group)["A"]]


def test_anchoring_compares_orders_with_the_verdict_that_was_seen(group, rita):
    # The grader: A > C > B. Blind B > A > C: AB and BC opposite, AC alike: tau-b (1 - 2) / 3.
    give(group, rita, "B", "A", "C")
    reviews.approve(group, seen_verdict=group.verdicts.last().pk, user=rita)
    shown = held_group(run=group.run, outcomes="PPF")
    reviews.approve(shown, seen_verdict=shown.verdicts.last().pk, user=rita)
    blind_row, then, from_start = blind.anchoring(group.run)
    assert blind_row["tau_b"] == pytest.approx(-1 / 3) and blind_row["accuracy"] == pytest.approx(1 / 3)
    assert (blind_row["tau_n"], then["tau_b"], then["tau_n"]) == (1, 1.0, 1)
    assert (from_start["reviews"], from_start["tau_b"]) == (1, None)  # one tie: no pair is ordered
