"""`python -m training_bridge.tiny_job.inspect CHECKPOINT`: what a checkpoint of the tiny job holds, as JSON."""

import argparse
import json
import sys
from pathlib import Path

from training_bridge.tiny_job import checkpoint
from training_bridge.tiny_job.errors import WrongCheckpoint


def main(argv: list[str] | None = None) -> int:
    """Print the step, the groups applied (each (life, group) must be there once) and those still waiting."""
    parser = argparse.ArgumentParser(prog="python -m training_bridge.tiny_job.inspect", description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    options = parser.parse_args(argv)
    try:
        state = checkpoint.load(options.checkpoint)
    except WrongCheckpoint as wrong:
        print(wrong, file=sys.stderr)
        return 2
    waiting = [{"life": group["life"], "group": group["key"], "step": group["step"]} for group in state["pending"]]
    found = {
        "step": state["step"],
        "plan": state["plan"],
        "applied": checkpoint.applied_groups(state),
        "waiting": waiting,
        "cursor": state["gagar"],
    }
    print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
