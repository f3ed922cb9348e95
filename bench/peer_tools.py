"""Other people's tools, installed on first use into .venv-peers beside the checkout's own environment."""

import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".venv-peers"
INSPECT, DIFF2HTML = "inspect_ai==0.3.285", "diff2html@3.4.56"
INSTALL_S = 900


def inspect_python() -> Path | None:
    """The Python that has Inspect; None, and said why, where it cannot be installed."""
    python = FOLDER / "bin/python"
    if not (FOLDER / "bin/inspect").exists():
        made = _ran([sys.executable, "-m", "venv", str(FOLDER)]) and _ran(
            [str(python), "-m", "pip", "install", "--quiet", INSPECT]
        )
        return python if made else _skipped("Inspect")
    return python


def diff2html() -> Path | None:
    """The folder of diff2html's bundles; None, and said why, where it cannot be installed."""
    bundles = FOLDER / "node_modules/diff2html/bundles"
    if not bundles.is_dir():
        FOLDER.mkdir(exist_ok=True)
        npm = shutil.which("npm")
        if npm is None or not _ran([npm, "install", "--silent", "--prefix", str(FOLDER), DIFF2HTML]):
            return _skipped("diff2html")
    return bundles


def _ran(command: list[str]) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as failure:
        print(f"{command[0]}: {failure}")
        return False
    if done.returncode:
        print("\n".join(done.stderr.strip().splitlines()[-3:]))
    return done.returncode == 0


def _skipped(what: str) -> None:
    print(f"{what}: not measured, it could not be installed into {FOLDER.name}")
