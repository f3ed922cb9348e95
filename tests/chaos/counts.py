"""How often each fault strikes, and what was counted: printed when the tests end."""

import os

FULL = "GAGAR_CHAOS" in os.environ
REACHED: list[str] = []


def times(short: int, full: int) -> int:
    """The count of the short form, or of `make chaos`."""
    return full if FULL else short


def reached(name: str, **counts) -> None:
    """Say what a test has reached. Losses and doubles are asserted before: they are printed as the 0 they are."""
    REACHED.append(f"{name}: " + ", ".join(f"{words.replace('_', ' ')} {n}" for words, n in counts.items()))
