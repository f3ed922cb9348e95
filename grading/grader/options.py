"""What a run may set about its gradings: model, budgets, shuffled orders, the image of its checks. Core."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any

from grading.errors import WrongShape

FAMILIES = ("openai", "anthropic")
MODEL = "openai:NAME or anthropic:NAME"


@dataclass(frozen=True)
class GradingOptions:
    """Options of a run's gradings; whatever is not set has these defaults. None means no limit."""

    model: str = ""  # "openai:NAME" or "anthropic:NAME"; "" = the operator's GAGAR_GRADER_MODEL
    orders: int = 1  # a drawn group is graded in this many shuffled orders, and the verdicts are merged
    orders_share: float = 0.1  # probability that a group is drawn for it
    flips_hold: float = 0.25  # share of flipped pairs above which a person sees the group first
    max_turns: int = 40
    max_tool_calls: int = 200
    max_input_tokens: int = 1_500_000
    max_context_tokens: int = 120_000  # of one call: what the model's window holds, its answer included
    max_output_tokens: int = 100_000
    max_cost_usd: float | None = None  # of one group
    max_wall_s: float = 600.0  # of one group
    step_groups: int | None = None  # graded in one step, at most; the rest falls back, with the reason
    step_cost_usd: float | None = None
    step_wall_s: float | None = None  # summed over the step's gradings
    checks: bool = True  # targeted checks, where this machine has a sandbox
    check_image: str = ""  # docker image that holds the run's toolchain; "" = bubblewrap on the host's /usr
    check_wall_s: float = 60.0
    max_checks: int = 30  # of one group

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> "GradingOptions":
        """Read stored options.

        Args:
            said: field -> value; absent fields keep their defaults.
        Returns:
            The options.
        Raises:
            WrongShape: an unknown field, another type, or a number out of its range; the message names the field.
        """
        known = {field.name: field for field in fields(cls)}
        for name, value in said.items():
            if name not in known:
                raise WrongShape("no such option", got=str(name)[:80], expected=", ".join(known), where=str(name)[:80])
            _check(name, value, known[name].type)
        return cls(**said)

    def to_json(self) -> dict[str, Any]:
        """Returns: the options that differ from their defaults."""
        default = asdict(type(self)())
        return {name: value for name, value in asdict(self).items() if value != default[name]}


_AT_MOST = {"orders": 8, "orders_share": 1, "flips_hold": 1}
_AT_LEAST = {
    "orders": 1, "max_turns": 1, "max_tool_calls": 0, "max_input_tokens": 1, "max_output_tokens": 1,
    "max_context_tokens": 16_000, "check_wall_s": 1, "max_wall_s": 1,
}  # fmt: skip


def _check(name: str, value: Any, kind: Any) -> None:
    kind = getattr(kind, "__name__", str(kind))
    if value is None and "None" in kind:
        return
    if kind.startswith("str") or kind.startswith("bool"):
        wanted = str if kind.startswith("str") else bool
        if type(value) is not wanted or len(str(value)) > 200:
            raise WrongShape(f"option {name} is wrong", got=str(value)[:80], expected=wanted.__name__, where=name)
        family, _, model = str(value).partition(":")
        if name == "model" and value and (family not in FAMILIES or not model):
            raise WrongShape("option model is wrong", got=value[:80], expected=f"{MODEL} or nothing", where=name)
        return
    is_whole = kind.startswith("int")
    low, high = _AT_LEAST.get(name, 0), _AT_MOST.get(name)
    fits = isinstance(value, int if is_whole else int | float) and not isinstance(value, bool) and isfinite(value)
    if not fits or value < low or (high is not None and value > high):
        most = f" to {high}" if high is not None else ""
        words = f"{'a whole number' if is_whole else 'a number'} from {low}{most}"
        raise WrongShape(f"option {name} is wrong", got=str(value)[:80], expected=words, where=name)
