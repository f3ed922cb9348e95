"""When a grader is told that a budget nears its end. Core."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from grading.grader.options import GradingOptions
from grading.grader.record import Record

NEAR_SHARE = 0.15
NEAR_TURNS = 3  # of the size of the last one
TOKEN_CHARS = 3  # few, so that what we add is rather over- than underestimated
VERDICT_TOKENS, VERDICT_SHARE = 16_000, 0.25  # of the window, kept free for what the model still has to say


@dataclass(frozen=True)
class Left:
    """What is left of one budget: `left` of `of`, and what one more turn takes of it."""

    what: str
    left: float
    of: float
    a_turn: float

    @property
    def is_near(self) -> bool:
        """Whether the end is near: three turns like the last one, or the last 15 %, are all there is."""
        return self.left <= max(NEAR_SHARE * self.of, NEAR_TURNS * self.a_turn)

    @property
    def is_last(self) -> bool:
        """Whether nothing is left after one more turn."""
        return self.left <= self.a_turn


class Usage(Protocol):
    """What one answer of the model took."""

    input_tokens: int
    output_tokens: int


def budgets_left(spent: Record, limits: GradingOptions, last: Usage, *, wall_s: float) -> list[Left]:
    """Say what is left of each budget.

    Args:
        spent: so far.
        limits: of this grading.
        last: what the last turn took; the next one takes about as much.
        wall_s: seconds until the deadline.
    Returns:
        One of each that has a limit; money only where its price is known.
    """
    turns = max(1, spent.turns)
    found = [
        Left("turns", limits.max_turns - spent.turns, limits.max_turns, 1),
        Left("tool calls", limits.max_tool_calls - spent.tool_calls, limits.max_tool_calls, 0),
        Left("seconds", wall_s, limits.max_wall_s, (limits.max_wall_s - wall_s) / turns),
    ]
    for what, used, limit, a_turn in (
        ("input tokens", spent.input_tokens, limits.max_input_tokens, last.input_tokens),
        ("output tokens", spent.output_tokens, limits.max_output_tokens, last.output_tokens),
        ("dollars", spent.cost_usd, limits.max_cost_usd, (spent.cost_usd or 0.0) / turns),
    ):
        if limit is not None and used is not None:
            found.append(Left(what, limit - used, limit, a_turn))
    return found


class Window:
    """How full the model's window is: by what the endpoint counted last, and by characters since then."""

    def __init__(self, limits: GradingOptions):
        self.limits, self.tokens, self.chars = limits, 0, 0

    def said(self, chars: int) -> None:
        """So many characters are added to the conversation, by us or by the model."""
        self.chars += chars

    def counted(self, last: Usage) -> None:
        """The endpoint says how much it read and wrote; one that says nothing is estimated on."""
        if last.input_tokens:
            self.tokens, self.chars = last.input_tokens + last.output_tokens, 0

    @property
    def left_tokens(self) -> int:
        return self.limits.max_context_tokens - self.tokens - self.chars // TOKEN_CHARS

    @property
    def room_chars(self) -> int:
        """Characters that tools may still answer, so that the verdict fits in behind them."""
        kept_free = min(VERDICT_TOKENS, int(VERDICT_SHARE * self.limits.max_context_tokens))
        return TOKEN_CHARS * (self.left_tokens - kept_free)


def left_words(budgets: Sequence[Left]) -> str:
    """Tell what is nearly spent.

    Args:
        budgets: all that have a limit.
    Returns:
        One or two sentences; empty while there is enough of everything.
    """
    near = [budget for budget in budgets if budget.is_near]
    if not near:
        return ""
    said = ", ".join(f"{_figure(budget.left)} of {_figure(budget.of)} {budget.what}" for budget in near)
    if any(budget.is_last for budget in near):
        return f"Left: {said}. This is your last turn: call submit now, or the grading ends without a verdict."
    return f"Left: {said}. Call submit soon, with what you can prove."


def _figure(value: float) -> str:
    return f"{max(0.0, value):,.2f}" if value < 10 and value != int(value) else f"{max(0, int(value)):,}"
