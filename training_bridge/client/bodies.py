"""Which events and logs still wait for the server to want them. Pure; the caller locks and tells the time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

Lines = Callable[[], Iterable[bytes]]

FIRST_ASK_S = 0.1
LONGEST_ASK_S = 5.0


@dataclass
class GroupBodies:
    """The bodies of one group, and when to ask next whether they are wanted."""

    size: int
    waiting: dict[str, Lines] = field(default_factory=dict)  # by external_id
    forget: dict[str, Callable[[], None]] = field(default_factory=dict)  # frees the room a body takes
    arrived: int = 0  # outcomes the server has
    ask_at: float | None = None  # seconds, the caller's clock; None before an outcome arrived
    pause_s: float = FIRST_ASK_S


class Bodies:
    """The bodies of all groups that are not settled."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupBodies] = {}

    @property
    def settling(self) -> bool:
        """Whether a group that is whole still waits for the server's answer."""
        return any(group.waiting and group.arrived >= group.size for group in self.groups.values())

    def open(self, group: str, size: int) -> None:
        """Know a group. Args: group, its key; size, how many rollouts it will have."""
        self.groups.setdefault(group, GroupBodies(size))

    def add(self, group: str, external_id: str, lines: Lines, forget: Callable[[], None]) -> None:
        """Keep one body.

        Args:
            group, external_id: whose.
            lines: makes the NDJSON of the second post.
            forget: frees what the body takes, called once.
        """
        bodies = self.groups.setdefault(group, GroupBodies(0))
        bodies.waiting[external_id] = lines
        bodies.forget[external_id] = forget

    def outcome_arrived(self, group: str, now: float) -> None:
        """Plan the question: at once when the group is whole, else later. Args: group; now, in seconds."""
        bodies = self.groups.get(group)
        if bodies is None:
            return
        bodies.arrived += 1
        if bodies.arrived >= bodies.size:
            bodies.ask_at = now
            if not bodies.waiting:
                del self.groups[group]
        elif bodies.ask_at is None:
            bodies.ask_at = now + LONGEST_ASK_S

    def sealed(self, group: str, now: float) -> None:
        """Nothing more comes: the group is whole as it is. Args: group; now, in seconds."""
        bodies = self.groups.get(group)
        if bodies is not None:
            bodies.size, bodies.ask_at = bodies.arrived, now
            if not bodies.waiting:
                del self.groups[group]

    def due(self, now: float) -> str | None:
        """The group to ask about now, the most overdue first; None if there is none."""
        asked = [(g.ask_at, key) for key, g in self.groups.items() if g.ask_at is not None and g.waiting]
        at, key = min(asked, default=(now + 1, None))
        return key if at <= now else None

    def next_at(self) -> float | None:
        """When the next question is due, in seconds of the caller's clock."""
        return min((g.ask_at for g in self.groups.values() if g.ask_at is not None and g.waiting), default=None)

    def ask_later(self, group: str, now: float) -> None:
        """The server has not made up its mind. Args: group; now, in seconds."""
        bodies = self.groups[group]
        bodies.ask_at = now + bodies.pause_s
        bodies.pause_s = min(bodies.pause_s * 2, LONGEST_ASK_S)

    def settle(self, group: str, external_id: str | None = None) -> None:
        """Forget one body, or the whole group. Args: group; external_id, None for all."""
        bodies = self.groups.get(group)
        if bodies is None:
            return
        for name in [external_id] if external_id is not None else list(bodies.waiting):
            bodies.waiting.pop(name, None)
            bodies.forget.pop(name, lambda: None)()
        if not bodies.waiting and (external_id is None or bodies.arrived >= bodies.size):
            del self.groups[group]
