"""Every order of a few steps and faults, to a bound, over the real sessions, outbox and buffer; then at random beyond.

A version is never lost, doubled or mixed. A fault in one rule is found by the same search.
"""

import pickle
from collections import deque

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from msgspec import structs

from tests.training_bridge.world import ACTIONS, Broken, Store, World
from training_bridge.client.buffer import Buffer
from training_bridge.protocol.client_session import ClientSession, Position
from training_bridge.protocol.messages import ProtocolError
from training_bridge.protocol.outbox import Outbox
from training_bridge.protocol.sessions import ServerSession
from training_bridge.protocol.wire import digest_of

# what may go wrong, and how often, in one search; each combination is searched whole, or to as many states as it says
FAULTS = {
    "lose": {"lose": 1, "duplicate": 1, "correct": 1, "steps": 1},
    "reorder": {"versions": 3, "reorder": 1, "correct": 2, "steps": 1},
    "kill": {"save": 1, "kill": 1, "correct": 1, "steps": 1},
    "roll_back": {"save": 2, "kill": 1, "steps": 2},
    "restore": {"groups": 2, "versions": 1, "back_up": 1, "restore": 1, "steps": 1},
    "restore_and_kill": {"back_up": 1, "restore": 1, "kill": 1, "save": 1, "steps": 1},
}
PLAYS = ("declare", "connect", "decide", "row")  # a beginning that most searches share
EMPTY = {"restore"}  # searched from an empty stream on
MOST = 1000  # states; kill ends by itself at 5,112, roll_back at 8,957


def search(world_type, faults, *, most=MOST):
    """Breadth first, each state once; every state is finished too. Returns: how many there are. Raises: Broken."""
    world, start = world_type(**FAULTS[faults]), PLAYS[:2] if faults in EMPTY else PLAYS
    for name in start:
        getattr(world, name)()
    first = pickle.dumps(world)
    seen, waiting = {first}, deque([(first, start)])
    while waiting and len(seen) < most:
        state, path = waiting.popleft()
        for name in ACTIONS:
            world = pickle.loads(state)
            try:
                if not getattr(world, name)():
                    continue
                world.check()
                after = pickle.dumps(world)
                if after in seen:
                    continue
                world.finish()
                world.check()
            except (Broken, ProtocolError) as broken:
                raise Broken(f"{broken}, after {', '.join((*path, name))}") from broken
            seen.add(after)
            waiting.append((after, (*path, name)))
    return len(seen)


@pytest.mark.parametrize("faults", FAULTS)
def test_no_order_of_faults_loses_doubles_or_mixes_a_version(faults):
    assert search(World, faults) > 500


class Beyond(RuleBasedStateMachine):
    """The same world, larger than any search: everything may happen, often."""

    def __init__(self):
        super().__init__()
        faults = ("lose", "duplicate", "reorder", "correct", "save", "kill", "back_up", "restore")
        self.world = World(groups=6, versions=4, steps=12, **dict.fromkeys(faults, 4))

    @rule(names=st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=6))
    def happen(self, names):
        for name in names:
            getattr(self.world, name)()
            self.world.check()

    def teardown(self):
        self.world.finish()
        self.world.check()


test_a_long_story_loses_doubles_and_mixes_nothing = Beyond.TestCase
test_a_long_story_loses_doubles_and_mixes_nothing.settings = settings(
    max_examples=25, stateful_step_count=15, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


# ---- the search has teeth: one rule of each is wrong ----


class ForgetfulBuffer(Buffer):
    """Knows nothing of what an older life used."""

    def __init__(self, run, saved=None):
        super().__init__(run, saved)
        self.applied.clear()


class EagerBuffer(Buffer):
    """Takes a row of any life."""

    def take(self, row, position):
        return super().take(structs.replace(row, life=self.life), position)


class CarelessCursor(Buffer):
    """A checkpoint that forgets the rows in hand, though it stands behind them."""

    def cursor(self, unnoted):
        cursor = super().cursor(unnoted)
        cursor.pending = []
        return cursor


class DeafClient(ClientSession):
    """Does not see a gap."""

    def _take_row(self, row, text):
        if row.seq <= self.position.seq:
            return None
        self.position = Position(self.position.epoch, row.seq, digest_of(text))
        return row


class OldOutbox(Outbox):
    """Numbers on from where it was, whatever the server has lost."""

    def settle(self, noted):
        self.noted(min(noted, self._next_n - 1))
        return 0


class ForgetfulOutbox(Outbox):
    """Takes what was sent for told."""

    def rewind(self):
        self._flight.clear()


class TrustingServer(ServerSession):
    """Takes every cursor for one of its own."""

    def answer(self, facts):
        seq = min(self._resume.after_seq, facts.head_seq)
        self._resume = structs.replace(self._resume, epoch=facts.epoch, after_seq=seq, digest=facts.digest)
        return super().answer(facts)


class NoFence(Store):
    """Notes what a killed process had said, after its successor has spoken."""

    def note(self, life, message):
        lives, self.lives = self.lives, life
        super().note(life, message)
        self.lives = lives


def with_part(**parts) -> type[World]:
    name = "With" + "And".join(part.__name__ for part in parts.values())
    globals()[name] = made = type(name, (World,), {**parts, "__module__": __name__})
    return made


MUTANTS = {
    "kill": [
        with_part(buffer_type=ForgetfulBuffer), with_part(buffer_type=CarelessCursor),
        with_part(buffer_type=EagerBuffer), with_part(store_type=NoFence),
    ],
    "reorder": [with_part(client_type=DeafClient)],
    "lose": [with_part(outbox_type=ForgetfulOutbox)],
    "restore": [
        with_part(outbox_type=OldOutbox), with_part(server_type=TrustingServer),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("faults", "mutant"), [(faults, mutant) for faults, found in MUTANTS.items() for mutant in found],
    ids=lambda value: getattr(value, "__name__", value),
)  # fmt: skip
def test_a_fault_in_one_rule_is_found(faults, mutant):
    with pytest.raises((Broken, ProtocolError, ValueError)):
        search(mutant, faults)
