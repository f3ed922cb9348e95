"""The model a grading talks to, and only it: no proxy of the environment, no redirect, no other host.

`open_model` gives a pydantic-ai model for an `Agent` or a direct request. It retries, counts, keeps the budgets and the
deadline of one grading, and writes the transcript into its `Record`. Text streams, so that silence is noticed early.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import urlsplit

import httpx2
from django.conf import settings
from pydantic_ai import exceptions as ai
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from grading.errors import GraderFailed
from grading.grader.answers import believed, cost_of, read
from grading.grader.failures import is_temporary, said_of, way_out_of
from grading.grader.options import FAMILIES, GradingOptions
from grading.grader.record import Record
from grading.grader.retries import RetryBudget, wait_before
from grading.grader.transcript import Transcript

Ask = Callable[..., ModelResponse]
VENDORS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
CONNECT_S, SILENCE_S = 10.0, 180.0  # a long prompt is read in silence before the first word comes
CALL_OUTPUT_TOKENS = 24_000  # of one answer, thinking included
SEED = 7
HEADERS = {
    "host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent",
    "anthropic-version", "anthropic-beta",
}  # fmt: skip
CACHED = ("anthropic_cache_instructions", "anthropic_cache_tool_definitions", "anthropic_cache")
LOOKED_S = 0.2  # how often a wait looks whether anybody still waits for the grading


@dataclass(frozen=True)
class Endpoint:
    """Where a model is served. `url` is the base URL that the family's client continues."""

    family: str
    name: str
    url: str
    key: str = field(default="", repr=False)
    is_vendor: bool = False

    @property
    def host(self) -> str:
        """Host and port, as a grading's row keeps them."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def model(self) -> str:
        return f"{self.family}:{self.name}"


def endpoint_of(options: GradingOptions) -> Endpoint:
    """The endpoint for a run's options: its model, else the operator's; URL and key are always the operator's.

    Raises:
        GraderFailed: no model, an unknown family, no http URL, or a vendor without a key.
    """
    model = options.model or settings.GAGAR_GRADER_MODEL
    family, _, name = model.partition(":")
    if family not in FAMILIES or not name:
        expected = "openai:NAME or anthropic:NAME in GAGAR_GRADER_MODEL or in the run's options"
        raise GraderFailed("no model to grade with", got=model or "nothing", expected=expected)
    url, key = settings.GAGAR_GRADER_URL.rstrip("/"), settings.GAGAR_GRADER_KEY
    if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
        raise GraderFailed(
            "the endpoint's URL is none", got=url[:200], expected="http://… or https://… (GAGAR_GRADER_URL)"
        )
    if not url and not key:
        what = f"no key for {family}'s own endpoint"
        raise GraderFailed(what, expected="GAGAR_GRADER_KEY, or GAGAR_GRADER_URL for an endpoint of your own")
    return Endpoint(family, name, url or VENDORS[family], key, is_vendor=not url)


@asynccontextmanager
async def open_model(options: GradingOptions, record: Record, *, deadline: float) -> AsyncIterator["CarefulModel"]:
    """A model for one grading, closed afterwards. Open it inside the event loop that uses it.

    Args:
        options: the run's; its budgets bind.
        record: counts and transcript go into it, whatever becomes of the grading.
        deadline: on `time.monotonic`'s clock; nothing waits beyond it.
    Raises:
        GraderFailed: here if nothing is configured; from a request if no answer came, with the reason.
    """
    endpoint = endpoint_of(options)
    record.model, record.endpoint = endpoint.model, endpoint.host
    async with http_client(endpoint) as client:
        model = model_of(endpoint, client)
        yield CarefulModel(model, endpoint=endpoint, options=options, record=record, deadline=deadline)


@contextmanager
def conversation(options: GradingOptions, record: Record, *, deadline: float) -> Iterator[Ask]:
    """Like `open_model`, for a grader that is not async and may use the database between its calls.

    Yields:
        A function of messages (and `model_request`'s further arguments) that gives the model's answer.
    """
    with asyncio.Runner() as runner:
        opened = open_model(options, record, deadline=deadline)
        model = runner.run(opened.__aenter__())
        try:
            yield lambda messages, **more: runner.run(model_request(model, messages, **more))
        finally:
            runner.run(opened.__aexit__(None, None, None))


def http_client(endpoint: Endpoint) -> httpx2.AsyncClient:
    """A client that reaches the endpoint's host and nothing else."""
    parts = urlsplit(endpoint.url)

    async def only_there(request: httpx2.Request) -> None:
        for name in set(request.headers) - HEADERS:
            del request.headers[name]  # SDKs add what the environment says: organizations, tokens of other services
        if endpoint.key:
            request.headers["authorization"] = f"Bearer {endpoint.key}"
            if endpoint.family == "anthropic":
                request.headers["x-api-key"] = endpoint.key
        asked = urlsplit(str(request.url))
        if (asked.scheme, asked.netloc) != (parts.scheme, endpoint.host):
            raise GraderFailed("a call to another host was stopped", got=asked.netloc, expected=endpoint.host)

    return httpx2.AsyncClient(
        verify=_certificates(),
        timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S, pool=CONNECT_S),
        limits=httpx2.Limits(max_connections=16),
        trust_env=False,
        follow_redirects=False,
        event_hooks={"request": [only_there]},
    )


@cache
def _certificates() -> ssl.SSLContext:
    """Reading the authorities takes longer than the rest of a client: once for all gradings of a process."""
    return httpx2.create_ssl_context(trust_env=False)


def model_of(endpoint: Endpoint, client: httpx2.AsyncClient) -> Model:
    """The pydantic-ai model. URL and key are always given: nothing of the environment is read in their place."""
    if endpoint.family == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        own = AsyncAnthropic(api_key=endpoint.key or "none", base_url=endpoint.url, http_client=client, max_retries=0)
        return AnthropicModel(endpoint.name, provider=AnthropicProvider(anthropic_client=own))
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    own = AsyncOpenAI(api_key=endpoint.key or "none", base_url=endpoint.url, http_client=client, max_retries=0)
    whole = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)  # a cut stream is no answer
    if endpoint.is_vendor:
        return OpenAIChatModel(endpoint.name, provider=OpenAIProvider(openai_client=own), profile=whole)
    whole["openai_chat_supports_max_completion_tokens"] = False  # older servers know max_tokens only
    provider = OpenAICompatibleProvider("endpoint", openai_client=own)
    return OpenAIChatModel(endpoint.name, provider=provider, profile=whole)


class CarefulModel(WrapperModel):
    """One grading's model: repeats what is worth it, stops at budgets and deadline, books every call."""

    def __init__(self, wrapped: Model, *, endpoint: Endpoint, options: GradingOptions, record: Record, deadline: float):
        super().__init__(wrapped)
        self.endpoint, self.options, self.record, self.deadline = endpoint, options, record, deadline
        self.budget, self.transcript = RetryBudget(), Transcript(record)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """One answer, however many tries it takes within the budget."""
        self.transcript.sent(messages)
        self._check_budgets()
        if self.record.cancelled.is_set():
            raise self._failed("nobody waits for this grading any more", "no call made")
        self.budget.asked += 1
        tries = 0
        while True:
            tries += 1
            self.budget.made += 1
            try:
                response = await self._once(messages, self._asked_with(model_settings), model_request_parameters)
            except Exception as failure:
                await self._wait_or_fail(failure, tries)
                continue
            self._book(response)
            return response

    async def _once(self, messages, model_settings, parameters) -> ModelResponse:
        async with asyncio.timeout(max(0.0, self.deadline - time.monotonic())) as limit:
            watch = asyncio.create_task(self._end_when_cancelled(limit))
            try:
                async with self.wrapped.request_stream(messages, model_settings, parameters) as stream:
                    await read(stream)
                    response = stream.get()
            except (AttributeError, TypeError, KeyError) as broken:  # a piece of another shape: the SDKs look in vain
                raise ai.UnexpectedModelBehavior("the stream holds what is no answer", str(broken)) from broken
            finally:
                watch.cancel()
        if response.finish_reason is None:
            raise ai.ModelAPIError(self.model_name, "the stream ended before the answer did")
        return response

    async def _end_when_cancelled(self, limit: asyncio.Timeout) -> None:
        await self._pause(self.deadline - time.monotonic())
        limit.reschedule(asyncio.get_running_loop().time())

    async def _pause(self, wait_s: float) -> None:
        """Wait, but not for a grading that nobody waits for any more."""
        end = time.monotonic() + wait_s
        while (left_s := end - time.monotonic()) > 0 and not self.record.cancelled.is_set():
            await asyncio.sleep(min(LOOKED_S, left_s))

    def _asked_with(self, asked: ModelSettings | None) -> ModelSettings:
        """Ours, then what the caller asks for. What a model does not take is left out by its profile."""
        left = self.options.max_output_tokens - self.record.output_tokens
        ours = ModelSettings(max_tokens=max(1, min(CALL_OUTPUT_TOKENS, left)), temperature=0.0, seed=SEED)
        if self.endpoint.family == "anthropic":
            ours |= dict.fromkeys(CACHED, True)
        return ours | (asked or {})

    def _check_budgets(self) -> None:
        """A budget is looked at before each call, so that the last one may pass it by one answer."""
        spent, limits = self.record, self.options
        for what, used, limit in (
            ("turns", spent.turns, limits.max_turns),
            ("input tokens", spent.input_tokens, limits.max_input_tokens),
            ("output tokens", spent.output_tokens, limits.max_output_tokens),
            ("dollars", spent.cost_usd or 0.0, limits.max_cost_usd),
        ):
            if limit is not None and used >= limit:
                raise GraderFailed(f"the budget of {what} is used up", got=f"{used:g}", expected=f"under {limit:g}")

    async def _wait_or_fail(self, failure: Exception, tries: int) -> None:
        said = said_of(failure, self.endpoint.key)
        left_s = self.deadline - time.monotonic()
        if self.record.cancelled.is_set() and left_s > LOOKED_S:
            raise self._failed("nobody waits for this grading any more", said) from failure
        if isinstance(failure, TimeoutError) or left_s <= LOOKED_S:
            raise self._failed("the grading's time is up", said) from failure
        if not is_temporary(failure):
            if isinstance(failure, GraderFailed | ai.ModelAPIError | ai.UnexpectedModelBehavior):
                is_ours = isinstance(failure, GraderFailed)
                what = "the call was stopped" if is_ours else f"{self.endpoint.host} refused the call"
                raise self._failed(what, said, way_out_of(failure)) from failure
            raise failure
        wait_s = wait_before(tries, getattr(failure, "retry_after", None))
        if wait_s is None:
            raise self._failed(f"{self.endpoint.host} asks for a longer wait than anybody waits", said) from failure
        if not self.budget.allows(tries):
            what = f"{self.endpoint.host} gave no answer in {tries} tries"
            raise self._failed(what, said, way_out_of(failure)) from failure
        if time.monotonic() + wait_s >= self.deadline:
            raise self._failed("the grading's time would be up before the next try", said) from failure
        self.record.retries += 1
        self.transcript.noted("retry", f"{said}; try {tries + 1} in {wait_s:.1f} s")
        await self._pause(wait_s)

    def _failed(self, what: str, said: str, way_out: str | None = None) -> GraderFailed:
        failure = GraderFailed(what, got=said, expected=way_out)
        self.transcript.noted("error", str(failure))
        return failure

    def _book(self, response: ModelResponse) -> None:
        record, usage = self.record, response.usage
        record.turns += 1
        record.input_tokens += believed(usage.input_tokens)
        record.cached_tokens += believed(usage.cache_read_tokens)
        record.output_tokens += believed(usage.output_tokens)
        cost = cost_of(response)
        if cost is not None:
            record.cost_usd = (record.cost_usd or 0.0) + cost
        self.transcript.answered(response)
