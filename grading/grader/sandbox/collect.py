"""Which tests a Python file holds, read from its text and never by running it. Core."""

import ast

from grading.errors import WrongShape

Function = ast.FunctionDef | ast.AsyncFunctionDef


def collect(source: bytes) -> tuple[str, ...]:
    """Find `test_*` functions, and `test_*` methods of classes that are called Test* or derive from a TestCase.

    Args:
        source: the text of the file.
    Returns:
        "test_x" or "TestY.test_x", in the file's order.
    Raises:
        WrongShape: it does not compile, holds no test, or one that our runner cannot run; the message says which.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as bad:
        raise WrongShape("the test file is not Python", got=str(bad)[:200], expected="Python 3") from None
    found: dict[str, Function] = {}
    for node in tree.body:
        if isinstance(node, Function) and node.name.startswith("test"):
            found[node.name] = _runnable(node, node.name, arguments=0)
        elif isinstance(node, ast.ClassDef) and _holds_tests(node):
            for method in node.body:
                if isinstance(method, Function) and method.name.startswith("test"):
                    name = f"{node.name}.{method.name}"
                    found[name] = _runnable(method, name, arguments=1)
    if not found:
        raise WrongShape("the test file holds no test", got="none", expected="def test_…(), or methods of a TestCase")
    return tuple(found)


def _holds_tests(node: ast.ClassDef) -> bool:
    bases = [base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases]
    return node.name.startswith("Test") or any(base.endswith("TestCase") for base in bases)


def _runnable(node: Function, name: str, arguments: int) -> Function:
    given = node.args
    needed = len(given.posonlyargs + given.args) - len(given.defaults)
    needed += sum(default is None for default in given.kw_defaults)
    if needed != arguments or isinstance(node, ast.AsyncFunctionDef):
        raise WrongShape(f"our runner cannot run {name}"[:200], got="a fixture, a parameter or async",
                         expected="a plain function without arguments")  # fmt: skip
    return node
