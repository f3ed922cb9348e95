"""JSON from the wire, strictly read. The one rule for what others send:

refused with the place: text that is not UTF-8 or not JSON, a key twice in one object, more than 64 levels, bare NaN,
Infinity and 1e999; NUL and lone surrogates in anything that names something (ids, keys, versions) and in a patch.
Kept, made visible as `\\u0000` and `\\udc80` (storable.py): NUL and lone surrogates that are only text.
"""

import math
from typing import Any

from grading.errors import BadInput
from grading.storable import decoder_of, parse_json


def strict_json(data: bytes, *, where: str) -> Any:
    """Read one JSON value by the rule of this module, or raise BadInput that names the place."""
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        raise BadInput(
            f"{where} is not UTF-8", got=f"byte 0x{data[e.start]:02x} at {e.start}", expected="UTF-8", where=where
        ) from None
    try:
        return parse_json(text, where=where, decoder=_FINITE)
    except _Unfinite:
        value = parse_json(text, where=where)
        _refuse_unfinite(value, where)
        return value


class _Unfinite(Exception):
    pass


def _finite(text: str) -> float:
    """The hook for floats, and for the bare words NaN and Infinity: looking at every value afterwards is slower."""
    value = float(text)
    if not math.isfinite(value):
        raise _Unfinite
    return value


_FINITE = decoder_of(parse_float=_finite, parse_constant=_finite)


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
