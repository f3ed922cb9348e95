"""The tools of one grading: which are offered, and one call of one of them, answered in words whatever it asks."""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_ai.tools import ToolDefinition

from grading.errors import GradingError
from grading.grader.submitted import SUBMIT, submit_schema
from grading.grader.tools import checks, repository, rollouts
from grading.grader.tools.desk import Desk, Refused, Tool
from grading.grader.wire import said

log = logging.getLogger(__name__)
ALL: Sequence[Tool] = (*rollouts.TOOLS, *repository.TOOLS, *checks.TOOLS)
SUBMIT_SAYS = "Give your verdict on all candidates to be ranked, once you can prove it. Nothing else is read as one."
SAID_CHARS = 600


class Toolbox:
    """What the model may call. `call` never raises for what the model sent."""

    def __init__(self, desk: Desk):
        self.desk = desk
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in ALL if desk.offers.issuperset(tool.needs)}

    def definitions(self) -> list[ToolDefinition]:
        """Returns: the tools for a request, always in the same order: they are the head of every cached prompt."""
        found = [_definition(tool.name, tool.says, tool.schema()) for tool in self.tools.values()]
        return [*found, _definition(SUBMIT, SUBMIT_SAYS, submit_schema())]

    def call(self, name: str, arguments: str | Mapping[str, Any] | None) -> str:
        """Returns: what the tool says, or one sentence on why the call makes no sense."""
        tool = self.tools.get(name)
        if tool is None:
            return f"There is no tool {name[:60]!r}; the tools are {', '.join([*self.tools, SUBMIT])}."
        try:
            asked = _read(arguments)
            return tool.run(self.desk, tool.arguments.model_validate(asked))
        except ValidationError as wrong:
            return f"{name} was not run: {_wrong_words(wrong)}"[:SAID_CHARS]
        except Refused as refused:
            return str(refused)[:SAID_CHARS]
        except (GradingError, OSError) as failure:
            log.warning("tool %s of a grading failed: %s", name, failure)
            return f"{name} could not be answered: {self.desk.ws.scrub(str(failure))}"[:SAID_CHARS]
        except Exception as failure:  # an error of ours in one tool must not cost the group its verdict
            log.exception("tool %s of a grading broke", name)
            return f"{name} could not be answered: {type(failure).__name__}"


def _definition(name: str, says: str, schema: dict[str, Any]) -> ToolDefinition:
    return ToolDefinition(name=name, description=says, parameters_json_schema=schema, strict=False)


def _read(arguments: str | Mapping[str, Any] | None) -> Mapping[str, Any]:
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise Refused("The arguments are no JSON object; send one.") from None
    if not isinstance(arguments, Mapping):
        raise Refused(f"The arguments are {type(arguments).__name__}, expected a JSON object.")
    return arguments


def _wrong_words(wrong: ValidationError) -> str:
    found = []
    for error in wrong.errors(include_url=False)[:5]:
        place = ".".join(str(step) for step in error["loc"]) or "the arguments"
        found.append(
            f"{place}: {error['msg']}" + ("" if error["type"] == "missing" else f", got {said(error['input'])}")
        )
    return "; ".join(found) + "."
