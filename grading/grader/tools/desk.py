"""What tools share: the desk they work at, what they refuse, how an answer is put together."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from grading.grader.fence import fenced
from grading.grader.options import GradingOptions
from grading.grader.shown import Shown
from grading.grader.tool_texts import Piece, listed
from grading.grader.workspace import Workspace

Fence = Callable[[str, str], str]  # (label, text of a candidate) -> the text as data, under a nonce of its own


class Refused(Exception):
    """A call that makes no sense; its words go back to the model."""


class Arguments(BaseModel):
    """Arguments of a tool: nothing beside what is named."""

    model_config = ConfigDict(extra="forbid")


@dataclass
class Desk:
    """One grading's workspace with what its tools need: options, the fence, and the checks it has run so far.

    `deadline` is on `time.monotonic`'s clock; `why_no_checks` says why none can be run here, "" where they can;
    `grading_id` is the grading whose checks they are.
    """

    ws: Workspace
    options: GradingOptions
    deadline: float
    why_no_checks: str = ""
    grading_id: int | None = None
    fence: Fence = fenced
    checks_run: int = 0

    @property
    def checks_left(self) -> int:
        return self.options.max_checks - self.checks_run

    @property
    def offers(self) -> set[str]:
        """What tools may need that is here."""
        has_repository = self.ws.repository is not None
        found = {"repository"} if has_repository else set()
        return found | ({"checks"} if has_repository and not self.why_no_checks else set())

    def shown(self, letter: str) -> Shown:
        """Returns: the rollout with this letter. Raises Refused for a letter that is none."""
        wanted = letter.strip().removeprefix("candidate ").strip()
        if wanted in self.ws.shown:
            return self.ws.shown[wanted]
        raise Refused(f"There is no candidate {wanted[:40]!r}; the candidates are {', '.join(self.letters)}.")

    @property
    def letters(self) -> list[str]:
        """All letters: the passing ones in the order of this grading, then the failed ones."""
        return [*self.ws.order, *self.ws.failing]

    def answer(self, label: str, piece: Piece) -> str:
        """Fence what is not ours, and say below it what was cut."""
        parts = [self.fence(label, piece.body)] if piece.body else ["Nothing to show."]
        return "\n".join([*parts, piece.cut] if piece.cut else parts)


@dataclass(frozen=True)
class Tool:
    """A tool as the model sees it, and what it does: `run` gives text of ours with fenced text of others."""

    name: str
    says: str
    arguments: type[Arguments]
    run: Callable[[Desk, Any], str]
    needs: Sequence[str] = ()  # "repository", "checks"

    def schema(self) -> dict[str, Any]:
        """Returns: the JSON schema of its arguments, without pydantic's titles: they say the name again."""
        schema = self.arguments.model_json_schema()
        for place in (schema, *schema.get("properties", {}).values()):
            place.pop("title", None)
        return schema


def page(lines: Iterable[str], start: int) -> Piece:
    """Returns: a listing from `start` on. Raises Refused where that is behind its end."""
    piece = listed(lines, start=at_least("start", start, 1))
    if not piece.body and start > 1:
        raise Refused(f"The listing ends before line {start}.")
    return piece


def at_least(name: str, value: int, low: int) -> int:
    """Returns: the value. Raises Refused below `low`."""
    if value < low:
        raise Refused(f"{name} is {value}, expected {low} or more.")
    return value
