"""Fields of the wire that take what they say and convert nothing; each error message says what is expected."""

import base64
import binascii
from functools import cache
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from grading.errors import WrongShape
from grading.storable import storable

BIG = 2**31 - 1
MISSING = {"required": "a value", "null": "a value, not null"}
UNFINITE = ("NaN", "Infinity", "-Infinity")


class Text(serializers.CharField):
    """Text that is only text: stored by storable's rule, NUL and lone surrogates made visible."""

    default_error_messages = {
        "invalid": "text",
        "blank": "text that is not empty",
        "max_length": "{max_length} characters at most",
    }

    def __init__(self, **kwargs):
        super().__init__(**{"trim_whitespace": False, "allow_blank": True} | kwargs)

    def to_internal_value(self, data):
        if not isinstance(data, str):
            self.fail("invalid")
        return storable(data)


class Name(serializers.CharField):
    """An id, a key, a version: short, printable, compared byte for byte."""

    default_error_messages = {
        "invalid": "printable text",
        "blank": "text that is not empty",
        "max_length": "{max_length} characters at most",
    }

    def __init__(self, **kwargs):
        super().__init__(**{"trim_whitespace": False, "max_length": 200} | kwargs)

    def run_validation(self, data=serializers.empty):
        if isinstance(data, str) and not data.isprintable():
            self.fail("invalid")
        return super().run_validation(data)

    def to_internal_value(self, data):
        if not isinstance(data, str):
            self.fail("invalid")
        return data


class Version(Name):
    """A policy version: text, or a whole number that becomes text; null where the job counts none."""

    def run_validation(self, data=serializers.empty):
        if data is None and self.allow_blank:
            return ""
        is_number = isinstance(data, int) and not isinstance(data, bool)
        return super().run_validation(str(data) if is_number and abs(data) < 2**63 else data)


class Whole(serializers.IntegerField):
    default_error_messages = {
        "invalid": "a whole number",
        "min_value": "{min_value} or more",
        "max_value": "{max_value} at most",
    }

    def __init__(self, **kwargs):
        super().__init__(**{"min_value": 0, "max_value": BIG} | kwargs)

    def to_internal_value(self, data):
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return data


class Truth(serializers.BooleanField):
    default_error_messages = {"invalid": "true or false"}

    def to_internal_value(self, data):
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class OneOf(serializers.ChoiceField):
    def __init__(self, choices, **kwargs):
        words = f"one of {', '.join(value for value, _ in choices)}"
        super().__init__(choices=choices, error_messages={"invalid_choice": words, "null": words}, **kwargs)


@extend_schema_field({"oneOf": [{"type": "number"}, {"type": "string", "enum": list(UNFINITE)}]})
class Reward(serializers.Field):
    """A finite number, or one of three strings; as text that reads back to the same float."""

    default_error_messages = {"invalid": 'a finite number, or the string "NaN", "Infinity" or "-Infinity"'}

    def to_internal_value(self, data):
        if data in UNFINITE:
            return data
        if not isinstance(data, int | float) or isinstance(data, bool) or abs(data) > 1e300:
            self.fail("invalid")
        return repr(float(data) + 0.0)  # -0.0 becomes 0.0

    def to_representation(self, value):
        if not value:
            return None
        return value if value in UNFINITE else float(value)


@extend_schema_field({"type": "object", "additionalProperties": {"type": "number"}})
class Numbers(serializers.Field):
    """Named finite numbers; null is left out."""

    default_error_messages = {"invalid": "an object of at most 100 named finite numbers below 2**63"}

    def to_internal_value(self, data):
        if not isinstance(data, dict) or len(data) > 100:
            self.fail("invalid")
        said = {storable(name): value for name, value in data.items() if value is not None}
        for name, value in said.items():
            if len(name) > 100 or not isinstance(value, int | float) or isinstance(value, bool) or abs(value) >= 2**63:
                self.fail("invalid")
        return said

    def to_representation(self, value):
        return value


@extend_schema_field(OpenApiTypes.BYTE)
class Base64(serializers.Field):
    default_error_messages = {"invalid": "base64"}

    def to_internal_value(self, data):
        try:
            return base64.b64decode(data, validate=True)
        except (TypeError, ValueError, binascii.Error):
            self.fail("invalid")


@extend_schema_field(OpenApiTypes.STR)
class WireText(serializers.Field):
    """Text that is kept as bytes, in UTF-8. What UTF-8 cannot say is refused: base64 can."""

    default_error_messages = {"invalid": "text that UTF-8 can say; anything else in the field with _base64"}

    def to_internal_value(self, data):
        try:
            return data.encode()
        except (AttributeError, UnicodeEncodeError):
            self.fail("invalid")


class Wire(serializers.Serializer):
    """A JSON object of the wire. Unknown fields are passed over."""

    default_error_messages = {"invalid": "a JSON object"}


def checked(wire: type[serializers.Serializer], data: Any, *, where: str = "") -> dict:
    """The validated fields, or WrongShape that names the first wrong one."""
    try:
        return shape(wire).run_validation(data)
    except serializers.ValidationError as refused:
        wrong = list(_leaves(refused.detail, ()))
    path, message = wrong[0]
    got, is_there = _at(data, path)
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    what = "this has another type or value" if is_there or not path else "this is missing"
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    raise WrongShape(
        what + more,
        got=got,
        expected=MISSING.get(message.code, str(message)),
        where=f"{where}: {place}" if where else place,
    )


def unknown_fields(wire: type[serializers.Serializer], data: dict) -> list[str]:
    """Names the shape does not know, to be told: a misspelt field must not vanish without a word."""
    return sorted(storable(name)[:100] for name in data.keys() - shape(wire).fields.keys() - {"type"})[:20]


@cache
def shape(wire: type[serializers.Serializer]) -> serializers.Serializer:
    """One serializer for all calls: it keeps nothing of them, and building its fields costs more than using them."""
    return wire()


def _leaves(errors, path: tuple):
    if isinstance(errors, dict):
        for key, inner in errors.items():
            yield from _leaves(inner, path if key == "non_field_errors" else (*path, key))
    else:
        for at, inner in enumerate(errors):
            if isinstance(inner, dict | list):
                yield from _leaves(inner, (*path, at))
            else:
                yield path, inner


def _at(data: Any, path: tuple) -> tuple[Any, bool]:
    for part in path:
        if isinstance(data, dict) and part in data or isinstance(data, list) and part < len(data):
            data = data[part]
        else:
            return None, False
    return data, True
