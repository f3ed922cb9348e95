"""One file that holds all a killed job needs: written beside, synced, then renamed."""

import contextlib
import fcntl
import os
import pickle
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from training_bridge.tiny_job.errors import WrongCheckpoint

FORMAT = 1


@contextlib.contextmanager
def held(path: Path, wait_s: float = 30.0) -> Iterator[None]:
    """Keep other processes off a checkpoint; the lock dies with the process, however that dies.

    Args:
        path: of the checkpoint; the lock is a file beside it.
        wait_s: how long to wait for another process, one that is just ending for example.
    Raises:
        WrongCheckpoint: another job still runs on it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + wait_s
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise WrongCheckpoint(f"{path} is in use by another job, expected none: stop it first") from None
                time.sleep(0.1)
        yield


def save(path: Path, state: dict) -> None:
    """Write a checkpoint so that a kill at any moment leaves the old one or the new one.

    Args:
        path: where it shall be.
        state: tensors and plain values.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.writing")
    with beside.open("wb") as file:
        torch.save({"format": FORMAT, **state}, file)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def load(path: Path) -> dict:
    """Read a checkpoint.

    Args:
        path: of the file.
    Returns:
        What was given to `save`.
    Raises:
        WrongCheckpoint: it is no checkpoint of this job, or of another format.
    """
    try:
        with torch.serialization.safe_globals([bytes]):  # how torch pickles an empty patch
            state = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as broken:
        raise WrongCheckpoint(f"{path} cannot be read ({broken}), expected a checkpoint of the tiny job") from broken
    found = state.get("format") if isinstance(state, dict) else None
    if found != FORMAT:
        raise WrongCheckpoint(f"{path} has format {found!r}, expected {FORMAT}")
    return state


def applied_groups(state: dict) -> list[dict]:
    """List every group that went into an optimiser step, in the order they did.

    Args:
        state: from `load`.
    Returns:
        {life, group, version, step, regime} each; a group that was applied twice would be here twice.
    """
    return [dict(zip(("life", "group", "version", "step", "regime"), row, strict=True)) for row in state["applied"]]
