"""One answer of a model: read to its end within bounds, and what it costs as far as its words can be believed. Core."""

from collections.abc import AsyncIterable
from math import isfinite

from pydantic_ai.messages import ModelResponse, PartStartEvent, ToolCallPart

from grading.errors import GraderFailed

CALLS_READ = 400  # of one answer: reading it costs the square of their number
CHARS_READ = 1_000_000  # joining its pieces costs the square of their number, too
MOST_TOKENS = 10**12


async def read(stream: AsyncIterable) -> None:
    """Read an answer to its end.

    Args:
        stream: the events of one answer.
    Raises:
        GraderFailed: it is larger than any verdict.
    """
    calls = chars = 0
    async for event in stream:
        calls += isinstance(event, PartStartEvent) and isinstance(event.part, ToolCallPart)
        if calls > CALLS_READ:
            raise GraderFailed(f"the model asks for more than {CALLS_READ} tools in one answer")
        delta = getattr(event, "delta", None)
        pieces = (getattr(delta, name, None) for name in ("content_delta", "args_delta"))
        chars += sum(len(piece) for piece in pieces if isinstance(piece, str))
        if chars > CHARS_READ:
            raise GraderFailed(f"the model's answer is longer than {CHARS_READ:,} characters")


def believed(tokens: int) -> int:
    """Returns: tokens in bounds, so that sums of any number of calls fit into a column."""
    return min(max(tokens, 0), MOST_TOKENS)


def cost_of(response: ModelResponse) -> float | None:
    """Returns: dollars by the price list that pydantic-ai brings along; None where no price is known."""
    if response.usage.cost is not None:
        said = float(response.usage.cost)  # a gateway's own words
        return said if isfinite(said) and said >= 0 else None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None
