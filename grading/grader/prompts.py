"""Prompts are files, put together from parts and frozen once used: `manifest.json` holds the digest of each. Core.

A change is a new file with the next number and a new entry; an old entry stays, as gradings of the past name it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "prompt_files"


@dataclass(frozen=True)
class Prompt:
    """The words of one prompt; `name` is what a grading keeps: `single_pass@1:0f3a…`."""

    name: str
    text: str


@cache
def manifest() -> Mapping[str, Any]:
    """Returns: `files` (name -> sha256) and `prompts` (name@version -> its files in order)."""
    return json.loads((FOLDER / "manifest.json").read_text("utf-8"))


@cache
def prompt(name: str, version: int | None = None) -> Prompt:
    """Put a prompt together.

    Args:
        name: of the prompt, such as `single_pass`.
        version: None for the newest.
    Returns:
        The prompt.
    Raises:
        KeyError: no such prompt or version.
    """
    versions = [int(key.partition("@")[2]) for key in manifest()["prompts"] if key.partition("@")[0] == name]
    if not versions:
        raise KeyError(f"no prompt {name!r} in manifest.json")
    full = f"{name}@{version or max(versions)}"
    text = "\n".join((FOLDER / part).read_text("utf-8") for part in manifest()["prompts"][full])
    return Prompt(f"{full}:{digest(text.encode())[:8]}", text)


def digest(data: bytes) -> str:
    """Returns: the sha256 that the manifest holds for a file."""
    return hashlib.sha256(data).hexdigest()
