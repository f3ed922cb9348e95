"""An audit for a program of the team's own: blind groups out as JSON, verdicts in by the rules of every grader."""

import json
from collections.abc import Iterator
from typing import Any

from django.db import transaction

from grading.audit import distinct, job
from grading.audit.workspace import AuditWorkspace
from grading.errors import BadInput, NotFound, WrongState
from grading.grader import claims
from grading.grader.parse import check
from grading.grader.shown import Shown
from grading.grader.wire import from_json
from grading.models import Audit, AuditGroup
from grading.models.audits import PERSON

LEASE_S = 60
State = AuditGroup.State


def questions(audit: Audit) -> Iterator[dict[str, Any]]:
    """Each group that is not judged: its task and its candidates, scrubbed, under their letters."""
    _refuse_ours(audit)
    for group in audit.groups.exclude(state=State.DONE).select_related("task", "audit__rubric"):
        with AuditWorkspace.open(group, seed=group.code) as ws:
            yield {
                "group": group.code,
                "task": group.task.key,
                "statement": ws.scrub(ws.statement),
                "candidates": [_candidate(ws.shown[letter]) for letter in sorted(ws.shown)],
            }


def _candidate(one: Shown) -> dict[str, Any]:
    return {
        "id": one.letter,
        "outcome": "passed" if one.passed else "failed",
        "patch": one.patch.decode("utf-8", "replace"),
        "tests": one.tests,
        "events": [one.event(n) for n in range(one.event_count)],
    }


def take_in(audit: Audit, line: str) -> str:
    """Store one verdict, `{"group": CODE, …}` in the one verdict shape. Returns what is wrong with it, or ""."""
    _refuse_ours(audit)
    try:
        document = json.loads(line)
        code = str(document.pop("group"))
    except (ValueError, AttributeError, KeyError) as e:
        raise BadInput("an answer is no JSON object with a group", got=line[:80]) from e
    group = audit.groups.select_related("task", "audit__rubric").filter(code=code).first()
    if group is None:
        raise NotFound(f"no group {code[:30]!r} in {audit}")
    if not group.claim(by=claims.worker(), lease_s=LEASE_S):
        raise WrongState(f"{group} is {group.state}: it is judged already, or is being judged")
    reply = from_json(document)
    with AuditWorkspace.open(group, seed=group.code) as ws, transaction.atomic():
        job.hold(group, group.fencing)
        verdict = job.store(
            group, reply, check(ws.to_ids(reply), ws.material, audit.rubric.rubric), grader=audit.grader
        )
    return "" if verdict.is_valid else f"{group}: {verdict.problems[0]['what']}, got {verdict.problems[0]['got']}"


def _refuse_ours(audit: Audit) -> None:
    if distinct.is_ours(audit.grader) or audit.grader == PERSON:
        raise WrongState(f"{audit} is judged by {audit.grader}: open one with the name of your own grader")
