"""Gradings by a model over real HTTP: their rows, budgets, orders, who is next, and what ends them."""

import os
import random
import time
from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.db import connections

from grading import bodies, clock
from grading.grader import claims, crew, job, retries
from grading.grader.pauses import FAILURES, FIRST_S, LONGEST_S, Pauses
from grading.grader.record import Answer
from grading.models import Grading, RolloutGroup, RubricVersion
from grading.review import deadlines, decisions
from grading.states import DecisionKind, GroupState, Policy
from tests.conftest import wait_for
from tests.factories import FLASH, PATCH, flash, make_group, make_run
from tests.grading.grader.test_job import TEST_GONE, expire, kinds
from tests.model_scripts import SCRIPTS, ranked_by
from tests.model_server import ModelServer
from tests.verdicts import reply_for

pytestmark = pytest.mark.django_db
State = Grading.State


@pytest.fixture
def server(settings, monkeypatch):
    monkeypatch.setattr(retries, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(claims, "pauses", Pauses())
    with ModelServer("good") as one:
        settings.GAGAR_GRADER_URL, settings.GAGAR_GRADER_MODEL = one.url, "openai:scripted"
        settings.GAGAR_GRADER_KEY = ""
        yield one


def waiting(outcomes="PPF", *, grader="single_pass", run=None, options=None, policy=Policy.AUTO, **fields):
    run = run or make_run(policy=policy, grader=grader, grading=options or {})
    return make_group(run=run, state=GroupState.COMPLETE, outcomes=outcomes, **fields)


def first_in_prompt(asked, letter):
    return -asked.letters.index(letter)


# ---- rows ----


def test_a_grading_is_a_row_with_what_it_said_cost_and_took(server):
    group = waiting()
    assert job.drain() == 1
    row = group.gradings.get()
    assert (row.state, row.grader, row.model, row.attempt) == (State.VALID, "single_pass", "openai:scripted", 1)
    assert row.verdict == group.verdicts.get() and row.fencing == row.verdict.fencing == 1
    assert (row.turns, row.input_tokens, row.output_tokens, row.problems) == (1, 1000, 100, [])
    assert row.endpoint == server.root.removeprefix("http://") and sorted(row.order) == ["A", "B"]
    assert row.ended_at >= row.started_at and row.duration_s > 0 and row.prompt
    assert len(bodies.read_events(row.transcript)) == row.event_count > 1
    assert kinds(group) == [(DecisionKind.VERDICT, "")]
    assert group.events.get(new="graded").details["grading"] == row.pk


def test_the_static_grader_leaves_a_row_too_and_asks_nobody(server):
    group = waiting(grader="static")
    job.drain()
    row = group.gradings.get()
    assert (row.state, row.grader, row.model, row.endpoint, row.transcript) == (State.VALID, "static", "", "", "")
    assert row.verdict == group.verdicts.get() and server.calls == 0


def test_an_endpoint_that_fails_costs_its_groups_their_grade_and_its_row_says_why(server):
    server.play("500")
    group = waiting()
    job.drain()
    row = group.gradings.get()
    assert row.state == State.FAILED and "HTTP 500" in str(row.problems) and row.retries > 0
    assert "missing" not in str(row.problems), "no candidate is missing in a reply that never came"
    assert kinds(group) == [(DecisionKind.FALLBACK, decisions.GRADER_FAILURE)]
    assert not group.verdicts.get().is_valid and row.verdict == group.verdicts.get()


def test_options_that_cannot_be_read_fail_their_own_run_only(server):
    wrong, right = waiting(options={"orders": "many"}), waiting()
    assert job.drain() == 2 and kinds(right) == [(DecisionKind.VERDICT, "")]
    assert "option orders is wrong" in str(wrong.gradings.get().problems)


def test_a_reply_that_is_no_valid_verdict_is_kept_with_all_its_problems(server):
    group = waiting("PPF", patches=[PATCH, PATCH, PATCH])
    server.play(ranked_by(first_in_prompt))  # splits byte-identical twins without an event
    job.drain()
    row = group.gradings.get()
    assert row.state == State.INVALID and row.problems == group.verdicts.get().problems
    assert "the same patch, byte for byte" in str(row.problems)
    second = server.requests[1].body["messages"][-1]["content"]
    assert "same patch, byte for byte" in str(second), "the repair round says what is wrong"


def test_a_killed_grader_shows_as_died_and_the_next_one_grades(server):
    group = waiting()
    assert claims.next_claim(networked=True).group == group
    expire(group)
    job.drain()
    assert list(group.gradings.values_list("state", "attempt")) == [(State.DIED, 1), (State.VALID, 2)]
    assert job.dead_letters(group.run).count() == 0


def test_three_crashes_are_a_dead_letter_that_falls_back_and_no_other_group_suffers(server):
    group = waiting()
    other = waiting(run=group.run, step=2)
    for _ in range(job.ATTEMPTS):
        assert claims.next_claim(networked=True).group == group
        expire(group)
    job.drain()
    states = [State.DIED] * 3 + [State.FAILED]
    assert list(group.gradings.values_list("state", flat=True)) == states and server.calls == 1
    assert kinds(group) == [(DecisionKind.FALLBACK, decisions.GRADER_FAILURE)]
    assert "3 graders died" in str(group.verdicts.get().problems)
    assert list(job.dead_letters(group.run)) == [group] and kinds(other) == [(DecisionKind.VERDICT, "")]


def test_last_tries_go_one_by_one_so_that_a_group_that_kills_takes_no_other_along(server):
    run = make_run(policy=Policy.AUTO, grader="single_pass")
    groups = [waiting(run=run) for _ in range(3)]
    for _ in range(job.ATTEMPTS - 1):
        assert [claims.next_claim(networked=True).group for _ in groups] == groups
        [expire(group) for group in groups]
    fresh = waiting(run=run)
    poison = claims.next_claim(networked=True)
    assert poison.group == groups[0] and claims.next_claim(networked=True).group == fresh
    assert claims.next_claim(networked=True) is None
    expire(groups[0])
    assert job.drain() == 3
    states = [list(group.gradings.values_list("state", flat=True))[-1] for group in groups]
    assert states == [State.FAILED, State.VALID, State.VALID]


def test_what_a_zombie_spent_is_booked_in_its_row(server):
    group = waiting()
    zombie = claims.next_claim(networked=True)
    expire(group)
    job.drain()
    job.grade(zombie)
    rows = list(group.gradings.values_list("state", "output_tokens"))
    assert rows == [(State.REFUSED, 100), (State.VALID, 100)]
    assert group.verdicts.count() == 1 and "verdict refused" in group.events.last().reason


def test_a_row_whose_group_went_on_without_it_is_closed_as_died(server):
    group = waiting(grade_by=clock.now() - timedelta(seconds=1))
    row = claims.next_claim(networked=True)
    deadlines.sweep()
    assert claims.bury() == 0, "a heartbeat may still come"
    Grading.objects.filter(pk=row.pk).update(started_at=clock.now() - timedelta(hours=1))
    assert claims.bury() == 1 and group.gradings.get().state == State.DIED


# ---- who is next, and how many at once ----


def test_so_many_gradings_wait_at_one_endpoint_over_all_workers(server, settings):
    settings.GAGAR_GRADER_CONCURRENCY = 2
    run = make_run(policy=Policy.AUTO, grader="single_pass")
    groups = [waiting(run=run) for _ in range(3)]
    assert claims.next_claim(networked=True) and claims.next_claim(networked=True)
    assert claims.next_claim(networked=True) is None
    assert claims.next_claim(networked=False) is None and waiting(grader="static")
    assert claims.next_claim(networked=False), "what needs no endpoint does not wait for one"
    expire(groups[0])
    assert claims.next_claim(networked=True).group == groups[0], "a claim that ran out holds no place"


def test_the_oldest_step_goes_first_then_the_nearest_deadline(server):
    run, now = make_run(grader="single_pass"), clock.now()
    late = waiting(run=run, step=2, grade_by=now + timedelta(seconds=5))
    slow = waiting(run=run, step=1, grade_by=now + timedelta(seconds=900))
    soon = waiting(run=run, step=1, grade_by=now + timedelta(seconds=60))
    assert [claims.next_claim(networked=True).group for _ in range(3)] == [soon, slow, late]


def test_runs_take_turns_however_old_their_steps_are(server):
    old, young = make_run(grader="single_pass"), make_run(grader="single_pass")
    for step in range(4):
        waiting(run=old, step=step), waiting(run=young, step=1000 + step)
    claimed = [claims.next_claim(networked=True).group.run for _ in range(8)]
    for pair in (claimed[:2], claimed[2:4], claimed[4:6], claimed[6:]):
        assert set(pair) == {old, young}


def test_an_endpoint_that_fails_again_and_again_is_left_alone_for_a_while(server):
    server.play("500")
    run = make_run(policy=Policy.AUTO, grader="single_pass")
    for _ in range(FAILURES + 3):
        waiting(run=run)
    assert job.drain() == FAILURES
    assert server.calls <= 3 * FAILURES and claims.next_claim(networked=True) is None
    assert run.groups.filter(state=GroupState.COMPLETE).count() == 3, "they wait, at most until their deadline"
    claims.pauses.until.clear()
    server.play("good")
    assert job.drain() == 3 and not claims.pauses.failures


def test_pauses_grow_and_one_success_ends_them():
    pauses = Pauses()
    lengths = [pauses.ended("e", failed=True, now=0.0) for _ in range(FAILURES + 8)]
    assert lengths[: FAILURES - 1] == [0.0] * (FAILURES - 1)
    assert lengths[FAILURES - 1 : FAILURES + 2] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S] and lengths[-1] == LONGEST_S
    assert pauses.lasts("e", now=LONGEST_S - 1) and not pauses.lasts("e", now=LONGEST_S)
    assert not pauses.lasts("another", now=0.0)
    assert pauses.ended("e", failed=False, now=1.0) == 0.0 and not pauses.lasts("e", now=1.0)


# ---- budgets and what is not worth a grade ----


@pytest.mark.parametrize(
    ("options", "spent", "words"),
    [
        ({"step_groups": 1}, {}, "budget of 1 groups"),
        ({"step_cost_usd": 0.5}, {"cost_usd": 0.5}, "budget of $0.5"),
        ({"step_wall_s": 30}, {"duration_s": 30.0}, "budget of 30 s"),
    ],
)
def test_over_a_steps_budget_groups_fall_back_as_skipped_with_the_words(server, options, spent, words):
    first = waiting(options=options)
    second, next_step = waiting(run=first.run), waiting(run=first.run, step=2)
    job.grade(claims.next_claim(networked=True))
    Grading.objects.filter(group=first).update(**spent)
    job.drain()
    assert kinds(first) == kinds(next_step) == [(DecisionKind.VERDICT, "")]
    assert kinds(second) == [(DecisionKind.FALLBACK, decisions.SKIPPED)] and second.gradings.count() == 0
    assert words in second.events.get(by="policy:budget", old="complete", new="complete").reason
    second.refresh_from_db()
    assert second.inspected_at, "detectors look at skipped groups, too"


def test_a_step_never_promises_more_money_than_it_has(server):
    options = {"step_cost_usd": 1.0, "max_cost_usd": 0.6}
    run = make_run(policy=Policy.AUTO, grader="single_pass", grading=options)
    for _ in range(3):
        waiting(run=run)
    first, second = (claims.next_claim(networked=True) for _ in range(2))
    assert first and second, "0.6 of 1 are promised: there is some left"
    assert claims.next_claim(networked=True) is None, "1.2 are promised: wait for what they really cost"
    Grading.objects.filter(pk=first.pk).update(state=State.VALID, cost_usd=0.1)
    assert claims.next_claim(networked=True)


def test_a_group_that_no_ranking_can_change_is_skipped_and_a_strong_signal_makes_it_worth_a_grade(server):
    exact = FLASH | {"constants": FLASH["constants"] | {"lambda_max": None}}
    rubric = RubricVersion.objects.create(number=99, name="Exact", definition=exact)
    run = make_run(policy=Policy.AUTO, grader="single_pass", rubric=rubric)
    lone, pair = waiting("PF", run=run), waiting("PPF", run=run)
    twins = waiting("PPF", run=run, patches=[PATCH, PATCH, PATCH])
    hinted = waiting("PF", run=run, patches=[TEST_GONE, PATCH])
    assert job.drain() == 2
    for group, words in ((lone, "one pass has all the credit"), (twins, "passes that must tie")):
        assert kinds(group) == [(DecisionKind.FALLBACK, decisions.SKIPPED)]
        assert words in group.events.get(by="policy:worth", new="complete").reason
    assert kinds(pair) == [(DecisionKind.VERDICT, "")]
    hinted.refresh_from_db()
    assert hinted.gradings.count() == 1 and hinted.hold_reason == decisions.SIGNAL_HOLD


# ---- several orders ----


def test_a_grader_that_goes_by_the_order_is_held(server):
    server.play(ranked_by(first_in_prompt))
    options = {"orders": 8, "orders_share": 1.0}
    group = waiting("PPPF", options=options)
    job.drain()
    row = group.gradings.get()
    assert row.state == State.VALID and row.turns == 8 and len(row.order) == 8 and row.flips > 0.25
    verdict = group.verdicts.get()
    assert "8 shuffled orders" in verdict.notes[0]
    group.refresh_from_db()
    assert group.held and group.hold_reason == decisions.FLIPS_HOLD
    said = group.events.get(old="grading", new="graded").details
    assert (said["orders"], said["orders_share"], said["flips"]) == (8, 1.0, row.flips)


def test_a_steady_grader_is_not_held_and_one_that_was_not_drawn_is_asked_once(server):
    steady = waiting("PPF", options={"orders": 3, "orders_share": 1.0})
    undrawn = waiting("PPF", options={"orders": 3, "orders_share": 0.0})
    job.drain()
    assert steady.gradings.get().flips == 0.0 and kinds(steady) == [(DecisionKind.VERDICT, "")]
    row = undrawn.gradings.get()
    assert (row.turns, row.flips) == (1, None) and undrawn.events.get(new="graded").details["orders"] == 1


def test_flips_hold_within_the_steps_budget_and_never_in_shadow(server):
    server.play(ranked_by(first_in_prompt))
    options = {"orders": 8, "orders_share": 1.0}
    run = make_run(policy=Policy.AUTO, grader="single_pass", grading=options, hold_budget=1)
    first, second = waiting("PPPF", run=run), waiting("PPPF", run=run)
    shadow = waiting("PPPF", options=options, policy=Policy.SHADOW)
    job.drain()
    for group in (first, second, shadow):
        group.refresh_from_db()
    assert first.held and not second.held and kinds(second) == [(DecisionKind.VERDICT, "")]
    assert not shadow.held and kinds(shadow) == [(DecisionKind.FALLBACK, decisions.SHADOW)]


def test_an_order_without_a_valid_verdict_is_left_out_and_named(server):
    server.play("500", "500", "500", "good")
    group = waiting("PPF", options={"orders": 3, "orders_share": 1.0})
    job.drain()
    verdict = group.verdicts.get()
    assert verdict.is_valid and "Order 1 is left out" in verdict.notes[0] and "HTTP 500" in verdict.notes[0]
    server.play("500")
    none = waiting("PPF", options={"orders": 2, "orders_share": 1.0})
    job.drain()
    problems = str(none.verdicts.get().problems)
    assert "order 1:" in problems and "order 2:" in problems and none.gradings.get().state == State.FAILED


# ---- threads, heartbeats, deadlines ----


def slow_grader(work):
    """A grader of ours that `work` keeps busy: called with its record."""

    def grade(ws, options, record):
        work(options, record)
        record.turns = 1
        return Answer(reply_for(ws.group), ())

    return grade


@pytest.fixture
def scripted(monkeypatch):
    def register(work):
        monkeypatch.setitem(claims.GRADERS, "scripted", slow_grader(work))
        flash()

    yield register
    assert crew.wait(20)


@pytest.mark.django_db(transaction=True)
def test_a_crew_grades_many_at_once_and_no_more_than_allowed(scripted, settings):
    settings.GAGAR_GRADER_CONCURRENCY = 3
    at_once, most, together = [], [], Barrier(3)

    def work(options, record):
        at_once.append(1)
        most.append(len(at_once))
        together.wait(30)  # three at a time, or it breaks
        at_once.pop()

    scripted(work)
    run = make_run(policy=Policy.AUTO, grader="scripted")
    groups = [waiting(run=run) for _ in range(9)]
    crews = [Thread(target=lambda: (crew.start(), connections.close_all())) for _ in range(2)]
    [thread.start() for thread in crews]
    [thread.join() for thread in crews]
    assert wait_for(lambda: crew.wait(1))
    assert max(most) == 3
    for group in groups:
        assert kinds(group) == [(DecisionKind.VERDICT, "")] and group.gradings.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_grading_three_times_as_long_as_its_lease_is_started_once(scripted, settings):
    settings.GAGAR_LEASE_S = 1
    scripted(lambda options, record: time.sleep(3))
    group = waiting(grader="scripted")
    crew.start()
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        assert claims.next_claim(networked=True) is None
        time.sleep(0.1)
    row = Grading.objects.get()
    assert row.state == State.RUNNING and row.duration_s > 1, "the page sees it live"
    assert crew.wait(20)
    row.refresh_from_db()
    assert (row.state, row.attempt) == (State.VALID, 1) and kinds(group) == [(DecisionKind.VERDICT, "")]


@pytest.mark.django_db(transaction=True)
def test_a_group_decided_meanwhile_stops_its_grader_and_what_it_cost_is_booked(scripted, settings):
    settings.GAGAR_LEASE_S = 1

    def work(options, record):
        record.output_tokens, record.cost_usd = 70, 0.02
        assert record.cancelled.wait(20), "nobody told it to stop"

    scripted(work)
    group = waiting(grader="scripted")
    crew.start()
    wait_for(lambda: Grading.objects.filter(state=State.RUNNING).exists())
    RolloutGroup.objects.filter(pk=group.pk).update(grade_by=clock.now() - timedelta(seconds=1))
    deadlines.sweep()
    assert crew.wait(20)
    row = Grading.objects.get()
    assert (row.state, row.output_tokens, row.cost_usd) == (State.REFUSED, 70, 0.02)
    assert kinds(group) == [(DecisionKind.FALLBACK, "deadline")] and group.verdicts.count() == 0


@pytest.mark.django_db(transaction=True)
def test_the_groups_deadline_bounds_the_graders_time(scripted):
    seen = []
    scripted(lambda options, record: seen.append(options.max_wall_s))
    waiting(grader="scripted", grade_by=clock.now() + timedelta(seconds=30))
    waiting(grader="scripted", options={"max_wall_s": 20}, grade_by=clock.now() + timedelta(seconds=3000))
    assert job.drain() == 2
    assert 19 < sorted(seen)[0] <= 20 < sorted(seen)[1] < 28


@pytest.mark.django_db(transaction=True)
def test_a_grader_past_its_time_is_told_to_stop_and_its_group_falls_back(scripted):
    def work(options, record):
        assert record.cancelled.wait(20), "nobody told it to stop"
        raise RuntimeError("stopped")

    scripted(work)
    group = waiting(grader="scripted", options={"max_wall_s": 1})
    assert job.drain() == 1
    assert "its 1 s were over" in str(group.gradings.get().problems)
    assert kinds(group) == [(DecisionKind.FALLBACK, decisions.GRADER_FAILURE)]


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_stops_gives_back_what_it_cannot_end(scripted, monkeypatch):
    def work(options, record):
        record.cancelled.wait(20)

    scripted(work)
    group = waiting(grader="scripted")
    monkeypatch.setattr(crew, "_stopping", False)  # and put back after the test
    crew.start()
    wait_for(lambda: Grading.objects.filter(state=State.RUNNING).exists())
    assert crew.stop(grace_s=0.2) == 1
    assert crew.start() == 0, "nothing new is begun"
    group.refresh_from_db()
    assert (group.state, group.grading_attempts, group.claimed_by) == (GroupState.COMPLETE, 0, "")
    assert wait_for(lambda: Grading.objects.get().state == State.REFUSED)
    assert claims.next_claim(networked=True).attempt == 1


@pytest.mark.django_db(transaction=True)
def test_an_endpoint_that_fails_every_third_call_ends_every_group_without_a_storm(server, settings, monkeypatch):
    """J5: 20 groups here, 1,000 calls and more with GAGAR_CHAOS=40."""
    flash()
    monkeypatch.setattr(retries, "FIRST_WAIT_S", 0.0)
    draw = random.Random(5)
    faults = ["429", "500", "hang", "cut_json", "wrong_ids"]

    def script(asked):
        return SCRIPTS[draw.choice(faults) if draw.random() < 0.3 else "good"](asked)

    server.play(script)
    many = 20 * int(os.environ.get("GAGAR_CHAOS", "1"))
    run = make_run(policy=Policy.AUTO, grader="single_pass", grading={"max_wall_s": 4, "step_cost_usd": 1000})
    groups = [waiting(run=run) for _ in range(many)]
    wait_for(lambda: crew.start() + crew.wait(60) and not run.groups.filter(state="complete").exists(), within_s=170)
    rows = Grading.objects.filter(group__run=run)
    assert rows.count() == many and not rows.filter(state=State.RUNNING).exists()
    assert server.calls <= 3 * 2 * many, "a verdict and one repair round are two answers"
    assert rows.filter(state=State.VALID).count() > many / 2
    for group in groups:
        assert group.decisions.count() == 1 and group.verdicts.count() == 1
