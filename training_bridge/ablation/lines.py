"""One JSON line for each run and step: everything the curves, the table and the picture are made from. Core."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

ARMS = ("outcome", "downweight_only", "redistribute", "redistribute_shuffled", "redistribute_inverted")
REPORTED = (  # by the job
    "pass_rate", "clean_pass_rate", "clean_share", "hack_share", "pasted_share", "needless_edits", "turns",
    "response_tokens", "pg_loss", "entropy", "deficit", "groups_trained",
)  # fmt: skip
DERIVED = ("credit_kept", "penalty_kept", "balance", "regime_fallback")  # by the server, from what it delivered
GRADED = ("mean_w", "t1_share", "ranked")  # of the passes in mixed groups, by the static grader's verdicts

Line = dict[str, str | int | float | None]


def write(path: Path, lines: Iterable[Line]) -> None:
    """Write lines, the file whole or not at all; numbers with six significant digits."""
    beside = path.with_name(f"{path.name}.writing")
    with beside.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps({key: _short(value) for key, value in line.items()}) + "\n")
    beside.replace(path)


def read(path: Path) -> list[Line]:
    """Read what `write` wrote, also compressed by gzip.

    Raises:
        ValueError: a line is no object with a method of the ablation, a seed and a step; names the line.
    """
    lines = []
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for number, text in enumerate(raw.decode().splitlines(), 1):
        line = json.loads(text)
        if not isinstance(line, dict) or line.get("method") not in ARMS or not {"seed", "step"} <= line.keys():
            raise ValueError(f"{path}:{number} is {text[:80]!r}, expected an object with method, seed and step")
        lines.append(line)
    return lines


def _short(value: object) -> object:
    return float(f"{value:.6g}") if isinstance(value, float) else value
