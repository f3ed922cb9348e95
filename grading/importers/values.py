"""What values in a foreign JSON document mean to us: numbers, texts, patches; anything else counts as not given."""

import json
import math
from typing import Any

from grading.storable import storable


def number(value: Any) -> int | float | None:
    """The value if it is a finite number of a size a database holds, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) and abs(value) < 2**53 else None


def numbers(**values: Any) -> dict[str, int | float]:
    """Those of the values that are numbers."""
    return {name: value for name, value in values.items() if number(value) is not None}


def text_of(content: Any) -> str:
    """The text of a chat message: a string, or a list of parts; a part that is no text is kept as it was written."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "\n".join(_part_text(part) for part in parts)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return part["text"]
    return as_text(part)


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def as_bytes(text: Any) -> bytes | None:
    """A patch out of JSON text, as the bytes it was; None for none or for white space only."""
    if not isinstance(text, str) or not text.strip():
        return None
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return storable(text).encode()


def mapping(value: Any) -> dict:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list:
    return value if isinstance(value, list) else []


def words(value: Any, limit: int = 200) -> str:
    """A short text of a foreign document as one that a column takes; empty text for anything else."""
    return storable(value)[:limit] if isinstance(value, str) else ""
