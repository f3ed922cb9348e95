"""What a path in a patch is: a test, a file that steers the test runner, or something left behind. Core."""

import re
from pathlib import PurePosixPath

# `test/` alone is no sign: django/test/client.py is product code. At the root or under src it is.
_TEST_FOLDERS = frozenset({"tests", "__tests__", "spec", "specs", "testdata", "test_data", "unittests"})
_TEST_NAME = re.compile(
    r"""^(
        test_.+\.(py|rb|c|cc|cpp) | .+_tests?\.py | tests?\.py | .+_test\.(go|cc|cpp|c|dart|exs) | .+_spec\.rb
      | .+\.(test|spec)\.[cm]?[jt]sx? | (Test.+ | .+(Tests?|TestCase|IT))\.(java|kt|scala|groovy|cs|php|swift)
    )$""",
    re.VERBOSE,
)
_LEFTOVER_NAME = re.compile(
    r"(\.(orig|rej|bak|backup|swp|swo|tmp|pyc)|~|\.py\.\d+)$|^(\.DS_Store|Thumbs\.db|core|nohup\.out|patch\.txt)$",
    re.IGNORECASE,
)
_LEFTOVER_FOLDERS = frozenset(
    {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".idea", ".vscode", "node_modules"}
)
_ENVIRONMENT = re.compile(r"(?:^|/)(?:\.?v?env[\w.-]*|virtualenv|node_modules|\.tox|\.nox)/")
_SCRATCH_NAME = re.compile(
    r"^(reproduc\w*|repro(_|\b|\d)\w*|debug(_|\b|\d)\w*|scratch\w*|demo(_|\b)\w*|verify_\w+|check_\w+|try_\w+"
    r"|final_\w*test\w*|test\w*)\.(py|sh|js|ts|java|rb|go|txt|md|log|out)$",
    re.IGNORECASE,
)
_DOC_FOLDERS = frozenset({"doc", "docs", "changelog", "changelogs", "changes", "newsfragments", "release-notes"})
_DOC_NAME = re.compile(
    r"^(change(s|log)?|news|history|release[-_]notes|authors|readme)(\.(md|rst|txt))?$", re.IGNORECASE
)


def is_test(path: str) -> bool:
    """Whether a file holds tests or what only tests read.

    Args:
        path: path inside the repository, forward slashes.
    Returns:
        True for the naming rules of pytest, unittest, JUnit, Go, Jest, RSpec and their folders.
    """
    pure = PurePosixPath(path)
    folders = [part.lower() for part in pure.parts[:-1]]
    if _TEST_FOLDERS.intersection(folders) or _TEST_NAME.match(pure.name):
        return True
    return bool(folders) and (folders[0] == "test" or ("src", "test") in zip(folders, folders[1:], strict=False))


def is_leftover(path: str) -> bool:
    """Whether a *new* file is one that tools leave behind: backups, rejects, caches, editor folders."""
    pure = PurePosixPath(path)
    return bool(_LEFTOVER_NAME.search(pure.name)) or bool(_LEFTOVER_FOLDERS.intersection(pure.parts[:-1]))


def is_environment(path: str) -> bool:
    """Whether a file lies among installed programs and packages: in a patch, mostly added by mistake."""
    return bool(_ENVIRONMENT.search(path))


def is_scratch(path: str) -> bool:
    """Whether a *new* file at the root of the repository looks like a script to try the fix out."""
    pure = PurePosixPath(path)
    return len(pure.parts) == 1 and bool(_SCRATCH_NAME.match(pure.name))


def is_doc(path: str) -> bool:
    """Whether a file is documentation of the project: its docs folder, its change log; not any text file."""
    pure = PurePosixPath(path)
    return bool(_DOC_FOLDERS.intersection(part.lower() for part in pure.parts[:-1])) or bool(_DOC_NAME.match(pure.name))
