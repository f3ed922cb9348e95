"""The commands that read a JSON list of cases and print a JSON list of results, in the same order."""

import json
from collections.abc import Callable
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

BAD_CASE, UNREADABLE = 1, 2


class CaseCommand(BaseCommand):
    """Runs `case_result` over a file. A bad case is `{"error": ...}`, and the exit status 1."""

    case_result: Callable[[object], dict]
    requires_system_checks = []

    def add_arguments(self, parser):
        parser.add_argument("path", metavar="CASES.json", type=Path, help="a JSON list of cases")

    def handle(self, *, path: Path, **options):
        results = [result_or_error(type(self).case_result, case) for case in read_cases(path)]
        self.stdout.write(json.dumps(results, allow_nan=False))
        bad = [place for place, result in enumerate(results) if "error" in result]
        if bad:
            places = ", ".join(map(str, bad[:10])) + (", ..." if len(bad) > 10 else "")
            raise CommandError(f"{len(bad)} of {len(results)} cases are bad: {places}", returncode=BAD_CASE)


def read_cases(path: Path) -> list:
    """Read the list of cases.

    Raises:
        CommandError: the file is not there, no UTF-8, no JSON, or holds no list; exit status 2.
    """
    try:
        cases = json.loads(path.read_bytes(), parse_int=_integer, object_pairs_hook=_object)
    except (OSError, ValueError, RecursionError) as e:
        raise CommandError(f"{path} is unreadable: {e}; expected a JSON list of cases", returncode=UNREADABLE) from e
    if not isinstance(cases, list):
        raise CommandError(f"{path} holds a {type(cases).__name__}, expected a list of cases", returncode=UNREADABLE)
    return cases


def result_or_error(case_result: Callable[[object], dict], case: object) -> dict:
    """Return the result of one case, or `{"error": <words>}`."""
    try:
        return case_result(case)
    except ValueError as e:
        return {"error": str(e)}


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:  # Python converts no more than 4,300 digits; such a number is beyond any double
        return float(digits)


def _object(pairs: list[tuple[str, object]]) -> object:
    # A key that is there twice has no one value. Its object becomes text, which no case accepts.
    keys = [key for key, _ in pairs]
    repeated = next((key for key in keys if keys.count(key) > 1), None) if len(set(keys)) < len(keys) else None
    return dict(pairs) if repeated is None else f"object with the key {repeated!r} twice"
