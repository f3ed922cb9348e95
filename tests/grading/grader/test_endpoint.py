"""One call to a model over real HTTP: what is sent where, what is repeated, what ends a grading and in which words."""

import asyncio
import time

import pytest
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, UserPromptPart

from grading.errors import GraderFailed
from grading.grader import endpoint, retries
from grading.grader.options import GradingOptions
from grading.grader.record import Record
from tests.model_server import ModelServer, Say

PROMPT = "Rank exactly these candidates: A, B"
OPENAI, ANTHROPIC = "openai:some-model", "anthropic:claude-haiku-4-5"


@pytest.fixture
def server():
    with ModelServer("good") as one:
        yield one


@pytest.fixture
def ask(server, settings, monkeypatch):
    """Play scripts and put one question; gives the answer's text. The record is `ask.record`."""
    monkeypatch.setattr(retries, "FIRST_WAIT_S", 0.01)

    def put(*scripts, model=OPENAI, wall_s=20.0, times=1, **options):
        server.play(*scripts)
        settings.GAGAR_GRADER_URL = server.root if model == ANTHROPIC else server.url
        settings.GAGAR_GRADER_KEY, settings.GAGAR_GRADER_MODEL = "sk-of-ours", model
        put.record = Record()

        async def talk():
            deadline = time.monotonic() + wall_s
            async with endpoint.open_model(GradingOptions(**options), put.record, deadline=deadline) as careful:
                for _ in range(times):
                    history = [ModelRequest(parts=[UserPromptPart(PROMPT)], instructions="You grade.")]
                    answer = await model_request(careful, history)
            return answer.text

        return asyncio.run(talk())

    return put


def told(record: Record) -> list[tuple[str, str]]:
    return [(event["kind"], event["role"]) for event in record.events]


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
def test_an_answer_is_streamed_and_booked_with_its_cached_tokens(ask, server, model):
    assert '"candidates"' in ask("good", model=model)
    record = ask.record
    assert (record.turns, record.retries) == (1, 0)
    assert (record.input_tokens, record.cached_tokens, record.output_tokens) == (1000, 400, 100)
    assert record.model == model
    assert record.endpoint == server.root.removeprefix("http://")
    assert told(record) == [("system", "system"), ("message", "user"), ("message", "assistant")]
    sent = server.requests[0].body
    assert sent["stream"] is True
    assert sent["temperature"] == 0
    assert sent["max_tokens"] == endpoint.CALL_OUTPUT_TOKENS


def test_a_price_is_booked_where_it_is_known_and_none_where_it_is_not(ask):
    ask("good", model=ANTHROPIC)
    # claude-haiku-4-5: 600 fresh x 1, 400 cached x 0.1, 100 out x 5 dollars a million
    assert ask.record.cost_usd == pytest.approx((600 + 40 + 500) / 1e6)
    ask("good", model=OPENAI)
    assert ask.record.cost_usd is None


def test_instructions_and_tools_are_marked_for_the_prompt_cache_of_anthropic(ask, server):
    ask("good", model=ANTHROPIC)
    assert server.requests[0].body["system"][-1]["cache_control"]["type"] == "ephemeral"


def test_nothing_of_the_environment_reaches_the_endpoint(ask, server, monkeypatch):
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, "canary")
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-extra: canary\nAuthorization: canary")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-extra: canary")
    for model in (OPENAI, ANTHROPIC):
        ask("good", model=model)
        assert server.requests[0].headers["authorization"] == "Bearer sk-of-ours"
        assert "canary" not in str(server.requests[0])


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("script", ["429", "500", "cut_json", "cut_stream", Say("down", status=503), Say(status=529)])
def test_what_may_pass_is_tried_again_and_counted(ask, server, script, model):
    assert '"candidates"' in ask(script, "good", model=model)
    assert server.calls == 2
    assert (ask.record.retries, ask.record.turns) == (1, 1)
    assert ("system", "retry") in told(ask.record)


@pytest.mark.parametrize("said", [10**18, 10**30, -5])
def test_usage_that_no_model_has_is_booked_within_bounds(ask, said):
    ask(Say("{}", usage=(said, said, said)), times=3, max_input_tokens=10**20, max_output_tokens=10**20)
    record = ask.record
    counts = (record.input_tokens, record.cached_tokens, record.output_tokens)
    assert all(0 <= count <= 3 * 10**12 for count in counts) and record.turns == 3


@pytest.mark.parametrize("pieces", ["data: null\n\n", "data: []\n\n", "<html>sign in</html>"])
def test_a_page_that_is_no_stream_is_tried_again_and_then_leads_to_the_url(ask, server, pieces):
    with pytest.raises(GraderFailed, match="gave no answer in 3 tries.*is it the base URL"):
        ask(Say(raw=pieces))
    assert server.calls == 3


def test_a_grading_makes_at_most_three_times_the_calls_it_needs(ask, server):
    with pytest.raises(GraderFailed, match="gave no answer in 3 tries, got HTTP 500: broken"):
        ask("500")
    assert server.calls == 3
    # Two good calls save four tries for the third: 5 of one call at most.
    with pytest.raises(GraderFailed, match="in 5 tries"):
        ask("good", "good", "500", times=3)
    assert server.calls == 2 + 5
    assert ask.record.retries == 4


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("400", "HTTP 400: temperature is not supported"),
        ("401", "GAGAR_GRADER_KEY"),
        ("403", "may use this model"),
        ("404", "GAGAR_GRADER_URL"),
        ("302", "redirects are not followed"),
        (Say("you exceeded your current quota", status=429, code="insufficient_quota"), "exceeded your current quota"),
        (Say("x" * 1_100_000), "the call was stopped, got the model's answer is longer than 1,000,000 characters"),
    ],
)
def test_what_no_repetition_changes_fails_at_once_and_says_the_way_out(ask, server, script, words):
    with pytest.raises(GraderFailed, match=words):
        ask(script, "good")
    assert server.calls == 1
    assert told(ask.record)[-1] == ("system", "error")


def test_a_wait_that_was_asked_for_is_kept_and_one_of_an_hour_is_not_waited(ask, server):
    started = time.monotonic()
    ask("429_after", "good")
    assert time.monotonic() - started >= 1
    with pytest.raises(GraderFailed, match="longer wait"):
        ask("429_hour")
    assert server.calls == 1


@pytest.mark.parametrize("script", ["hang", Say("x" * 4000, pause_s=0.3)])
def test_an_endpoint_that_hangs_or_drips_ends_with_the_deadline(ask, script):
    started = time.monotonic()
    with pytest.raises(GraderFailed, match="time is up"):
        ask(script, wall_s=0.5)
    assert time.monotonic() - started < 10


def test_a_silent_endpoint_is_given_up_long_before_a_long_deadline(ask, server, monkeypatch):
    monkeypatch.setattr(endpoint, "SILENCE_S", 0.2)
    assert '"candidates"' in ask("hang", "good", wall_s=60)
    assert server.calls == 2


def test_nobody_listening_is_a_failure_with_the_address(settings, monkeypatch):
    monkeypatch.setattr(retries, "FIRST_WAIT_S", 0.01)
    settings.GAGAR_GRADER_URL, settings.GAGAR_GRADER_MODEL = "http://127.0.0.1:1/v1", OPENAI
    record = Record()

    async def talk():
        async with endpoint.open_model(GradingOptions(), record, deadline=time.monotonic() + 20) as model:
            await model_request(model, [ModelRequest.user_text_prompt("hello")])

    with pytest.raises(GraderFailed, match="127.0.0.1:1 gave no answer in 3 tries"):
        asyncio.run(talk())
    assert record.retries == 2


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"max_turns": 1}, "turns"),
        ({"max_input_tokens": 1000}, "input tokens"),
        ({"max_output_tokens": 100}, "output tokens"),
        ({"max_cost_usd": 0.001}, "dollars"),
    ],
)
def test_a_budget_that_is_used_up_stops_the_next_call(ask, server, options, what):
    with pytest.raises(GraderFailed, match=f"budget of {what}"):
        ask("good", model=ANTHROPIC, times=2, **options)
    assert server.calls == 1


def test_the_last_tokens_of_the_budget_bound_the_answer(ask, server):
    ask("good", times=2, max_output_tokens=150)
    assert [request.body["max_tokens"] for request in server.requests] == [150, 50]


@pytest.mark.parametrize(
    ("url", "key", "model", "words"),
    [
        ("", "k", "", "no model"),
        ("", "k", "mistral:x", "no model"),
        ("", "k", "openai:", "no model"),
        ("", "", "openai:x", "GAGAR_GRADER_KEY"),
        ("ftp://host/v1", "k", "openai:x", "GAGAR_GRADER_URL"),
        ("host:8000", "k", "openai:x", "GAGAR_GRADER_URL"),
    ],
)
def test_what_is_not_configured_is_said_before_any_call(settings, url, key, model, words):
    settings.GAGAR_GRADER_URL, settings.GAGAR_GRADER_KEY, settings.GAGAR_GRADER_MODEL = url, key, model
    with pytest.raises(GraderFailed, match=words):
        endpoint.endpoint_of(GradingOptions())


def test_a_runs_model_goes_before_the_operators_and_the_key_is_in_no_words(settings, ask):
    settings.GAGAR_GRADER_URL, settings.GAGAR_GRADER_KEY = "https://user:pw@gate.example:8443/v1/", "sk-of-ours"
    settings.GAGAR_GRADER_MODEL = "openai:operators"
    found = endpoint.endpoint_of(GradingOptions(model="anthropic:runs"))
    assert (found.model, found.host) == ("anthropic:runs", "gate.example:8443")
    assert "sk-of-ours" not in repr(found)
    with pytest.raises(GraderFailed) as failure:
        ask(Say("your key sk-of-ours is wrong", status=401))
    assert "sk-of-ours" not in str(failure.value) + str(ask.record.events)


def test_waits_double_are_spread_and_never_shorter_than_asked():
    assert [retries.wait_before(n, None, 0.0) for n in (1, 2, 3)] == [0.25, 0.5, 1.0]
    assert [retries.wait_before(n, None, 0.999) for n in (1, 9)] == pytest.approx([0.5, 30.0], rel=1e-2)
    assert 3 <= retries.wait_before(1, 3.0) <= 3.2
    assert retries.wait_before(1, retries.RETRY_AFTER_S + 1) is None


def test_a_grading_that_nobody_waits_for_ends_within_a_call_and_makes_no_other(ask, server):
    def give_up(asked):
        ask.record.cancelled.set()
        return Say(hang=True)

    started = time.monotonic()
    with pytest.raises(GraderFailed, match="nobody waits"):
        ask(give_up, "good", wall_s=60)
    assert time.monotonic() - started < 10
    assert server.calls == 1


def test_a_client_of_an_endpoint_reaches_no_other_host(server):
    async def call(url: str):
        async with endpoint.http_client(endpoint.Endpoint("openai", "some-model", server.url, "sk-of-ours")) as client:
            return await client.get(url)

    assert asyncio.run(call(f"{server.url}/models")).status_code == 200
    with pytest.raises(GraderFailed, match="a call to another host was stopped, got localhost"):
        asyncio.run(call(f"{server.url}/models".replace("127.0.0.1", "localhost")))
