"""Run a targeted check of a candidate's tree in a sandbox, once, and keep what came of it as a result to cite."""

import fcntl
import hashlib
import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from django.conf import settings
from django.db import transaction

from grading import bodies
from grading.errors import BadInput, NoSandbox, NotFound
from grading.grader.sandbox import Question, Ran, find_sandbox, why_no_sandbox
from grading.models import Check, Grading, RolloutGroup, Trajectory
from grading.storable import storable


class Trees(Protocol):
    """What a check needs of a workspace."""

    def tree(self, letter: str | None) -> Path | None: ...

    def why_no_tree(self, letter: str | None) -> str: ...


def run_check(
    group: RolloutGroup, ws: Trees, letter: str | None, question: Question, grading: Grading | None = None
) -> Check:
    """Run a check of a candidate, or of the base (letter None), unless the same was run before. In no transaction.

    Byte-identical patches share one check. Two workers of one machine that ask the same at once run it once; on two
    machines both may run it, and one row stays. NoSandbox where there is none: nothing is ever run outside of one.
    """
    trajectory = _of_letter(group, letter)
    key = _key(group, trajectory, question)
    with _alone(key):
        if known := group.checks.filter(key=key).first():
            return known
        sandbox = find_sandbox(question.image)
        if sandbox is None:
            raise NoSandbox("checks are off", got=why_no_sandbox(question.image))
        tree = ws.tree(letter)
        if tree is None:
            raise NotFound("there is no tree to check", got=ws.why_no_tree(letter))
        ran = sandbox.run(tree, question)
        return _store(Check(group=group, trajectory=trajectory, grading=grading, key=key), question, ran)


def _of_letter(group: RolloutGroup, letter: str | None) -> Trajectory | None:
    if letter is None:
        return None
    found = group.trajectories.counted().filter(letter=letter).first() if letter else None
    if found is None:
        letters = group.trajectories.counted().exclude(letter="").values_list("letter", flat=True)
        raise BadInput("no such candidate", got=letter[:20], expected=", ".join(sorted(letters)))
    return found


def _key(group: RolloutGroup, trajectory: Trajectory | None, question: Question) -> str:
    """The same question about the same tree."""
    said = {
        "asked": question.to_json({path: _sha256(data) for path, data in question.files.items()}),
        "stdin": _sha256(question.stdin),
        "base": [group.task.repository_id, group.task.repository_url, group.task.base_commit],
        "patch": trajectory and trajectory.patch,
    }
    return _sha256(json.dumps(said, sort_keys=True).encode())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def _alone(key: str) -> Iterator[None]:
    """One holder of a key at a time on this machine, threads and processes alike; a dead one lets go by itself."""
    # A lock on one byte of one file for each key: nothing to clean up, and other keys do not wait.
    at = int(key[:15], 16)
    with (settings.GAGAR_DATA_DIR / "checks.lock").open("a+b") as file:
        fcntl.fcntl(file, fcntl.F_OFD_SETLKW, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, at, 1, 0))
        yield


def _store(check: Check, question: Question, ran: Ran) -> Check:
    keys = {path: bodies.write_bytes(data) for path, data in question.files.items()}
    check.asked, check.image = storable(question.to_json(keys)), question.image
    check.output = bodies.write_bytes(ran.output) if ran.output else ""
    check.output_bytes, check.is_truncated = len(ran.output), ran.is_truncated
    check.sandbox, check.outcome, check.words = ran.sandbox, ran.outcome, storable(ran.words)[:500]
    check.exit_code, check.duration_s = ran.exit_code, ran.duration_s
    with transaction.atomic():
        group = RolloutGroup.objects.locked().get(pk=check.group_id)  # names are dense: nobody else counts meanwhile
        if known := group.checks.filter(key=check.key).first():
            return known
        check.name = f"check:{group.checks.count() + 1}"
        check.save()
    return check
