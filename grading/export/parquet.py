"""Rows as parquet, in batches by the schema of their kind: docs/export.md."""

from collections.abc import Iterable
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from grading.export.files import Row
from grading.scoring.criteria import CRITERIA, FLAGS

BATCH = 500
_COUNTS = ("step", "life", "verdict", "origin", "decision", "redacted")
_PROVENANCE = pa.struct(
    [
        (name, pa.int64() if name in _COUNTS else pa.string())
        for name in (
            "format",
            "run",
            "group",
            "life",
            "step",
            "task",
            "verdict",
            "origin",
            "source",
            "decision",
            "decided_at",
            "reviewer",
            "grader",
            "rubric",
            "formula",
            "redacted",
        )
    ]  # fmt: skip
)
SCHEMAS = {
    "preferences": pa.schema(
        [("prompt", pa.string()), ("chosen", pa.string()), ("rejected", pa.string()), ("is_tie", pa.bool_()),
         ("chosen_id", pa.string()), ("rejected_id", pa.string()), ("chosen_tier", pa.int8()),
         ("rejected_tier", pa.int8()), ("gap", pa.float64()), ("provenance", _PROVENANCE)]
    ),
    "labels": pa.schema(
        [("id", pa.string()), ("letter", pa.string()), ("outcome", pa.string()), ("tier", pa.int8()),
         ("rank", pa.int16()), ("factor", pa.float64()), ("weighted_score", pa.float64()),
         *((c, pa.int8()) for c in CRITERIA), *((flag, pa.bool_()) for flag in FLAGS),
         *((f"grader_{c}", pa.int8()) for c in CRITERIA), *((f"grader_{flag}", pa.bool_()) for flag in FLAGS),
         ("grader_tier", pa.int8()), ("grader_rank", pa.int16()), ("is_changed", pa.bool_()), ("reason", pa.string()),
         ("provenance", _PROVENANCE)]
    ),
}  # fmt: skip


def write_parquet(rows: Iterable[Row], kind: str, file: IO[bytes]) -> int:
    """Write rows in batches by the schema of their kind. Returns how many."""
    schema, count, batch = SCHEMAS[kind], 0, []
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for row in rows:
            batch.append(row)
            count += 1
            if len(batch) == BATCH:
                writer.write_table(pa.Table.from_pylist(batch, schema=schema))
                batch = []
        if batch or not count:
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
    return count
