"""The agentic grader: a model looks at a group with tools until it submits a ranking that it can prove.

The loop is ours and synchronous, so that tools may use the database; only a model's answer is awaited, on an event loop
that belongs to this one grading. Any number of gradings may run in threads of one process.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from grading.errors import GraderFailed
from grading.grader.agentic_words import first_words, idle_words, problem_words, spent_words
from grading.grader.endpoint import CALL_OUTPUT_TOKENS, Ask, conversation
from grading.grader.limits import Window, budgets_left, left_words
from grading.grader.options import GradingOptions
from grading.grader.prompts import prompt
from grading.grader.record import Answer, Record
from grading.grader.sandbox import why_no_sandbox
from grading.grader.shape import GraderReply, Problem
from grading.grader.submitted import SUBMIT, read_submission
from grading.grader.tools.desk import Desk
from grading.grader.tools.toolbox import Toolbox
from grading.grader.workspace import Workspace

CALLS_AT_ONCE = 32  # of one answer; a model that asks for thousands gets no thousands
SUBMITS_KEPT = 2  # one too many says enough
TURN_CHARS = 80_000  # of all tools in one turn
LEAST_TOKENS = 500  # asked for where nothing is left: the endpoint then says so itself
IDLE_TURNS = 3  # answers in a row that call nothing


def grade(ws: Workspace, options: GradingOptions, record: Record) -> Answer:
    """Grade a group.

    Args:
        ws: the open workspace.
        options: the run's; every budget in it binds.
        record: filled as the grading goes, also when it fails.
    Returns:
        The submitted reply by ids, valid or not; what could not be read of it.
    Raises:
        GraderFailed: nothing was submitted: no endpoint, a budget is spent, nobody waits any more.
    """
    deadline = time.monotonic() + options.max_wall_s
    toolbox = Toolbox(Desk(ws, options, deadline, why_no_checks(options), record.grading_id))
    with conversation(options, record, deadline=deadline) as ask:
        return _Grading(ws, options, record, deadline=deadline, toolbox=toolbox, ask=ask).run()


def why_no_checks(options: GradingOptions) -> str:
    """Returns: why this grading runs no checks, "" where it may."""
    if not options.checks or options.max_checks <= 0:
        return "this run wants none"
    return why_no_sandbox(options.check_image)


def bounded(response: ModelResponse) -> tuple[ModelResponse, int]:
    """Returns: an answer with its first 32 calls and what it submits, and how many calls were dropped."""
    kept, calls, submits = [], 0, 0
    for part in response.parts:
        if isinstance(part, ToolCallPart) and part.tool_name == SUBMIT:
            submits += 1
            if submits > SUBMITS_KEPT:
                continue
        elif isinstance(part, ToolCallPart):
            calls += 1
            if calls > CALLS_AT_ONCE:
                continue
        kept.append(part)
    return replace(response, parts=kept), max(0, calls - CALLS_AT_ONCE)


class _Grading:
    """One conversation: the material, then turns until a submission counts."""

    def __init__(
        self, ws: Workspace, options: GradingOptions, record: Record, *, deadline: float, toolbox: Toolbox, ask: Ask
    ):
        self.ws, self.options, self.record, self.deadline = ws, options, record, deadline
        self.toolbox, self.ask = toolbox, ask
        self.parameters = ModelRequestParameters(function_tools=toolbox.definitions())
        self.messages: list[ModelMessage] = []
        self.idle = self.dropped = 0
        self.window = Window(options)
        self.faulty: Answer | None = None  # a first submission with problems: the repair round runs

    def run(self) -> Answer:
        said = prompt(self.ws.prompt_name("agentic"))
        self.record.prompt, self.record.order = said.name, tuple(self.ws.order)
        first = first_words(self.ws, self.toolbox, self.options)
        self.messages.append(ModelRequest([UserPromptPart(first)], instructions=said.text))
        schemas = (len(str(one.parameters_json_schema)) for one in self.parameters.function_tools)
        self.window.said(len(first) + len(said.text) + sum(schemas))
        try:
            while True:
                answer = self.turn(self.asked())
                if isinstance(answer, Answer):
                    return answer
                self.messages.append(ModelRequest(answer))
                self.window.said(sum(len(str(part.content)) for part in answer))
        except GraderFailed as failed:
            if self.faulty is None:
                raise
            why = Problem("", "the repair round gave no verdict", str(failed)[:300])
            return replace(self.faulty, unread=(*self.faulty.unread, why))

    def asked(self) -> ModelResponse:
        """The model's next answer, without the calls that are too many."""
        fits = min(
            CALL_OUTPUT_TOKENS, self.options.max_output_tokens - self.record.output_tokens, self.window.left_tokens
        )
        settings = ModelSettings(max_tokens=max(LEAST_TOKENS, fits))
        response = self.ask(self.messages, model_settings=settings, model_request_parameters=self.parameters)
        self.window.said(len(str(response.parts)))
        self.window.counted(response.usage)
        response, self.dropped = bounded(response)
        self.messages.append(response)
        return response

    def turn(self, response: ModelResponse) -> Answer | list[ModelRequestPart]:
        """What follows from an answer: the grading's own answer, or what is said next."""
        calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
        submits = [call for call in calls if call.tool_name == SUBMIT]
        if submits:
            return self.submitted(submits, calls)
        self.idle = 0 if calls else self.idle + 1
        if self.idle > IDLE_TURNS:
            raise GraderFailed("the model no longer calls tools", got="words only", expected="a call of submit")
        if calls and self.tool_calls_left <= 0:
            raise GraderFailed(
                "the budget of tool calls is used up", got=self.record.tool_calls, expected="a call of submit"
            )
        parts = list(self.results(calls))
        words = [] if calls else [idle_words()]
        words += [f"{self.dropped} calls beyond {CALLS_AT_ONCE} in one answer were not run."] if self.dropped else []
        left = budgets_left(self.record, self.options, response.usage, wall_s=self.deadline - time.monotonic())
        words += filter(None, [left_words(left)])
        return [*parts, UserPromptPart("\n".join(words))] if words else parts

    @property
    def tool_calls_left(self) -> int:
        return self.options.max_tool_calls - self.record.tool_calls

    def results(self, calls: Sequence[ToolCallPart]) -> Iterator[ToolReturnPart]:
        """Answer every call, in order: each has to be answered, and each counts."""
        size, room = 0, self.window.room_chars
        for call in calls:
            if self.tool_calls_left <= 0:
                text = spent_words("the budget of tool calls is used up")
            elif size > room:
                text = spent_words("the conversation is as long as it may be")
            elif size > TURN_CHARS:
                text = f"Not run: the answers of this turn hold {size} characters already. Call it again."
            elif self.record.cancelled.is_set() or time.monotonic() >= self.deadline:
                text = "Not run: the time is up."
            else:
                self.record.tool_calls += 1
                text = self.toolbox.call(call.tool_name, call.args)
            size += len(text)
            yield ToolReturnPart(call.tool_name, text, call.tool_call_id)

    def submitted(
        self, submits: Sequence[ToolCallPart], calls: Sequence[ToolCallPart]
    ) -> Answer | list[ModelRequestPart]:
        """The answer, if it is right or the one repair round is over; else what is wrong with it, in full."""
        reply, unread = read_submission(submits[0].args)
        if len(submits) > 1:
            reply = GraderReply(())
            unread = [Problem("", f"submit was called {len(submits)} times in one turn", None, "one call")]
        problems = [*unread, *([] if unread and not reply.candidates else self.ws.check(reply))]
        answer = Answer(self.ws.to_ids(reply), tuple(unread))
        if not problems or self.faulty is not None or self.record.turns >= self.options.max_turns:
            return answer
        self.faulty, words = answer, problem_words(problems)
        others = "Not run: submit was called in the same turn."
        return [ToolReturnPart(c.tool_name, words if c is submits[0] else others, c.tool_call_id) for c in calls]
