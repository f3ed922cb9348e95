"""Containers whose worker is gone: what kill -9 leaves behind. Bubblewrap leaves nothing."""

import hashlib
import logging
import os
import time
from functools import cache
from pathlib import Path

from django.conf import settings

log = logging.getLogger(__name__)
MARGIN_S = 120  # to make, stop and remove a container
OURS, WORKER, UNTIL = "gagar.installation", "gagar.worker", "gagar.until"


def labels(wall_s: float) -> dict[str, str]:
    """Whose a container is, and when it is certainly over."""
    return {OURS: installation(), WORKER: worker(), UNTIL: str(int(time.time() + wall_s + MARGIN_S))}


def installation() -> str:
    """All workers of one installation sign with the same key, and two installations on one engine do not."""
    return hashlib.sha256(f"containers of {settings.SECRET_KEY}".encode()).hexdigest()[:16]


def worker() -> str:
    """This process: a pid comes again, but not with the same start in the same boot and namespace."""
    return f"{_machine()} {os.getpid()} {_started(os.getpid())}"


@cache
def _machine() -> str:
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}/{os.readlink('/proc/self/ns/pid')}"


def _started(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def is_left(said: dict[str, str], now: float) -> bool:
    """Whether nobody waits for the container: its worker is dead, or its time is over by far."""
    try:
        machine, pid, started = said[WORKER].rsplit(" ", 2)
        if machine == _machine() and _started(int(pid)) != started:
            return True
        return float(said[UNTIL]) < now
    except (KeyError, ValueError):
        return True


def reap() -> int:
    """Remove the containers that dead workers of this installation left; returns how many. No engine: none."""
    from grading.grader.sandbox.containers import BROKEN, client  # the engine's package is an extra

    try:
        here = client()
        found = here.api.containers(all=True, filters={"label": f"{OURS}={installation()}"})
    except BROKEN:
        return 0
    removed = 0
    for container in found:
        if is_left(container["Labels"], time.time()):
            try:
                here.api.remove_container(container["Id"], force=True, v=True)
                removed += 1
            except BROKEN as broken:  # another reaper is at it, or the next one will be
                log.warning("container %s of a dead worker was not removed: %s", container["Id"][:12], broken)
    here.close()
    return removed
