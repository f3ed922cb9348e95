"""JSON from the wire, strictly read. The one rule for what others send:

refused with the place: text that is not UTF-8 or not JSON, a key twice in one object, more than 64 levels, bare NaN,
Infinity and 1e999; NUL and lone surrogates in anything that names something (ids, keys, versions) and in a patch.
Kept, made visible as `\\u0000` and `\\udc80` (storable.py): NUL and lone surrogates that are only text.
"""

import math
from typing import Any

from grading.errors import BadInput
from grading.storable import parse_json


def strict_json(data: bytes, *, where: str) -> Any:
    """Read one JSON value by the rule of this module, or raise BadInput that names the place."""
    try:
        data.decode()
    except UnicodeDecodeError as e:
        raise BadInput(
            f"{where} is not UTF-8", got=f"byte 0x{data[e.start]:02x} at {e.start}", expected="UTF-8", where=where
        ) from None
    value = parse_json(data, where=where)
    if not _is_finite(value):
        _refuse_unfinite(value, where)
    return value


def _is_finite(value: Any) -> bool:
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
        elif isinstance(inner, float) and not math.isfinite(inner):
            return False
    return True


def _refuse_unfinite(value: Any, where: str) -> None:
    waiting = [(value, "")]
    while waiting:
        inner, path = waiting.pop()
        if isinstance(inner, dict):
            waiting += [(item, f"{path}.{key}" if path else key) for key, item in reversed(inner.items())]
        elif isinstance(inner, list):
            waiting += [(item, f"{path}[{at}]") for at, item in reversed(list(enumerate(inner)))]
        elif isinstance(inner, float) and not math.isfinite(inner):
            raise BadInput(
                f"{where} holds a number that is not finite",
                got=str(inner),
                expected='a finite number; a reward may be the string "NaN", "Infinity" or "-Infinity"',
                where=path or where,
            )
