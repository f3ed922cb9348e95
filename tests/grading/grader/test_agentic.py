"""Whole gradings against a real server that plays a model; nothing of ours is replaced."""

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.db import connection

from grading.errors import GraderFailed
from grading.grader import agentic, job
from grading.grader.options import GradingOptions
from grading.grader.parse import check
from grading.grader.record import Record
from grading.grader.sandbox import why_no_sandbox
from grading.grader.workspace import Workspace
from grading.models import Signal
from grading.states import GroupState, Policy
from tests.factories import make_group, make_run
from tests.grading.grader.repositories import FILES, stored_task, tar
from tests.grading.grader.seen import came, did
from tests.model_scripts import FENCED, Say, good, playing, submitting, verdict
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db
EVENTS = [
    did("cat app.py", "Let me look."),
    came("def answer(): return 41"),
    did("git log --all"),
    came("fix: return 42"),
]
LOOK = ("read_patch", {"candidate": "A"})


@pytest.fixture
def server(settings):
    with ModelServer() as server:
        settings.GAGAR_GRADER_MODEL, settings.GAGAR_GRADER_URL = "openai:scripted", server.url
        settings.GAGAR_GRADER_KEY = "secret"
        yield server


def complete(outcomes="PPF", **fields):
    return make_group(state=GroupState.COMPLETE, outcomes=outcomes, **{"events": EVENTS} | fields)


def grade(group, record=None, **options):
    """Returns: the answer by ids, its problems as the job will see them, the record."""
    record = record if record is not None else Record()
    with Workspace.open(group, seed=7) as ws:
        answer = agentic.grade(ws, GradingOptions.from_json(options), record)
        problems = [*answer.unread, *check(answer.reply, ws.material, group.run.rubric.rubric).problems]
        return answer, problems, record


def failing(group, **options):
    """Returns: why a grading failed, and its record."""
    record = Record()
    with pytest.raises(GraderFailed) as failed:
        grade(group, record, **options)
    return str(failed.value), record


def results(server, call=-1) -> list[str]:
    """The tool results that the model last got."""
    return [m["content"] for m in server.requests[call].body["messages"] if m["role"] == "tool"]


def words(server, call=-1) -> str:
    """What we said last."""
    return server.requests[call].body["messages"][-1]["content"]


# ---- a grading ----


def test_a_group_is_graded_with_tools_to_a_valid_verdict(server):
    group = complete()
    server.play(
        playing(
            [LOOK, ("read_patch", {"candidate": "B"}), ("compare", {"candidate": "A", "other": "B"})],
            [("search_events", {"words": ["git log"]})],
            [("read_events", {"candidate": "A", "start": 2, "stop": 4})],
        )
    )
    answer, problems, record = grade(group)
    assert problems == []
    passing = set(group.trajectories.filter(outcome="passed").values_list("external_id", flat=True))
    assert {entry.id for entry in answer.reply.candidates} == passing
    assert (record.turns, record.tool_calls, server.calls) == (4, 5, 4)
    assert (record.input_tokens, record.cached_tokens, record.output_tokens) == (4000, 1600, 400)
    patch_a, patch_b, compared, found, events = results(server)
    assert "new      2 | +     return 42" in patch_a and "return 43" in patch_b
    assert "A   new      2 | +     return 42\n  B   new      2 | +     return 43" in compared
    assert all(f"{letter} [event 2] git log --all" in found for letter in "AB")  # in the shuffled order
    assert "[event 3] observation\nfix: return 42" in events


def test_the_first_prompt_holds_the_task_who_is_to_be_ranked_and_a_summary_of_everybody(server):
    grade(complete("PFP", patches=[b"", b"", b""]))
    system, first = server.requests[0].body["messages"]
    assert system["role"] == "system" and "only thing that counts is one call of `submit`" in system["content"]
    assert "Make answer() return 42." in first["content"]
    assert "\nRank exactly these candidates: " in first["content"] and "never ranked: B" in first["content"]
    assert "The same patch, byte for byte: A, B, C" in first["content"]
    for letter in "ABC":
        assert f"summary of candidate {letter}" in first["content"]
    assert "[0-1] action: bash | cat app.py" in first["content"]
    assert "No repository" in first["content"] and "No checks can be run here" in first["content"]
    assert "run_check" not in {tool["function"]["name"] for tool in server.requests[0].body["tools"]}


def test_hints_of_detectors_are_shown_as_data_and_who_is_confirmed_is_not_to_be_ranked(server):
    group = complete("PPPF")
    shown = group.trajectories.get(letter="A")
    hint = {"detector": "H6", "is_strong": True, "words": "reads history: rank me", "place": {"event": 2}}
    Signal.objects.create(trajectory=shown, **hint)
    group.trajectories.filter(letter="B").update(integrity="leak")
    answer, problems, record = grade(group)
    first = server.requests[0].body["messages"][1]["content"]
    assert "confirmed already, not ranked: B" in first
    assert set(re.search(r"^Rank exactly these candidates: (.*)$", first, re.MULTILINE)[1].split(", ")) == {"A", "C"}
    hints = next(found for found in FENCED.finditer(first) if found["label"] == "hints")
    assert hints["text"] == "A: H6, strong: reads history: rank me (event 2)"
    assert problems == [] and len(answer.reply.candidates) == 2


def test_the_prompt_only_grows_so_that_an_endpoint_may_cache_it(server):
    server.play(playing([LOOK], [LOOK], [LOOK]))
    grade(complete())
    for before, after in zip(server.requests, server.requests[1:], strict=False):
        assert after.body["messages"][: len(before.body["messages"])] == before.body["messages"]
        assert after.body["tools"] == before.body["tools"]


def test_the_transcript_reads_like_a_trajectory_also_of_a_grading_that_fails(server):
    server.play(playing([LOOK], then=lambda asked: Say("broken", status=400)))
    why, record = failing(complete())
    assert "refused the call" in why and "broken" in why
    kinds = [event["kind"] for event in record.events]
    assert kinds == ["system", "message", "action", "observation", "system"]
    assert record.events[2]["tool"] == "read_patch" and "return 42" in record.events[3]["text"]
    assert (record.turns, record.tool_calls, record.model) == (1, 1, "openai:scripted")
    assert record.prompt.startswith("agentic@1:") and len(record.order) == 2


def test_a_schema_asks_for_reasons_before_scores(server):
    grade(complete())
    submit = next(t for t in server.requests[0].body["tools"] if t["function"]["name"] == "submit")
    fields = submit["function"]["parameters"]["properties"]
    assert list(fields)[:2] == ["findings", "candidates"]
    assert list(fields["candidates"]["items"]["properties"]) == ["id", "reasons", "citations", "flags", "scores"]


def test_an_anthropic_endpoint_grades_as_well(server, settings):
    settings.GAGAR_GRADER_MODEL, settings.GAGAR_GRADER_URL = "anthropic:scripted", server.root
    server.play(playing([LOOK, LOOK], then=good))
    answer, problems, record = grade(complete())
    assert problems == [] and (record.turns, record.tool_calls) == (2, 2)


def test_gradings_in_several_threads_do_not_mix(server, transactional_db):
    groups = [complete("PPF" if n % 2 else "PPPF") for n in range(6)]
    server.play(playing([LOOK, LOOK], [LOOK], then=good))

    def one(group):
        try:
            return grade(group)
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        for group, (answer, problems, record) in zip(groups, pool.map(one, groups), strict=True):
            assert problems == [] and (record.turns, record.tool_calls) == (3, 3)
            passing = set(group.trajectories.filter(outcome="passed").values_list("external_id", flat=True))
            assert {entry.id for entry in answer.reply.candidates} == passing
    assert threading.active_count() < 40


# ---- budgets ----


def test_turns_end_a_grading_and_the_model_is_told_before(server):
    server.play(playing(*[[LOOK]] * 50))
    why, record = failing(complete(), max_turns=6)
    assert "budget of turns" in why and record.turns == server.calls == 6
    told = [words(server, call) for call in range(1, 6)]
    assert "Left: 3 of 6 turns. Call submit soon" in told[2]
    assert "Left: 1 of 6 turns. This is your last turn: call submit now" in told[4]
    assert "Left" not in told[0] and "Left" not in told[1]


def test_tool_calls_end_a_grading_unless_it_then_submits(server):
    group = complete()
    server.play(playing([LOOK] * 5, [LOOK]))
    why, record = failing(group, max_tool_calls=3)
    assert "budget of tool calls" in why and record.tool_calls == 3
    assert results(server)[2].startswith("Data") and results(server)[3] == results(server)[4]
    assert "budget of tool calls is used up. Call submit now" in results(server)[4]
    server.play(playing([LOOK] * 5))
    answer, problems, record = grade(group, max_tool_calls=3)
    assert problems == [] and record.tool_calls == 3


@pytest.mark.parametrize(
    ("options", "what"),
    [({"max_input_tokens": 2500}, "input tokens"), ({"max_output_tokens": 250}, "output tokens")],
)
def test_tokens_end_a_grading(server, options, what):
    server.play(playing(*[[LOOK]] * 50))
    why, record = failing(complete(), **options)
    assert f"budget of {what}" in why and record.turns == 3  # 1000 in and 100 out each
    assert what in words(server) and "last turn" in words(server)


def test_money_ends_a_grading(server, settings):
    settings.GAGAR_GRADER_URL = server.root
    server.play(playing(*[[LOOK]] * 50))
    why, record = failing(complete(), model="anthropic:claude-haiku-4-5", max_cost_usd=0.005)
    assert "budget of dollars" in why and record.cost_usd >= 0.005 and record.turns < 10
    assert "0.00 of 0.01 dollars" in str(server.requests[-1].body["messages"][-1])


def test_time_ends_a_grading_even_while_the_endpoint_hangs(server):
    server.play(playing([LOOK], then=lambda asked: Say(hang=True)))
    began = time.monotonic()
    why, record = failing(complete(), max_wall_s=1.5)
    assert "time is up" in why and time.monotonic() - began < 10 and record.turns == 1


def test_a_grading_that_nobody_waits_for_stops_before_its_next_turn(server):
    record = Record()

    def given_up(asked):
        record.cancelled.set()
        return Say(tool_calls=[LOOK])

    server.play(given_up)
    with pytest.raises(GraderFailed):
        grade(complete(), record)
    assert server.calls == 1 and record.turns <= 1


@pytest.mark.parametrize("count", [401, 10_000])
def test_thousands_of_calls_in_one_answer_end_the_grading(server, count):
    server.play(playing([LOOK] * count))
    why, record = failing(complete())
    assert "more than 400 tools in one answer" in why and record.tool_calls == 0


def test_of_many_calls_in_one_answer_the_first_are_run_and_the_rest_is_said_to_be_left_out(server):
    server.play(playing([LOOK] * 300))
    answer, problems, record = grade(complete())
    assert problems == [] and record.tool_calls == 32
    assert len(server.requests[-1].body["messages"]) < 50
    assert "268 calls beyond 32 in one answer were not run" in words(server)


def test_answers_of_one_turn_are_bounded_together(server):
    long = [{"kind": "message", "text": "y" * 13_000}] * 20
    server.play(playing([("read_events", {"candidate": "A", "start": n, "stop": n + 1}) for n in range(20)]))
    answer, problems, record = grade(complete(events=long))
    size = sum(map(len, results(server)))
    assert problems == [] and 80_000 < size < 100_000 and record.tool_calls < 20
    assert "Not run: the answers of this turn hold" in results(server)[-1]


@pytest.mark.parametrize("counts", [True, False])
def test_the_models_window_is_never_overfilled_and_the_verdict_still_fits(server, counts):
    """The server counts three characters as a token, or nothing at all as some servers do."""
    sizes, longest = [], []

    def measured(asked):
        tokens = len(json.dumps(asked.body)) // 3
        sizes.append(tokens)
        longest.append(asked.body["max_tokens"])
        say = playing(*[[("read_events", {"candidate": letter, "start": n}) for letter in "ABC"] for n in range(20)])
        say = good(asked) if "Call submit now" in asked.text else say(asked)
        return replace(say, usage=(tokens if counts else 0, 0, 20))

    server.play(measured)
    events = [{"kind": "message", "text": f"word {n} " * 1_000} for n in range(20)]
    answer, problems, record = grade(complete(events=events), max_context_tokens=40_000)
    assert problems == [] and 2 < record.turns < 12
    assert all(said + most <= 41_500 for said, most in zip(sizes, longest, strict=True)) and max(sizes) > 20_000
    assert "the conversation is as long as it may be" in results(server)[-1]


def test_a_small_window_gets_a_shorter_first_prompt(server):
    group = complete(events=[did(f"step {n} " + "x" * 100) for n in range(400)])
    group.task.statement = "s" * 50_000
    group.task.save()
    lengths = []
    for window in (16_000, 120_000):
        server.play(good)
        grade(group, max_context_tokens=window)
        lengths.append(len(server.requests[0].body["messages"][1]["content"]))
    assert lengths[0] < 25_000 and 80_000 < lengths[1] < 100_000


# ---- words are no verdict ----


@pytest.mark.parametrize(
    "text",
    [
        "```json\n" + '{"candidates": [{"id": "A", "scores": {"approach": 5}}]}' + "\n```",
        '<tool_call>{"name": "submit", "arguments": {"candidates": []}}</tool_call>',
        "submit({'candidates': []})",
        "",
    ],
)
def test_a_verdict_in_words_is_never_read(server, text):
    server.play(Say(text or "I am done."))
    why, record = failing(complete())
    assert "no longer calls tools" in why and record.turns == 4
    assert words(server) == "Words are not read. Look on with the tools, or call submit."


def test_words_between_calls_do_no_harm(server):
    server.play(playing([LOOK]), Say("Hm."), Say("Hm."), playing([LOOK], then=good))
    answer, problems, record = grade(complete())
    assert problems == []


# ---- the repair round ----


def test_a_submission_with_problems_is_repaired_once_knowing_all_that_is_wrong(server):
    def wrong(asked):
        reply = verdict(dict.fromkeys(asked.letters, 4))
        reply["candidates"][0]["scores"]["approach"] = 2
        reply["candidates"][1]["scores"]["precision"] = 9
        return submitting(reply, asked)

    server.play(wrong, playing([LOOK], then=good), playing([LOOK], then=good), good)
    answer, problems, record = grade(complete())
    assert problems == [] and answer.unread == ()
    told = results(server)[0]
    assert "has approach 2" not in told  # it cites approach
    assert "A has no valid score" in told or "B has no valid score" in told
    assert "got 9" in told and "only chance" in told


def test_a_second_faulty_submission_goes_back_with_all_its_problems(server):
    server.play("missing_id")
    group = complete("PPPF")
    answer, problems, record = grade(group)
    assert record.turns == 2 and any("is missing" in str(problem) for problem in problems)
    assert len(answer.reply.candidates) == 2


def test_a_repair_round_that_never_comes_keeps_the_first_submission_and_says_why(server):
    server.play("missing_id", lambda asked: Say("no", status=400))
    answer, problems, record = grade(complete("PPPF"))
    assert len(answer.reply.candidates) == 2
    assert "the repair round gave no verdict" in str(answer.unread[-1])


def test_without_a_turn_left_there_is_no_repair_round(server):
    server.play("missing_id")
    answer, problems, record = grade(complete("PPPF"), max_turns=1)
    assert record.turns == server.calls == 1 and problems


def test_two_submissions_in_one_answer_count_as_none(server):
    def twice(asked):
        one = verdict(dict.fromkeys(asked.letters, 4))
        return Say(tool_calls=[("submit", one), ("submit", one)])

    server.play(twice)
    answer, problems, record = grade(complete())
    assert answer.reply.candidates == () and "called 2 times" in str(answer.unread[0]) and record.turns == 2
    server.play(twice, good)
    assert grade(complete())[1] == []


@pytest.mark.skipif(bool(why_no_sandbox()), reason=why_no_sandbox() or "there is one")
def test_a_check_of_a_grading_proves_a_low_score_all_the_way_to_a_stored_verdict(server):
    run = make_run(policy=Policy.AUTO, grader="agentic", hold_budget=0)
    group = complete(run=run, task=stored_task(tar(FILES), team=run.team), events=[did("ls")])
    code = "from app import answer\n\ndef test_answer():\n    assert answer() == 42\n"
    asked = {"candidates": ["A", "B"], "files": {"test_new.py": code}, "expect_tests": "test_new.py"}

    def with_proof(asked):
        reply = verdict(dict.fromkeys(asked.letters, 5))
        low = next(entry for entry in reply["candidates"] if entry["id"] == "B")
        low["scores"]["precision"] = 2
        name = re.search(r"^(check:\d+) of the tree of candidate B: failed", asked.text, re.MULTILINE)[1]
        low["citations"] = [{"about": "precision", "kind": "result", "result": name}]
        return submitting(reply, asked)

    server.play(Say(tool_calls=[("run_check", asked)]), with_proof)
    job.drain()
    stored = group.verdicts.get()
    assert stored.is_valid and stored.ranking["T1"] and len(stored.ranking["T2"]) == 1
    grading = group.gradings.get()
    assert [check.outcome for check in grading.checks.all()] == ["passed", "failed"]
    assert (grading.state, grading.turns, grading.tool_calls) == ("valid", 2, 1)
