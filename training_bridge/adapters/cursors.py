"""Where a trainer's checkpoint folder keeps our cursor: one synced file, so that a rollback rolls it back too."""

import json
import os
from pathlib import Path
from typing import Any

from training_bridge.client import GagarClient

CURSOR = "gagar.json"  # inside each checkpoint folder


def cursor_in(checkpoint: str | Path | None) -> dict[str, Any] | None:
    """Read what `GagarClient(cursor=…)` takes from a checkpoint folder; None if it holds none (killed in between)."""
    file = Path(checkpoint or "") / CURSOR
    return json.loads(file.read_text()) if checkpoint and file.is_file() else None


def save_cursor(client: GagarClient, checkpoint: str | Path) -> None:
    """Write the cursor into a checkpoint folder that is on disk already; the server then hears that it is durable."""
    with client.checkpoint() as cursor, (Path(checkpoint) / CURSOR).open("w") as file:
        file.write(json.dumps(cursor))
        file.flush()
        os.fsync(file.fileno())
