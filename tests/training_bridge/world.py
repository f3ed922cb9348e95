"""A model of one run: its server's disk, the network, and the processes of its job, over the real pure parts.

Each method of `World` that `ACTIONS` names is one thing that happens; it returns False where it cannot. `check` holds
at every moment; `finish` lets everything be told and then holds the last words against the parameters.
"""

import json
import pickle

import msgspec

from training_bridge.client.buffer import Buffer
from training_bridge.client.cursor import pending_receipts, read_cursor
from training_bridge.client.sets import Rollout
from training_bridge.protocol.client_session import ClientSession
from training_bridge.protocol.messages import (
    AdvantageRow,
    Advantages,
    CloseCode,
    Estimator,
    Metrics,
    ProtocolError,
    Receipt,
)
from training_bridge.protocol.outbox import Outbox
from training_bridge.protocol.sessions import ServerSession, StreamFacts
from training_bridge.protocol.wire import encode_row

DONE = ("applied", "too_late", "expired", "not_used")


class Broken(AssertionError):
    """An invariant does not hold."""


class Store:
    """The server's disk."""

    def __init__(self):
        self.lives, self.epoch = 0, 1
        self.rows = []  # text, digest, (life, group, version)
        self.versions = {}  # (life, group) to the newest decided
        self.noted = {}  # life to n
        self.words = []  # (life, group, version, status)

    def decide(self, life, group):
        self.versions[life, group] = version = self.versions.get((life, group), 0) + 1
        self.add(life, group, version)

    def add(self, life, group, version):
        entry = AdvantageRow(
            trajectory="a", outcome="passed", reward=1.0, equivalent_reward=1.0, factor=1.0,
            advantage=float(1000 * life + version),
        )  # fmt: skip
        said = {"group": group, "life": life, "version": version, "step": 0, "regime": "exact", "train": True}
        self.rows.append(
            (*encode_row(Advantages(seq=len(self.rows) + 1, rows=(entry,), **said)), (life, group, version))
        )

    def open_epoch(self, above):
        self.epoch, self.rows = max(self.epoch, above) + 1, []
        done = {(life, group) for life, group, _, status in self.words if status in DONE}
        for (life, group), version in self.versions.items():
            if life == self.lives and (life, group) not in done:
                self.add(life, group, version)

    def facts(self, resume):
        row = self.rows[resume.after_seq - 1] if 0 < resume.after_seq <= len(self.rows) else (None, None)
        noted = self.noted.get(resume.life, 0)
        return StreamFacts(
            life=self.lives, epoch=self.epoch, head_seq=len(self.rows), mode="normal", digest=row[1], noted=noted
        )

    def note(self, life, message):
        """As `intake.note`: in order, each once, never of a fenced life."""
        if life != self.lives:
            raise ProtocolError("life", got=life, expected=self.lives, code=CloseCode.FENCED)
        if message.n != self.noted.get(life, 0) + 1:
            raise ProtocolError("n", got=message.n, expected=self.noted.get(life, 0) + 1, code=CloseCode.GAP)
        self.noted[life] = message.n
        if isinstance(message, Receipt):
            self.words.append((message.life, message.group, message.version, message.status))


class World:
    """One run. `budget` says how often each fault may happen; subclasses put a faulty part in."""

    store_type, buffer_type, outbox_type = Store, Buffer, Outbox
    client_type, server_type = ClientSession, ServerSession

    def __init__(self, *, groups=1, versions=2, steps=2, **budget):
        self.limits = {"groups": groups, "versions": versions, "steps": steps}
        self.budget = dict(budget)
        self.store = self.store_type()
        self.backup = None
        self.restored, self.lost_words = False, set()
        self.checkpoints = [(None, ())]  # cursor as JSON text, parameters
        self.declared = 0
        self.ghost = None  # the socket of a killed process: what it sent may still arrive
        self.start(0)

    def spend(self, fault) -> bool:
        left = self.budget.get(fault, 0)
        self.budget[fault] = left - 1
        return left > 0

    # ---- the job ----

    def start(self, which):
        text, parameters = self.checkpoints[which]
        del self.checkpoints[which + 1 :]
        saved = read_cursor(json.loads(text)) if text else None
        self.buffer, self.outbox = self.buffer_type("r", saved), self.outbox_type(in_flight=4)
        if saved:
            self.outbox.restore(saved.unnoted)
            for receipt in pending_receipts(saved):
                self.outbox.put(receipt)
        self.parameters = parameters
        self.batch = self.server = self.client = None

    def take_life(self):
        """POST lives: at the start, or when the server has lost ours."""
        self.store.lives += 1
        old, new = self.buffer.life, self.store.lives
        if old > 0:
            for key in self.buffer.undecided(self.buffer.open):
                self.buffer.break_group(key, "lost_by_server")
        self.outbox.adopt(old, new)
        self.parameters = tuple((new if life == old else life, *rest) for life, *rest in self.parameters)
        self.buffer.adopt(new)

    def declare(self):
        if self.declared >= self.limits["groups"]:
            return False
        self.declared += 1
        rollouts = {"a": Rollout("passed"), "b": Rollout("failed")}
        self.buffer.declare(f"g{self.declared}", self.buffer.step, eligible=True).rollouts.update(rollouts)
        return True

    def freeze(self, hold_steps=0):
        keys = [key for key, group in self.buffer.open.items() if group.frozen is None]
        if self.batch is not None or not keys or self.buffer.step >= self.limits["steps"]:
            return False
        self.buffer.step += 1
        sets, _, receipts = self.buffer.freeze(
            self.buffer.step, keys, local=None, reason="deadline", hold_steps=hold_steps
        )
        for receipt in receipts:
            self.outbox.put(receipt)
        for got in sets:
            if got.advantage["a"] != (1000 * got.life + got.version if got.version else 0.5):
                raise Broken(f"{got.group} version {got.version} holds the numbers of another")
        self.batch = sets
        return True

    def freeze_and_hold(self):
        return self.freeze(hold_steps=5)

    def train(self):
        if self.batch is None:
            return False
        for got in self.batch:
            self.outbox.put(self.buffer.use(got, self.buffer.step))
            self.parameters += ((self.buffer.life, got.group, got.version),)
        self.batch = None
        return True

    def save(self):
        cursor = msgspec.json.encode(self.buffer.cursor(self.outbox.unnoted())).decode()
        if self.checkpoints[-1] == (cursor, self.parameters) or not self.spend("save"):
            return False
        self.checkpoints.append((cursor, self.parameters))
        return True

    def kill(self):
        return self.spend("kill") and self.die(len(self.checkpoints) - 1)

    def roll_back(self):
        return len(self.checkpoints) > 1 and self.spend("kill") and self.die(len(self.checkpoints) - 2)

    def die(self, which):
        """The process dies; what it has sent last may still be on its way."""
        self.ghost = (self.server, self.client.due()) if self.client else None
        self.start(which)
        return True

    # ---- the network ----

    def connect(self):
        if self.client is not None:
            return False
        if self.buffer.life < 0:
            self.take_life()
        for _ in range(2):
            try:
                return self.shake_hands()
            except ProtocolError as refused:
                self.cut()
                if refused.code != CloseCode.UNKNOWN_LIFE:
                    raise Broken(f"the resume of the only job is refused: {refused}") from refused
                self.take_life()
        raise Broken("a new life is unknown again")

    def shake_hands(self):
        self.server = self.server_type(window=2)
        self.client = self.client_type(
            life=self.buffer.life, position=self.buffer.position, estimator=Estimator(), outbox=self.outbox
        )
        resume = self.server.receive(self.client.hello())
        if needed := self.server.answer(self.store.facts(resume)):
            self.store.open_epoch(needed.above)
            self.server.answer(self.store.facts(resume))
        for text in self.server.replies():
            self.client.receive(text)
        self.buffer.position = self.client.position
        for receipt in self.buffer.retell(self.client.outbox_lost) if self.client.outbox_lost else ():
            self.outbox.put(receipt)
        return True

    def cut(self):
        self.server = self.client = None
        return True

    def lose(self):
        return self.client is not None and self.spend("lose") and self.cut()

    def row(self, times=1):
        if self.client is None or not self.server.room or self.server.sent >= len(self.store.rows):
            return False
        text = self.server.pass_on(self.server.sent + 1, self.store.rows[self.server.sent][0])
        for _ in range(times):
            self.hear_row(text)
        return True

    def hear_row(self, text):
        row = self.client.receive(text)
        if isinstance(row, Advantages):
            for receipt in self.buffer.take(row, self.client.position):
                self.outbox.put(receipt)

    def row_twice(self):
        return self.client is not None and self.spend("duplicate") and self.row(times=2)

    def rows_swapped(self):
        """The second before the first: a gap, which closes the socket."""
        if self.client is None or self.server.sent + 2 > len(self.store.rows) or not self.spend("reorder"):
            return False
        try:
            for place in (self.server.sent + 1, self.server.sent):
                self.hear_row(self.store.rows[place][0])
        except ProtocolError:
            self.cut()
        else:
            self.server.sent += 2
        return True

    def tell(self, reached=None, heard=True):
        if self.client is None or not (texts := self.client.due()):
            return False
        self.server_hears(self.server, texts[:reached])
        if heard and self.server is not None:
            for text in self.server.replies():
                self.client.receive(text)
        return True

    def server_hears(self, server, texts):
        for text in texts:
            message = server.receive(text)
            if isinstance(message, Receipt | Metrics):
                self.store.note(server.life, message)
                server.note(message.n)

    def tell_half(self):
        return self.client is not None and self.spend("lose") and self.tell(reached=1, heard=False) and self.cut()

    def tell_and_miss_the_answer(self):
        return self.client is not None and self.spend("lose") and self.tell(heard=False) and self.cut()

    def ghost_arrives(self):
        """What a killed process had sent reaches the server late, perhaps after its fence."""
        if self.ghost is None or self.ghost[0] is None:
            return False
        server, texts = self.ghost
        self.ghost = None
        try:
            self.server_hears(server, texts)
        except ProtocolError:
            pass
        return True

    # ---- the server ----

    def decide(self):
        """A first decision, or a correction."""
        return self._decide(max(self.buffer.open, default=None))

    def _decide(self, key):
        life = self.buffer.life
        known = self.store.versions.get((life, key), 0) < self.limits["versions"]
        if key is None or life < 1 or life > self.store.lives or not known:
            return False
        self.store.decide(life, key)
        return True

    def correct(self):
        """Of whatever was decided first, used or not, of this life or of an older one."""
        found = next(iter(self.store.versions), None)
        if found is None or self.store.versions[found] >= self.limits["versions"] or not self.spend("correct"):
            return False
        self.store.decide(*found)
        return True

    def back_up(self):
        if not self.spend("back_up"):
            return False
        self.backup = pickle.dumps(self.store)
        return True

    def restore(self):
        if self.backup is None or not self.spend("restore"):
            return False
        noted, self.store = self.store.words, pickle.loads(self.backup)
        self.lost_words |= {word[:3] for word in noted} - {word[:3] for word in self.store.words}
        self.ghost, self.restored = None, True
        return self.cut()

    # ---- what must hold ----

    def check(self):
        used = [(life, group) for life, group, _ in self.parameters]
        if len({*used}) != len(used):
            raise Broken(f"a group was used twice: {self.parameters}")
        applied = tuple((life, group, version) for (life, group), (version, _) in self.buffer.applied.items())
        if applied != self.parameters:
            raise Broken(f"the cursor says {applied}, the parameters hold {self.parameters}")

    def finish(self):
        for _ in range(30):
            if self.client is None:
                self.connect()
            if not (self.row() | self.tell()) and not len(self.outbox):
                break
        self.ghost_arrives()
        if self.server.sent != len(self.store.rows) or len(self.outbox):
            raise Broken("something is never told")
        last = {word[:3]: word[3] for word in self.store.words}
        held = {(row[0], row[1], row[2]) for row in self.buffer.cursor([]).pending}
        for *_, row in self.store.rows:
            told_again = row in self.parameters and not self.lost_with_its_life(row)
            if row in held or (row in self.lost_words and row not in last and not told_again):
                continue  # it may still be used; or its word was lost, and only the newest uses are said again
            if row not in last:
                raise Broken(f"no word about {row}")
            if (last[row] == "applied") != (row in self.parameters):
                raise Broken(f"{row} is told as {last[row]}, the parameters hold {self.parameters}")
        for one in self.parameters:
            if one[0] > 0 and last.get(one) != "applied" and not self.lost_with_its_life(one):
                raise Broken(f"{one} is in the parameters and told as {last.get(one)}")

    def lost_with_its_life(self, one) -> bool:
        """A restored server may know neither a life nor its words; only the newest life tells them again."""
        return self.restored and one[0] != self.buffer.life


ACTIONS = (
    "declare", "connect", "decide", "row", "tell", "freeze", "freeze_and_hold", "train", "save", "correct", "kill",
    "roll_back", "ghost_arrives", "lose", "tell_half", "tell_and_miss_the_answer", "row_twice", "rows_swapped",
    "back_up", "restore",
)  # fmt: skip
