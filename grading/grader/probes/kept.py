"""Trials in a folder, for the process that probes: one file each, JSON. Core."""

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from grading.grader.probes.trials import Trial, Try


def write_trials(trials: Sequence[Trial], folder: Path) -> None:
    """Write trials. Args: trials; folder: made here."""
    folder.mkdir(parents=True)
    for number, trial in enumerate(trials):
        text = json.dumps(asdict(trial), default=_packed)
        (folder / f"{number:06d}.json").write_text(text, "utf-8")


def read_trials(folder: Path) -> list[Trial]:
    """Returns: the trials that `write_trials` wrote, in order."""
    return [_trial(json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("*.json"))]


def _packed(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return str(value)


def _unpacked(value: Any) -> Any:
    is_bytes = isinstance(value, dict) and value.keys() == {"base64"}
    return base64.b64decode(value["base64"]) if is_bytes else value


def _trial(said: dict[str, Any]) -> Trial:
    tries = tuple(_try(one) for one in said["tries"])
    human = tuple(map(tuple, said["human"]))
    return Trial(said["key"], said["statement"], tries, _unpacked(said["reference"]), human)


def _try(said: dict[str, Any]) -> Try:
    found = {one.name: _unpacked(said[one.name]) for one in fields(Try)}
    return Try(**{**found, "events": tuple(found["events"]), "tests": tuple(found["tests"])})
