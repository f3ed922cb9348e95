"""Targeted checks of untrusted code: docker for a run that names an image, bubblewrap for the others, else none."""

import os
import time
from pathlib import Path

from grading.grader.sandbox import bubblewrap
from grading.grader.sandbox.engine import Sandbox
from grading.grader.sandbox.shape import Expect, Limits, Question, Ran

__all__ = ["Expect", "Limits", "Question", "Ran", "Sandbox", "find_sandbox", "reap", "why_no_sandbox"]
ASK_AGAIN_S = 60
LOCAL_ENGINE = Path("/var/run/docker.sock")
_answers: dict[tuple[str | None, str], tuple[float, str]] = {}


def find_sandbox(image: str = "") -> Sandbox | None:
    """The sandbox that runs checks of this image here; None where there is none, and then nothing is run at all.

    An image is never replaced by the host's own toolchain: what fails there would be held against a candidate.
    """
    if why_no_sandbox(image):
        return None
    if not image:
        return Sandbox(bubblewrap.Bubblewrap())
    from grading.grader.sandbox import containers

    return Sandbox(containers.Docker(containers.client(), image), image)


def why_no_sandbox(image: str = "") -> str:
    """Returns: why checks are off for runs with this image; "" where they are on. Looks again after a minute."""
    key = os.environ.get("DOCKER_HOST"), image
    asked_at, words = _answers.get(key, (0.0, ""))
    if not asked_at or time.monotonic() - asked_at > ASK_AGAIN_S:
        words = _ask(image)
        _answers[key] = time.monotonic(), words
    return words


def _ask(image: str) -> str:
    if not image:
        return bubblewrap.why_not()
    try:
        from grading.grader.sandbox import containers
    except ImportError:
        return "the run names a docker image and the package docker is not installed: pip install gagar[grader]"
    return containers.why_not(image)


def reap() -> int:
    """Remove what killed workers left; returns how many. At the start of a worker and once a minute."""
    if "DOCKER_HOST" not in os.environ and not LOCAL_ENGINE.exists():
        return 0  # nor is the engine's package loaded for nothing
    try:
        from grading.grader.sandbox.leftovers import reap as containers_of_the_dead

        return containers_of_the_dead()
    except ImportError:
        return 0
