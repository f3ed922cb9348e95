"""One grading: ask the grader, in one order or in several, and write down what it said and cost.

No transaction is open while a grader works. What it raises is its failure, never the group's.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from random import SystemRandom

from django.db import connection

from grading import bodies, clock
from grading.errors import GraderFailed, WrongShape
from grading.grader import claims, gather, orders, spending, static
from grading.grader.graders import GRADERS
from grading.grader.keeper import Keeper
from grading.grader.options import GradingOptions
from grading.grader.parse import Checked, check
from grading.grader.record import Answer, Record
from grading.grader.shape import GraderReply, Problem
from grading.grader.workspace import Workspace
from grading.models import Grading, Verdict
from grading.storable import storable

log = logging.getLogger(__name__)
draw = SystemRandom().random
SPARE_S, SPARE_SHARE = 5.0, 0.1  # before a deadline, to store what came
LEAST_S = 1.0
COUNTS = ("turns", "tool_calls", "retries", "input_tokens", "cached_tokens", "output_tokens")


@dataclass
class Heard:
    """What came of one grading. `is_failure`: no reply at all. `details` go into the group's history."""

    reply: GraderReply = field(default_factory=lambda: GraderReply(()))
    unread: Sequence[Problem] = ()
    record: Record = field(default_factory=Record)
    is_failure: bool = False
    order: list = field(default_factory=list)
    details: dict = field(default_factory=dict)


def hear(grading: Grading) -> Heard:
    """Ask the grader of a claimed group, and nobody else at the same time."""
    group = grading.group
    if not claims.is_networked(grading.grader):
        return _ask_here(grading)
    try:
        options = _options(grading)
    except WrongShape as wrong:
        return _failed(grading, wrong, Record())
    times, details = _orders(options)
    with Keeper(grading, wall_s=options.max_wall_s) as keeper:
        if not connection.in_atomic_block:
            connection.close()  # it will wait for a model: others need the connection
        heard = _ask_in_orders(grading, options, keeper, times)
    if keeper.why:
        heard.unread = (*heard.unread, Problem("", f"it was told to stop: {keeper.why}"))
    pause_s = claims.pauses.ended(grading.endpoint, failed=_is_endpoints(heard), now=time.monotonic())
    if pause_s:
        log.warning("%s fails again and again: nothing new is graded there for %g s", grading.endpoint, pause_s)
    heard.details |= details
    if times > 1:
        log.info("group %s was graded in %s orders, flips %s", group.key, times, heard.record.flips)
    return heard


def _ask_here(grading: Grading) -> Heard:
    """A grader without a model: no workspace, no heartbeat. An unknown name fails here, too."""
    try:
        if grading.grader != claims.INLINE:
            raise GraderFailed("no such grader", got=grading.grader, expected=", ".join(GRADERS))
        return Heard(static.grade(gather.material_of(grading.group)))
    except Exception as failure:
        return _failed(grading, failure, Record())


def _options(grading: Grading) -> GradingOptions:
    """The run's options, bounded by what its step has left and by the group's deadline."""
    group = grading.group
    options = GradingOptions.from_json(group.run.grading)
    if grading.model:
        options = replace(options, model=grading.model)
    if not grading.asked_by:
        options = spending.bounded(group, options)
    if grading.fencing and (deadline := group.deadline):
        left_s = (deadline - clock.now()).total_seconds()
        left_s -= min(SPARE_S, SPARE_SHARE * max(left_s, 0.0))
        options = replace(options, max_wall_s=max(LEAST_S, min(options.max_wall_s, left_s)))
    return options


def _orders(options: GradingOptions) -> tuple[int, dict]:
    """In how many orders, drawn with a probability that the history keeps."""
    if options.orders < 2:
        return 1, {}
    times = options.orders if draw() < options.orders_share else 1
    return times, {"orders": times, "orders_share": options.orders_share}


def _ask_in_orders(grading: Grading, options: GradingOptions, keeper: Keeper, times: int) -> Heard:
    ends, said = time.monotonic() + options.max_wall_s, []
    for n in range(times):
        if n and keeper.cancelled.is_set():
            break
        record = Record(cancelled=keeper.cancelled, grading_id=grading.pk)
        if times > 1:
            record.add("note", f"Order {n + 1} of {times}")
        said.append(_ask(grading, _left(options, said, ends), record))
    if times == 1:
        return said[0]
    return _merged(grading, said, times)


def _left(options: GradingOptions, said: Sequence[Heard], ends: float) -> GradingOptions:
    """Money and time are of the whole group; turns and tokens of each order."""
    options = replace(options, max_wall_s=max(LEAST_S, ends - time.monotonic()))
    if options.max_cost_usd is None:
        return options
    spent = sum(heard.record.cost_usd or 0.0 for heard in said)
    return replace(options, max_cost_usd=max(options.max_cost_usd - spent, spending.LEAST_COST_USD))


def _ask(grading: Grading, options: GradingOptions, record: Record) -> Heard:
    try:
        with Workspace.open(grading.group) as workspace:
            record.order = workspace.order
            answer: Answer = GRADERS[grading.grader](workspace, options, record)
    except Exception as failure:
        return _failed(grading, failure, record)
    return Heard(answer.reply, answer.unread, record, order=list(record.order))


def _failed(grading: Grading, failure: Exception, record: Record) -> Heard:
    problems = failure_problems(failure, f"grading {grading.pk} of group {grading.group.key}")
    return Heard(unread=problems, record=record, is_failure=True, order=list(record.order))


def failure_problems(failure: Exception, what: str) -> tuple[Problem, ...]:
    """What a grader raised, as problems of its verdict; an error of ours is logged with its trace."""
    if isinstance(failure, GraderFailed):
        log.warning("%s failed: %s", what, failure)
        return (Problem("", failure.what, failure.got, failure.expected), *failure.problems)
    log.error("%s failed", what, exc_info=failure)
    return (Problem("", f"the grader raised {type(failure).__name__}: {failure}"[:500]),)


def _is_endpoints(heard: Heard) -> bool:
    """Whether the endpoint is to blame: not a single answer came, or none in spite of repeated calls."""
    record = heard.record
    return heard.is_failure and not record.cancelled.is_set() and (record.turns == 0 or record.retries > 0)


# ---- several orders ----


def _merged(grading: Grading, said: Sequence[Heard], times: int) -> Heard:
    """One answer out of all. Invalid ones are left out and named; none valid: all their problems."""
    group = grading.group
    material, rubric = gather.material_of(group), (group.rubric or group.run.rubric).rubric
    checked = [check(heard.reply, material, rubric, heard.unread) for heard in said]
    valid = [n for n, one in enumerate(checked) if one.valid]
    record = _summed([heard.record for heard in said])
    order = [heard.order for heard in said]
    if not valid:
        problems = [replace(p, what=f"order {n + 1}: {p.what}") for n, one in enumerate(checked) for p in one.problems]
        failed = all(heard.is_failure for heard in said)
        return Heard(said[0].reply, problems, record, is_failure=failed, order=order)
    replies, rankings = [said[n].reply for n in valid], [checked[n].grades.ranking for n in valid]
    record.flips = orders.flips(rankings)
    merged, how = orders.merge(replies), "medians of their scores"
    if not check(merged, material, rubric).valid:
        merged, how = replies[orders.closest(rankings)], "the one that the others oppose least, as medians broke a rule"
    notes = _notes(said, checked, valid, times=times, how=how, flips=record.flips)
    return Heard(replace(merged, notes=notes), (), record, order=order)


def _notes(said: Sequence[Heard], checked: Sequence[Checked], valid, *, times: int, how: str, flips) -> str:
    share = "" if flips is None else f" {flips:.0%} of the pairs changed sides between them."
    lines = [f"Graded in {times} shuffled orders, {len(valid)} of them valid; what counts: {how}.{share}"]
    for n, one in enumerate(checked):
        if not one.valid:
            lines.append(f"Order {n + 1} is left out: {one.problems[0]}")
        elif said[n].reply.notes:
            lines.append(f"Order {n + 1}: {said[n].reply.notes}")
    if len(said) < times:
        lines.append(f"Stopped after {len(said)} orders.")
    return "\n".join(lines)


def _summed(records: Sequence[Record]) -> Record:
    first = records[0]
    total = Record(**{f.name: getattr(first, f.name) for f in fields(Record) if f.name not in (*COUNTS, "events")})
    for name in COUNTS:
        setattr(total, name, sum(getattr(record, name) for record in records))
    costs = [record.cost_usd for record in records if record.cost_usd is not None]
    total.cost_usd = sum(costs) if costs else None
    total.events = [event for record in records for event in record.events]
    return total


# ---- its row ----


def keep_transcript(grading: Grading, heard: Heard) -> None:
    """Store what was said, before any lock is taken. A disk that is full costs the transcript, not the verdict."""
    if not heard.record.events:
        return
    try:
        stored = bodies.write_events(storable(list(heard.record.events)))
        grading.transcript, grading.event_count = stored.sha256, stored.events
    except Exception:
        log.exception("the transcript of grading %s could not be stored", grading.pk)


def end(grading: Grading, heard: Heard, *, state: str, duration_s: float, problems=(), verdict: Verdict | None = None):
    """Close the row: once, by whoever worked, whatever became of its claim."""
    record = heard.record
    for name in COUNTS:
        setattr(grading, name, getattr(record, name))
    grading.cost_usd, grading.flips = record.cost_usd, record.flips
    grading.model, grading.prompt = (record.model or grading.model)[:120], record.prompt[:80]
    grading.endpoint = (record.endpoint or grading.endpoint)[:200]
    grading.order = heard.order
    grading.state, grading.verdict, grading.duration_s = state, verdict, duration_s
    grading.problems = storable([problem.to_json() for problem in problems])[:200]
    grading.ended_at = clock.now()
    grading.save()
