"""The rules of the house, kept by the build."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import get_commands
from django.urls import URLPattern, get_resolver

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
OURS = ("gagar_web", "grading", "training_bridge")
# Not rows of a team: people themselves, and rubric versions, which every team shares.
SHARED_ROWS = {"User", "RubricVersion"}


def _patterns(patterns=None, prefix=""):
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        where = prefix + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield where, pattern.callback
        else:
            yield from _patterns(pattern.url_patterns, where)


def test_imports_point_one_way():
    from importlinter.cli import lint_imports

    assert lint_imports() == 0


def test_every_view_says_who_may_open_it():
    silent = [
        where
        for where, view in _patterns()
        if not getattr(view, "access", None) and not getattr(getattr(view, "view_class", None), "access", None)
    ]
    assert not silent, f"views without an access mark: {silent}"


def test_every_row_of_a_team_has_the_door_visible_to():
    closed = [
        model.__name__
        for label in ("grading", "training_bridge")
        for model in apps.get_app_config(label).get_models()
        if model.__name__ not in SHARED_ROWS and not hasattr(model._default_manager, "visible_to")
    ]
    assert not closed, f"models without visible_to: {closed}"


def test_views_reach_rows_only_through_visible_to():
    """A view that starts a query anywhere else can show another team's rows."""
    doors = re.compile(
        r"\b(Run|RolloutGroup|Trajectory|Task|Verdict|Decision|Delivery|Evidence|Signal)\.objects\.(?!visible_to)"
    )
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for package in OURS
        for path in (ROOT / package).rglob("*views*.py")
        if re.match("(.+_)?views", path.name)  # a review is no view
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if doors.search(line)
    ]
    assert not found, f"queries past visible_to: {found}"


def test_every_environment_variable_is_in_the_readme():
    names = set(re.findall(r'env_\w+\(\s*"([A-Z_]+)"', (ROOT / "gagar_web" / "settings.py").read_text()))
    missing = sorted(name for name in names if name not in README.read_text())
    assert not missing, f"undocumented settings: {missing}"


def test_every_command_is_in_the_readme():
    ours = sorted(name for name, app in get_commands().items() if app in OURS)
    missing = [name for name in ours if not re.search(rf"manage\.py {name}\b|make {name}\b", README.read_text())]
    assert ours and not missing, f"undocumented commands: {missing}"


@pytest.mark.parametrize("package", OURS)
def test_files_stay_short(package):
    long = [
        f"{path.relative_to(ROOT)}: {lines} lines"
        for path in (ROOT / package).rglob("*.py")
        if "migrations" not in path.parts and (lines := len(path.read_text().splitlines())) > 300
    ]
    assert not long, f"files over 300 lines: {long}"


def _code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function without its docstring, which style.md asks to be whole rather than short."""
    first = function.body[0]
    told = ast.get_docstring(function, clean=False) is not None
    return function.end_lineno - function.lineno + 1 - (first.end_lineno - first.lineno + 1 if told else 0)


@pytest.mark.parametrize("package", OURS)
def test_functions_stay_short(package):
    long = [
        f"{path.relative_to(ROOT)}: {node.name}, {lines} lines"
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (lines := _code_lines(node)) > 40
    ]
    assert not long, f"functions over 40 lines: {long}"


def test_a_start_of_the_site_loads_no_statistics_and_no_torch():
    """They take seconds. `import scipy` loads its parts when they are first used; `from scipy import stats` at once."""
    code = (
        "import sys, django; django.setup(); import gagar_web.urls; "
        "bad = {'scipy.stats', 'scipy.optimize', 'torch', 'pyarrow', 'pydantic_ai'} & set(sys.modules); "
        "assert not bad, bad"
    )
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "gagar_web.settings"}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=environ)


def test_the_plain_package_needs_neither_django_nor_torch():
    code = (
        "import sys; import training_bridge.client, training_bridge.protocol.sessions; "
        "bad = {'django', 'torch', 'grading', 'rest_framework', 'celery'} & set(sys.modules); "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
