"""R1, R7, R8: writers that commit in any order, reviewers who change their minds, graders who miss the deadline."""

import time
from concurrent.futures import ThreadPoolExecutor
from random import Random

import httpx
import pytest
from django.db import connection, transaction

from grading.errors import GradingError
from grading.models import Decision, RolloutGroup
from grading.review import decisions
from grading.states import DecisionKind, GroupState
from tests.chaos.counts import reached, times
from tests.chaos.site import check_stream
from tests.conftest import wait_for
from tests.factories import make_group, make_life, make_task
from tests.verdicts import add_verdict, grade
from training_bridge import delivery
from training_bridge.client import GagarClient
from training_bridge.models import Delivery, Receipt
from training_bridge.protocol.wire import decode_from_server

pytestmark = [pytest.mark.alone, pytest.mark.timeout(3600)]
WRITERS = 8


def in_writers(work, items) -> None:
    """Eight at a time, each with a connection of its own."""

    def one(item):
        try:
            work(item)
        finally:
            connection.close()

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(one, items))


@pytest.mark.parametrize("round_", range(times(1, 5)))
def test_r1_eight_writers_commit_out_of_order_and_a_reader_that_polls_misses_none(site, round_):
    many, draw = times(64, 1200), Random(round_)
    life, task = make_life(run=site.run), make_task(team=site.run.team)
    with transaction.atomic():
        made = {"run": site.run, "life": life, "task": task, "state": GroupState.GRADED}
        groups = [make_group(**made, key=f"g{n}") for n in range(many)]

    def write(group):
        with transaction.atomic():
            decisions.decide(group, DecisionKind.FALLBACK, by="test", reason="test")
            time.sleep(draw.uniform(0, 0.01))  # who began first need not commit first
        delivery.deliver(site.run)

    read, url = [], f"{site.wire.url}/api/v1/runs/{site.run.public_id}/advantages"
    with ThreadPoolExecutor(1) as beside, httpx.Client(headers={"Authorization": f"Bearer {site.token}"}) as reader:
        writing = beside.submit(in_writers, write, groups)
        while True:
            ended = writing.done()  # before it reads: what was committed by then must be there
            rows = reader.get(url, params={"after": len(read)}, timeout=60).json()["rows"]
            read += [decode_from_server(text) for text in rows]
            if ended and not rows:
                break
        writing.result()
    assert [row.seq for row in read] == list(range(1, many + 1))
    assert {row.group for row in read} == {group.key for group in groups}
    reached(f"R1 round {round_}", rows=many, lost=0, doubled=0)


def override(group: RolloutGroup, draw: Random) -> None:
    """A reviewer scores the group anew, whatever has become of it meanwhile."""
    for _ in range(20):
        fresh = RolloutGroup.objects.select_related("run", "life", "task", "rubric").get(pk=group.pk)
        try:
            verdict = add_verdict(fresh, {"A": 4, "B": draw.choice([1, 2, 3, 5])})
            decisions.decide(fresh, DecisionKind.VERDICT, by="alice", verdict=verdict)
            return
        except GradingError:  # it was delivered while we looked
            continue
    raise AssertionError(f"group {group.key} cannot be decided")


def decide_first(group: RolloutGroup, draw: Random, *, overridden: bool) -> None:
    """The server delivers as soon as it hears of a decision: an override that must come before commits with it."""
    with transaction.atomic():
        grade(group, {"A": 5, "B": 4})
        if overridden:
            override(group, draw)


def test_r7_overrides_before_between_and_after_use_never_apply_two_versions(sites):
    """The job's own client, in here, so that each override falls exactly where it is drawn."""
    site = sites(method="redistribute")
    many, at_once, draw = times(20, 200), 10, Random(7)
    moments = ("before delivery", "before freeze", "between freeze and use", "after use", "beside freeze")
    drawn = {}
    with GagarClient(site.wire.url, site.run.public_id, site.token) as gagar:
        for step in range(many // at_once):
            keys = [f"s{step}-{n}" for n in range(at_once)]
            groups = declared_and_complete(site, gagar, keys, step)
            when = {key: draw.choice(moments) for key in keys}
            drawn |= when
            for key, (_, group) in groups.items():
                decide_first(group, draw, overridden=when[key] == "before delivery")

            def at(moment, groups=groups, when=when):
                for key, at_moment in when.items():
                    if at_moment == moment:
                        override(groups[key][1], draw)

            delivery.deliver(site.run)
            at("before freeze")
            with ThreadPoolExecutor(1) as beside:
                overriding = beside.submit(lambda at=at: (at("beside freeze"), connection.close()))
                batch = gagar.freeze(step, [handle for handle, _ in groups.values()], within_s=60)
                overriding.result()
            at("between freeze and use")
            gagar.applied(batch)
            at("after use")
            delivery.deliver(site.run)
        with gagar.checkpoint() as cursor:
            applied = [tuple(entry) for entry in cursor["applied"]]
        settled = Delivery.objects.filter(stream__run=site.run, receipt="")
        wait_for(lambda: not settled.exists())
    check_overrides(site, applied, drawn)
    statuses = Receipt.objects.filter(run=site.run).values_list("status", flat=True)
    counted = {status: list(statuses).count(status) for status in ("applied", "too_late", "superseded")}
    reached("R7", interleavings=many, **counted, two_versions_applied=0)


def declared_and_complete(site, gagar, keys, step):
    """Groups that the job has declared and submitted whole, and nobody has graded, by key."""
    gagar.task("t", statement="Return 2.")
    handles = {key: gagar.declare(key, task="t", step=step, group_size=3) for key in keys}
    for key, handle in handles.items():
        for place, outcome in enumerate(("passed", "passed", "failed")):
            patch = b"diff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n def f():\n-    pass\n"
            handle.submit(f"{key}-{place}", outcome=outcome, patch=patch + b"+    return %d\n" % place, events=[])
    mine = RolloutGroup.objects.filter(run=site.run, key__in=keys).select_related("run", "life", "task", "rubric")
    wait_for(lambda: mine.filter(state=GroupState.COMPLETE, bodies_ready=True).count() == len(keys))
    rows = {group.key: group for group in mine}
    return {key: (handles[key], rows[key]) for key in keys}


def check_overrides(site, applied, drawn):
    newest_at = {group.key: group.version for group in RolloutGroup.objects.filter(run=site.run)}
    used = {}
    for receipt in Receipt.objects.filter(run=site.run, status="applied").select_related("group"):
        used.setdefault((receipt.group.key, receipt.step), set()).add(receipt.version)
    assert all(len(versions) == 1 for versions in used.values())
    assert {(key, step): {version} for _, key, version, step in applied} == used
    for _, key, version, _ in applied:
        if drawn[key] in ("between freeze and use", "after use"):
            assert (version, newest_at[key]) == (1, 2), "the override came after the choice"
            late = Receipt.objects.filter(group__key=key, run=site.run, version=2)
            assert set(late.values_list("status", flat=True)) == {"too_late"}
        elif drawn[key] == "before delivery":
            assert (version, newest_at[key]) == (2, 2)
    check_stream(site)


def test_r8_groups_that_miss_the_deadline_get_outcome_advantages_and_one_row(sites):
    site = sites(method="redistribute")
    sweeping = site.start("sweeper")
    many, at_once, draw = times(40, 1000), 20, Random(8)
    late = set()
    fallbacks = local = 0
    with GagarClient(site.wire.url, site.run.public_id, site.token) as gagar:
        for step in range(many // at_once):
            keys = [f"s{step}-{n}" for n in range(at_once)]
            missing = {key for key in keys if draw.random() < 0.2}
            late |= missing
            handles = complete_groups(site, gagar, keys, step)
            for group in groups_of(site, set(keys) - missing):
                grade(group, {"A": 5, "B": 4})
            in_time = Delivery.objects.filter(stream__run=site.run, group__step=step)
            wait_for(lambda in_time=in_time, due=len(keys) - len(missing): in_time.count() >= due)
            wait_for(lambda: held(gagar, set(keys) - missing))  # noqa: B023
            batch = gagar.freeze(step, handles, within_s=2)
            for one in batch.sets:
                if one.group not in missing:
                    assert (one.version, one.regime) == (1, "exact")
                    continue
                fallbacks, local = fallbacks + (one.version == 1), local + (one.version == 0)
                assert (one.regime, one.reason) == ("fallback", "deadline")
                assert list(one.advantage.values()) == outcome_of(site, one.group), "bit for bit"
            gagar.applied(batch)
        rows = Delivery.objects.filter(stream__run=site.run)
        wait_for(lambda: rows.count() == many and not rows.filter(receipt="").exists())
        for group in groups_of(site, late):  # the grader's answer comes when all is over
            with pytest.raises((GradingError, AssertionError)):
                grade(group)
        delivery.deliver(site.run)
    assert sweeping.alive, sweeping.said
    assert rows.count() == many and rows.values("group").distinct().count() == many, "one terminal row a group"
    assert Decision.objects.filter(group__run=site.run).count() == many
    check_fallbacks(site, rows.filter(group__key__in=late))
    check_stream(site)
    reached("R8", groups=many, missed=len(late), decided_by_deadline=fallbacks, local_first=local, second_rows=0)


def check_fallbacks(site, rows):
    """Each of these rows fell back at the deadline and pays the outcome advantages, bit for bit."""
    for row in rows:
        assert (row.regime, row.reason) == ("fallback", "deadline")
        said = decode_from_server(row.text)
        assert [entry.advantage for entry in said.rows] == outcome_of(site, said.group)


REWARDS = (0.7, 0.4, -0.3)


def outcome_of(site, key) -> list[float]:
    """A = R - mean(R) as the one function computes it."""
    import numpy as np

    from training_bridge.redistribution.outcome import outcome_advantages

    return outcome_advantages(np.array(REWARDS), np.ones(3, bool)).tolist()


def complete_groups(site, gagar, keys, step):
    gagar.task("t", statement="Return 2.")
    handles = [gagar.declare(key, task="t", step=step, group_size=3) for key in keys]
    for key, handle in zip(keys, handles, strict=True):
        for place, outcome in enumerate(("passed", "passed", "failed")):
            patch = b"diff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n def f():\n-    pass\n"
            handle.submit(
                f"{key}-{place}", outcome=outcome, reward=REWARDS[place], patch=patch + b"+    return %d\n" % place,
                events=[],
            )  # fmt: skip
    ready = {"state": GroupState.COMPLETE, "bodies_ready": True}
    wait_for(lambda: groups_of(site, keys, **ready).count() == len(keys))
    return handles


def groups_of(site, keys, **fields):
    found = RolloutGroup.objects.filter(run=site.run, key__in=keys, **fields)
    return found.select_related("run", "life", "task", "rubric")


def held(gagar, keys) -> bool:
    """Whether the job's buffer holds the decisions of these groups."""
    with gagar._shared.condition:
        return not gagar._buffer.undecided(keys)
