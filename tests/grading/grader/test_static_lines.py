import time

import pytest

from grading.grader.static_lines import Budget, sorted_lines
from grading.review.diffs.parse import parse_patch
from tests.grading.integrity.fixtures import changed, created


def sorts(patch, budget=None):
    return [sort for file in parse_patch(patch).files for _, sort in sorted_lines(file, budget or Budget())]


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("a.py", "-x = 1\n+x = 2\n", ["code", "code"]),
        ("a.py", "+# why\n+x = 2  # how\n", ["comment", "code"]),
        ("a.py", "+\n+   \n x = 1\n", ["blank", "blank"]),
        ("a.py", '+x = "# no comment"\n', ["code"]),
        ("a.py", ' def f():\n+    """What it does."""\n     return 1\n', ["comment"]),
        (
            "a.py",
            ' def f():\n+    """What it does.\n+\n+    More.\n+    """\n',
            ["comment", "blank", "comment", "comment"],
        ),
        ("a.py", '+x = """text"""\n', ["code"]),
        ("a.py", ' end of a docstring.\n """\n+y = 1\n+"""\n', ["code", "code"]),
        ("a.py", "-x = 1\n+x = 1   \n", ["spacing", "spacing"]),
        ("a.py", "-    return x\n+        return x\n", ["code", "code"]),
        ("a.js", "-    return x\n+        return x\n", ["spacing", "spacing"]),
        ("a.js", "-a()\n-b()\n+b()\n+a()\n", ["spacing", "code", "code", "spacing"]),
        ("a.js", "-a()\n b()\n+a()\n", ["code", "code"]),
        ("a.java", "+/* one\n+ * two\n+ */\n+int x;\n", ["comment", "comment", "comment", "code"]),
        ("a.java", " x = 3\n-  * 2;\n+  * 4;\n", ["code", "code"]),
        ("a.c", "+#include <x.h>\n+// why\n", ["code", "comment"]),
        ("a.go", "+//go:embed x\n+// why\n", ["code", "comment"]),
        ("a.sh", "+# why\n+echo\n", ["comment", "code"]),
        ("a.unknown", "+# why\n", ["code"]),
    ],
)
def test_a_changed_line_is_code_unless_it_surely_is_not(path, body, expected):
    assert sorts(changed(path, body)) == expected


def test_the_docstring_of_a_new_module_is_one():
    assert sorts(created("a.py", '"""What it holds."""', "x = 1")) == ["comment", "code"]


def test_other_line_ends_are_spacing():
    patch = b"--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-x = 1\r\n-y = 2\r\n+x = 1\n+y = 2\n"
    assert sorts(patch) == ["spacing"] * 4


def test_beyond_the_budget_comments_count_as_code_and_it_says_so():
    budget = Budget(chars=10)
    assert sorts(changed("a.py", "+# a rather long comment\n"), budget) == ["code"]
    assert budget.is_spent


def test_a_long_line_is_code_and_costs_nothing():
    budget = Budget()
    assert sorts(changed("a.py", "+# " + "x" * 5_000_000 + "\n"), budget) == ["code"]
    assert not budget.is_spent


def test_a_long_new_file_is_read_in_pieces():
    lines = [f"# remark {n}" if n % 2 else f"x{n} = {n}" for n in range(4_000)]
    assert sorts(created("a.py", *lines)) == ["code", "comment"] * 2_000


@pytest.mark.parametrize(
    ("path", "opening"),
    [
        ("a.c", "/*"),
        ("a.sh", "<<A"),
        ("a.rb", "x(<<A"),
        ("a.php", "<<<A"),
        ("a.py", "r\"\"\"'''#"),
    ],
)
def test_openings_that_never_close_cost_bounded_time(path, opening):
    started = time.monotonic()
    sorts(created(path, *[opening] * 40_000))
    assert time.monotonic() - started < 20
