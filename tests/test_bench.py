"""The benchmarks run once in a while; what they import is held to the code every day."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ("bench", "gagar_web", "grading", "training_bridge", "tests")
MODULES = sorted(path.stem for path in (ROOT / "bench").glob("*.py") if not path.stem.startswith("__"))


def names_taken(source: str):
    """Module and name of every `from … import …` of ours, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in OURS:
            yield from ((node.module, alias.name) for alias in node.names)


def has(module: str, name: str) -> bool:
    try:
        return hasattr(import_module(module), name) or bool(import_module(f"{module}.{name}"))
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_imports_and_finds_all_it_takes_from_us(name):
    import_module(f"bench.{name}")
    taken = set(names_taken((ROOT / "bench" / f"{name}.py").read_text()))
    assert [place for place in taken if not has(*place)] == []


def test_a_name_that_is_gone_is_found():
    assert list(names_taken("def f():\n    from bench.pages import gone")) == [("bench.pages", "gone")]
    assert not has("bench.pages", "gone") and has("bench.pages", "start_django") and has("bench", "pages")
