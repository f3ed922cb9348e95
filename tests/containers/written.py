"""compose.yaml and the Dockerfile as read: what each role is started with."""

import json
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ("postgres", "redis", "rabbitmq")
_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def compose() -> dict:
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def roles() -> dict[str, dict]:
    """The containers made from our image."""
    return {name: service for name, service in compose()["services"].items() if name not in SERVICES}


def variables(text: str) -> dict[str, str | None]:
    """Variables a person may set, with their defaults; None: must be set."""
    return {name: default if mark == "-" else None for name, mark, default in _VARIABLE.findall(text)}


def filled(word: str, environ: dict[str, str]) -> str:
    """As compose would: the variable, else its default."""

    def value(found: re.Match) -> str:
        name, mark, default = found.groups()
        return environ.get(name) or (default if mark == "-" else environ[name])

    return _VARIABLE.sub(value, str(word))


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, continued lines joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.M).replace("\\\n", " ")
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in text.splitlines() if line.strip()]


def last(name: str) -> str:
    return [words for instruction, words in instructions() if instruction == name][-1]


def web_command() -> list[str]:
    return json.loads(last("CMD"))
