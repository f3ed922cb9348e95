"""A sandbox: packs the tree, lets an engine run it, judges outside. What counts as passed is the same for each."""

import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from grading.errors import BadInput, NoSandbox
from grading.grader.sandbox.judge import judge
from grading.grader.sandbox.shape import Ended, Limits, Question, Ran
from grading.grader.sandbox.tree import pack

PREPARE = """\
# Say that we are here, unpack stdin ($1 bytes) into the one writable folder, then run the rest: as the first process,
# or below this shell.
umask 022
cd /check || exit 251
echo
head -c "$1" | tar -xof - || exit 251
exec </check/stdin
rm -f /check/stdin
how=$2
shift 2
cd /check/tree || exit 251
if [ "$how" = exec ]; then exec "$@"; fi
"$@"
exit $?
"""
ENVIRONMENT = {
    "HOME": "/check/tmp",
    "TMPDIR": "/check/tmp",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}


@dataclass(frozen=True)
class Job:
    """What an engine starts: `sh -c PREPARE check *words`, with `packed` on stdin."""

    packed: BinaryIO
    words: Sequence[str]
    limits: Limits
    is_ours: bool  # stdout belongs to our runner


class Engine(Protocol):
    name: str

    def execute(self, job: Job) -> Ended:
        """Run it and leave nothing behind: no process, no file, no container. NoSandbox where it cannot start it."""


class Sandbox:
    """Runs checks of one image. Each run has a copy of the tree of its own, and nothing of it is read back."""

    def __init__(self, engine: Engine, image: str = ""):
        self.engine, self.image = engine, image
        self.name = engine.name

    def run(self, tree: Path, question: Question) -> Ran:
        """Run one check.

        Args:
            tree: the folder of a checkout. It is read, and no link in it is followed; nothing is written to it.
            question: what to run.
        Returns:
            What came of it. Whatever goes wrong with the tree or its code is `unknown`, with the words.
        Raises:
            NoSandbox: the engine itself could not run it.
        """
        started, token = time.monotonic(), secrets.token_hex(16)
        if question.image != self.image:
            raise BadInput("a check of another image", got=question.image, expected=self.image or "no image")
        try:
            packed = pack(tree, question, token)
        except (BadInput, OSError) as refused:
            return Ran("unknown", str(refused)[:500], self.name, duration_s=time.monotonic() - started)
        with packed:
            size = packed.seek(0, os.SEEK_END)
            packed.seek(0)
            job = Job(packed, _words(question, size), question.limits, _is_ours(question))
            try:
                ended = self.engine.execute(job)
            except OSError as failed:
                raise NoSandbox(f"{self.name} could not run the check", got=failed.strerror or str(failed)) from failed
        return judge(question, ended, token=token, sandbox=self.name)


def _is_ours(question: Question) -> bool:
    return bool(question.expect.tests)


def _words(question: Question, size: int) -> list[str]:
    if _is_ours(question):
        # -I: neither the environment nor the current folder can put code of the tree in front.
        return [str(size), "exec", "python3", "-I", "-B", "-u", "/check/runner.py"]
    return [str(size), "run", *question.argv]
