"""All graders by name: each looks at an open workspace and gives an answer, or raises; `job` claims and stores."""

from collections.abc import Callable
from importlib import import_module

from grading.grader import static
from grading.grader.options import GradingOptions
from grading.grader.record import Answer, Record
from grading.grader.workspace import Workspace

Grader = Callable[[Workspace, GradingOptions, Record], Answer]


def grade_static(ws: Workspace, options: GradingOptions, record: Record) -> Answer:
    """No model, no order, no cost: the patches as they are."""
    return Answer(static.grade(ws.material))


def _with_model(module: str) -> Grader:
    """Imported when it is first asked: the clients of models take a second, which no page and no static run pays."""

    def grade(ws: Workspace, options: GradingOptions, record: Record) -> Answer:
        return import_module(f"grading.grader.{module}").grade(ws, options, record)

    return grade


GRADERS: dict[str, Grader] = {
    "static": grade_static,
    "single_pass": _with_model("single_pass"),
    "agentic": _with_model("agentic"),
}
