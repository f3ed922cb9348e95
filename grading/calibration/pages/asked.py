"""What the address of a what-if asks for besides the numbers."""

from collections.abc import Mapping

CHOICES = (100, 1_000, 10_000)
USUAL = 1_000


def last_of(query: Mapping[str, str]) -> int:
    """How many of the last groups to replay; anything that is no choice is the usual one."""
    text = query.get("last", "")
    return int(text) if text in map(str, CHOICES) else USUAL
