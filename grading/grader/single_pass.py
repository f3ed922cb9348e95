"""The single-pass grader: one text-only call over the whole group, and one more if its verdict has faults.

The baseline of the literature: the same material and the same verdict as the agentic grader, without tools.
"""

import time

from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart

from grading.errors import GraderFailed
from grading.grader.endpoint import conversation
from grading.grader.last_object import last_object
from grading.grader.options import GradingOptions
from grading.grader.prompts import prompt
from grading.grader.record import Answer, Record
from grading.grader.shape import GraderReply, Problem
from grading.grader.single_pass_words import group_words, problem_words
from grading.grader.submitted import read_submission
from grading.grader.workspace import Workspace

MATERIAL_TOKENS = 90_000  # of the one message, so that it fits a window of 128k with the answer
CALLS = 2  # the verdict and one repair round share the run's input tokens


def grade(ws: Workspace, options: GradingOptions, record: Record) -> Answer:
    """Grade a group.

    Args:
        ws: the open workspace.
        options: the run's; its budgets bind.
        record: filled as the grading goes, also when it fails.
    Returns:
        The reply by ids, valid or not; what could not be read of it.
    Raises:
        GraderFailed: no answer at all.
    """
    said = prompt(ws.prompt_name("single_pass"))
    record.prompt, record.order = said.name, tuple(ws.order)
    deadline = time.monotonic() + options.max_wall_s
    words = group_words(ws, tokens=min(MATERIAL_TOKENS, options.max_input_tokens // CALLS))
    messages = [ModelRequest(parts=[UserPromptPart(words)], instructions=said.text)]
    with conversation(options, record, deadline=deadline) as ask:
        response = ask(messages)
        reply, unread = read_answer(response, record)
        problems = [*unread, *(ws.check(reply) if reply.candidates else ())]
        answer = Answer(ws.to_ids(reply), tuple(unread))
        if not problems:
            return answer
        again = ModelRequest(parts=[UserPromptPart(problem_words(problems))], instructions=said.text)
        try:
            reply, unread = read_answer(ask([*messages, response, again]), record)
        except GraderFailed as failed:
            why = Problem("", "the repair round gave no verdict", str(failed)[:300])
            return Answer(answer.reply, (*answer.unread, why))
    return Answer(ws.to_ids(reply), tuple(unread))


def read_answer(response: ModelResponse, record: Record) -> tuple[GraderReply, list[Problem]]:
    """The verdict in the model's own words; nothing that was sent to it is ever looked at."""
    said = response.text or ""
    if not said.strip():
        return GraderReply(()), [Problem("", "the answer has no words", response.finish_reason, "a verdict")]
    found = last_object(said)
    if found.around:
        record.add("system", found.around, role="note")
    if found.verdicts > 1:
        expected = "one: nobody can say which is meant"
        return GraderReply(()), [Problem("", "the answer holds several verdicts", str(found.verdicts), expected)]
    reply, unread = read_submission(found.text)
    if response.finish_reason == "length":
        unread.append(Problem("", "the answer was cut at its longest", f"{len(said)} characters", "a shorter verdict"))
    return reply, unread
