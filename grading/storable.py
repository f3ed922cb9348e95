"""The one rule for text and numbers that others send us, and how JSON of theirs is read.

NUL and lone surrogates become their visible six characters (`\\u0000`, `\\udc80`), NaN and the infinities the strings
"NaN", "Infinity", "-Infinity": whatever we keep can be encoded, shown and put into any database.
"""

import json
import math
import re
from typing import Any

from grading.errors import BadInput

MAX_DEPTH = 64
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(value: Any) -> Any:
    """The same JSON value with the rule of this module applied to every text, key and number in it."""
    if isinstance(value, str):
        return _UNSTORABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {storable(key): storable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [storable(inner) for inner in value]
    return value


def decoded(data: bytes) -> str:
    """UTF-8 text; a byte that is none becomes visible as `\\udc80`..`\\udcff`, so nothing is lost and nothing fails."""
    return storable(data.decode("utf-8", "surrogateescape"))


def parse_json(data: bytes | str, *, where: str, decoder: json.JSONDecoder | None = None) -> Any:
    """Read JSON from outside.

    Args:
        data: the text; bytes that are not UTF-8 arrive as lone surrogates, which `storable` makes visible.
        where: said in the error.
        decoder: a stricter one, from `decoder_of`.
    Returns:
        The value as sent, NaN and lone surrogates included; call `storable` on what is kept.
    Raises:
        BadInput: not JSON, a key twice in one object, or deeper than MAX_DEPTH.
    """
    text = data.decode("utf-8", "surrogateescape") if isinstance(data, bytes) else data
    try:
        value = (decoder or _DECODER).decode(text.removeprefix("\ufeff"))
    except RecursionError:
        raise _too_deep(where) from None
    except ValueError as e:
        raise BadInput(f"{where} is not JSON", got=str(e)[:200], expected="one JSON value", where=where) from None
    if _may_be_deep(text):
        check_depth(value, where=where)
    return value


def canonical_line(event: dict | bytes | str, *, where: str) -> bytes:
    """One line of NDJSON: keys sorted, no spaces, UTF-8, the rule applied; the same event gives the same bytes."""
    if isinstance(event, bytes | str):
        event = parse_json(event, where=where)
    if not isinstance(event, dict):
        raise BadInput(f"{where} is not an object", got=type(event).__name__, expected="a JSON object", where=where)
    try:
        text = _ENCODER.encode(event)
        if _may_be_deep(text):
            check_depth(event, where=where)
        if "\\u0000" not in text:
            return text.encode() + b"\n"
    except RecursionError:
        raise _too_deep(where) from None
    except ValueError:  # a number that is not finite, or (UnicodeEncodeError) a lone surrogate
        check_depth(event, where=where)
    except TypeError as e:
        raise BadInput(f"{where} is not JSON", got=str(e), expected="text, numbers, lists, objects") from e
    return _ENCODER.encode(storable(event)).encode() + b"\n"


def check_depth(value: Any, *, where: str) -> None:
    """Raise BadInput when containers are nested deeper than MAX_DEPTH; never recurses itself."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for outer in level if isinstance(outer, dict | list | tuple) for inner in _inside(outer)]
        if not level:
            return
    raise _too_deep(where)


def _may_be_deep(text: str) -> bool:
    """Whether the text opens enough containers to be too deep; counting is far cheaper than walking."""
    return text.count("[") + text.count("{") > MAX_DEPTH


def _inside(container: dict | list | tuple) -> list:
    inner = container.values() if isinstance(container, dict) else container
    return [value for value in inner if isinstance(value, dict | list | tuple)]


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise ValueError(f"key {storable(twice)[:80]!r} twice in one object")
    return found


def decoder_of(**hooks: Any) -> json.JSONDecoder:
    """A decoder that refuses a key twice in one object. Made once: `json.loads` makes one each time."""
    return json.JSONDecoder(object_pairs_hook=_unique_keys, **hooks)


_DECODER = decoder_of()
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def _too_deep(where: str) -> BadInput:
    return BadInput(
        f"{where} is nested too deep", got=f"over {MAX_DEPTH} levels", expected=f"<= {MAX_DEPTH}", where=where
    )
