"""Which groups a fit may read and which only a gate may, drawn by the group's own number before anybody looks. Core."""

from collections.abc import Collection, Sequence
from hashlib import sha256

SHARE = 0.5


def is_held_out(group: int) -> bool:
    """Whether a group is kept from every fit until a gate has spent it. The same answer on every machine."""
    first = sha256(f"held out:{group}".encode()).digest()[:4]
    return int.from_bytes(first, "big") < SHARE * 2**32


def split(groups: Sequence[int], spent: Collection[int]) -> tuple[list[int], list[int]]:
    """Split groups into those a fit reads and those a gate may spend.

    Args:
        groups: primary keys. spent: of those, what a gate has read: they are no secret any more, a fit may use them.
    Returns:
        (for the fit, held out), each in the order given.
    """
    held = [group for group in groups if is_held_out(group) and group not in spent]
    kept = set(held)
    return [group for group in groups if group not in kept], held
