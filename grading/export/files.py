"""Rows as JSON lines, as they come; never all of them in memory. Parquet has a file of its own."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from grading.errors import BadInput
from grading.export import labels, preferences, sft
from grading.export.redact import Redactor

Row = dict[str, Any]
KINDS: dict[str, Callable[[Any, Counter], Iterator[Row]]] = {
    "sft": sft.rows,
    "preferences": preferences.rows,
    "labels": labels.rows,
}
FORMATS = {"sft": ("jsonl",), "preferences": ("jsonl", "parquet"), "labels": ("jsonl", "parquet")}


def check_kind(kind: str, format: str) -> None:
    """Raise BadInput for a file that is not made."""
    if kind not in KINDS:
        raise BadInput("no such export", got=kind[:40], expected=", ".join(KINDS))
    if format not in FORMATS[kind]:
        raise BadInput(f"{kind} are not exported as that", got=format[:20], expected=" or ".join(FORMATS[kind]))


def rows_of(kind: str, runs, left_out: Counter) -> Iterator[Row]:
    """The rows of an export. Whatever a person or an agent wrote has gone through the redactor."""
    return map(_redacted, KINDS[kind](runs, left_out)) if kind == "labels" else KINDS[kind](runs, left_out)


def _redacted(row: Row) -> Row:
    redactor = Redactor()
    row["reason"] = redactor.text(row["reason"])
    row["provenance"]["redacted"] = redactor.count
    return row


def json_lines(rows: Iterable[Row]) -> Iterator[bytes]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def write_lines(rows: Iterable[Row], file: IO[bytes]) -> int:
    """Write rows as JSON lines. Returns how many."""
    count = 0
    for line in json_lines(rows):
        file.write(line)
        count += 1
    return count
