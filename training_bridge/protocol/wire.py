"""Reading and writing the messages as JSON text: strict about shape, deaf to fields it does not know, which it counts.

A stream row is encoded once, by `encode_row`; the server stores that text and sends it byte for byte.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from training_bridge.protocol.messages import (
    LIMIT_BYTES,
    METRIC_CHARS,
    AdvantageRow,
    Estimator,
    JobMessage,
    Message,
    ProtocolError,
    Row,
    ServerMessage,
)

_EXPECTED = re.compile(r"Expected (?P<expected>.+?)(?:, got (?P<got>.+?))?(?: - at `(?P<place>.+)`)?")


def encode(message: Message) -> str:
    """Write one message.

    Args:
        message: any message of this file, built by us.
    Returns:
        Its JSON text, readable by `decode_from_job` or `decode_from_server`.
    Raises:
        ProtocolError: a float is not finite, a field is out of its bounds, or the text reaches 256 KiB.
    """
    body = msgspec.json.encode(message)
    if not _reads_back(body, message):
        _refuse_non_finite(message)
        _read(body, type(message), Counter())
    return body.decode()


def _reads_back(body: bytes, message: Message) -> bool:
    """Structs are not checked when built: what we send must be what we accept. NaN, written as null, differs."""
    try:
        return len(body) < LIMIT_BYTES and msgspec.json.decode(body, type=type(message)) == message
    except msgspec.ValidationError:
        return False


def encode_row(row: Row) -> tuple[str, str]:
    """Write one stream row for storage.

    Args:
        row: the decision or the control, with its `seq`.
    Returns:
        The JSON text to store and send byte for byte, and the hex sha256 of its UTF-8 bytes.
    Raises:
        ProtocolError: as `encode`.
    """
    text = encode(row)
    return text, digest_of(text)


def digest_of(text: str) -> str:
    """The hex sha256 of a row's text, as a resume carries it."""
    return hashlib.sha256(text.encode()).hexdigest()


def decode_from_job(text: str | bytes, unknown: Counter[str] | None = None) -> JobMessage:
    """Read what a job sent.

    Args:
        text: one websocket message.
        unknown: counts fields we do not know, by `type.field`; they are ignored.
    Returns:
        The message.
    Raises:
        ProtocolError: not JSON, NaN or Infinity, 256 KiB or more, a wrong type or value, or a server's message.
    """
    return _read(text, JobMessage, unknown if unknown is not None else Counter())


def decode_from_server(text: str | bytes, unknown: Counter[str] | None = None) -> ServerMessage:
    """Read what the server sent. Args, Returns and Raises as `decode_from_job`."""
    return _read(text, ServerMessage, unknown if unknown is not None else Counter())


def metric_values(values: Mapping[str, Any]) -> dict[str, float | str]:
    """Turn a trainer's numbers into what `metrics` carries.

    Args:
        values: name to anything `float()` takes (numpy and torch scalars too); no unit of its own.
    Returns:
        Finite values as floats, the others as "NaN", "Infinity", "-Infinity".
    Raises:
        TypeError, ValueError: a value is no number.
        ProtocolError: a name is empty or longer than 80 characters.
    """
    for name in map(str, values):
        if not 0 < len(name) <= METRIC_CHARS:
            got = f"{len(name)} characters"
            raise ProtocolError(f"name of metric {name!r}", got=got, expected=f"1 to {METRIC_CHARS} characters")
    return {str(name): _number_or_word(float(value)) for name, value in values.items()}


def _number_or_word(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _read(text: str | bytes, kind: Any, unknown: Counter[str]) -> Any:
    body = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(body) >= LIMIT_BYTES:
        raise ProtocolError("message too large", got=f"{len(body)} bytes", expected=f"less than {LIMIT_BYTES}")
    try:
        plain = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError("message is not JSON", got=error, expected="one JSON object of finite numbers") from error
    try:
        message = msgspec.convert(plain, type=kind)
    except msgspec.ValidationError as error:
        raise _wrong_shape(plain, error) from error
    _count_unknown(plain, message, unknown)
    return message


def _wrong_shape(plain: object, error: msgspec.ValidationError) -> ProtocolError:
    name = str(plain.get("type"))[:40] if isinstance(plain, dict) else "(no object)"
    match = _EXPECTED.fullmatch(str(error))
    if match is None:
        return ProtocolError(f"message `{name}`", got=error, expected="the shape of protocol version 1")
    place = match["place"] or "$"
    return ProtocolError(
        f"message `{name}` at {place}", got=match["got"] or "another value", expected=match["expected"]
    )


def _count_unknown(plain: dict[str, Any], message: Message, unknown: Counter[str]) -> None:
    name = plain["type"]
    unknown.update(f"{name}.{key}" for key in plain.keys() - {"type", *message.__struct_encode_fields__})
    nested = [plain.get("estimator"), *(plain.get("rows") or ())]
    shapes = (Estimator.__struct_encode_fields__, *[AdvantageRow.__struct_encode_fields__] * (len(nested) - 1))
    for inner, fields in zip(nested, shapes, strict=True):
        if isinstance(inner, dict):
            unknown.update(f"{name}.{key}" for key in inner.keys() - set(fields))


def _refuse_non_finite(value: object, place: str = "$") -> None:
    # msgspec would write NaN as null, and a reward may be null: the loss would be silent
    if isinstance(value, float) and not math.isfinite(value):
        raise ProtocolError(f"number at {place}", got=value, expected="a finite number")
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            _refuse_non_finite(getattr(value, field), f"{place}.{field}")
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            _refuse_non_finite(item, f"{place}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_non_finite(item, f"{place}.{key}")
