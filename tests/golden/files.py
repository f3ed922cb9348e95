"""The golden files beside the repository, and how their values are compared."""

import json
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parents[2].parent / "shared" / "golden"


def path_of(name: str) -> Path:
    path = GOLDEN / name
    if not path.is_file():
        pytest.skip(f"the golden file {name} is not beside this checkout")
    return path


def cases(name: str) -> list[dict]:
    return json.loads(path_of(name).read_text())


def difference(got: object, expected: object, where: str = "") -> str | None:
    """Name the first place where a result differs from the golden one: keys, types, floats by more than 1e-12."""
    if isinstance(expected, dict):
        if not isinstance(got, dict) or got.keys() != expected.keys():
            return f"{where}: got {got}, expected {expected}"
        inside = (difference(got[key], expected[key], f"{where}.{key}") for key in expected)
        return next((found for found in inside if found), None)
    if isinstance(expected, float):
        same = isinstance(got, float) and abs(got - expected) <= 1e-12
    else:
        same = type(got) is type(expected) and got == expected
    return None if same else f"{where}: got {got!r}, expected {expected!r}"
