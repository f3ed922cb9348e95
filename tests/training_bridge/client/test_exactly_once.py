"""A model of a job, a network and a server, driven at random: nothing is lost, doubled or mixed.

The parts under test are the pure ones (both sessions, outbox, buffer); the model loses, doubles, kills, rolls back and
corrects.
"""

import json
import random
from collections import Counter

import msgspec
import pytest

from training_bridge.client.buffer import Buffer
from training_bridge.client.cursor import Cursor, pending_receipts, read_cursor
from training_bridge.client.sets import Rollout
from training_bridge.protocol.client_session import ClientSession
from training_bridge.protocol.messages import AdvantageRow, Advantages, Estimator, Metrics, Receipt
from training_bridge.protocol.outbox import Outbox
from training_bridge.protocol.sessions import ServerSession, StreamFacts
from training_bridge.protocol.wire import encode_row

ROLLOUTS = {"a": Rollout("passed"), "b": Rollout("failed")}


class Store:
    """What the server keeps on disk."""

    def __init__(self):
        self.lives = 0
        self.epoch = 1
        self.rows = []  # (text, digest, (life, group, version))
        self.versions = {}  # (life, group) to the newest
        self.noted = {}  # life to n
        self.receipts = []
        self.metrics = []

    def decide(self, life, group):
        version = self.versions[life, group] = self.versions.get((life, group), 0) + 1
        self.add(life, group, version)

    def add(self, life, group, version):
        number = float(1000 * life + version)
        row = AdvantageRow(
            trajectory="a", outcome="passed", reward=1.0, equivalent_reward=1.0, advantage=number, factor=1.0
        )
        fields = {"group": group, "life": life, "version": version, "step": 0, "regime": "exact", "train": True}
        message = Advantages(seq=len(self.rows) + 1, rows=(row,), **fields)
        self.rows.append((*encode_row(message), (life, group, version)))

    def facts(self, resume):
        digest = self.rows[resume.after_seq - 1][1] if 0 < resume.after_seq <= len(self.rows) else None
        return StreamFacts(
            life=self.lives,
            epoch=self.epoch,
            head_seq=len(self.rows),
            mode="normal",
            digest=digest,
            noted=self.noted.get(resume.life, 0),
        )


class OneJob:
    """One run: a store, and a chain of processes that each restore some checkpoint of the one before."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.store = Store()
        self.checkpoints = [(None, [])]  # cursor as JSON text, parameters
        self.keys = 0
        self.start(0)

    def start(self, which):
        text, parameters = self.checkpoints[which]
        del self.checkpoints[which + 1 :]  # a job that went back writes over the newer ones
        saved = read_cursor(json.loads(text)) if text else None
        self.buffer, self.outbox = Buffer("r", saved), Outbox(in_flight=4)
        if saved:
            self.outbox.restore(saved.unnoted)
            for receipt in pending_receipts(saved):
                self.outbox.put(receipt)
        self.parameters = list(parameters)
        self.life_known = False
        self.batch = None
        self.server = self.client = None

    def issue_life(self):
        if self.life_known:
            return
        self.store.lives += 1
        self.outbox.adopt(self.buffer.life, self.store.lives)
        self.parameters = [
            (self.store.lives if life == self.buffer.life else life, *rest) for life, *rest in self.parameters
        ]
        self.buffer.adopt(self.store.lives)
        self.life_known = True

    def declare(self):
        self.keys += 1  # a job may count its keys anew in each life
        key = self.random.choice([f"g{len(self.buffer.open)}-{self.buffer.step}", f"g{self.keys}"])
        if key not in self.buffer.open and (self.buffer.life, key) not in self.buffer.applied:
            self.buffer.declare(key, self.buffer.step, eligible=True).rollouts.update(ROLLOUTS)

    def decide_or_correct(self):
        known = {*self.store.versions} | {(self.buffer.life, key) for key in self.buffer.open if self.life_known}
        if known:
            self.store.decide(*self.random.choice(sorted(known)))

    def lose_the_socket(self):
        self.server = self.client = None

    def connect(self):
        if not self.life_known:
            return
        self.server = ServerSession(window=3)
        self.client = ClientSession(
            life=self.buffer.life, position=self.buffer.position, estimator=Estimator(), outbox=self.outbox
        )
        resume = self.server.receive(self.client.hello())
        if self.server.answer(self.store.facts(resume)):
            self.store.epoch += 1
            decided, self.store.rows = dict(self.store.versions), []
            for (life, group), version in decided.items():
                if life == self.store.lives:
                    self.store.add(life, group, version)
            self.server.answer(self.store.facts(resume))
        for text in self.server.replies():
            self.client.receive(text)
        self.buffer.position = self.client.position

    def rows_arrive(self):
        if self.client is None:
            return
        for _ in range(min(self.random.randint(1, 5), self.server.room, len(self.store.rows) - self.server.sent)):
            text = self.server.pass_on(self.server.sent + 1, self.store.rows[self.server.sent][0])
            for copy in [text] * self.random.randint(1, 2):
                message = self.client.receive(copy)
                if isinstance(message, Advantages):
                    for receipt in self.buffer.take(message, self.client.position):
                        self.outbox.put(receipt)

    def tell(self):
        """Some of what the job says, and what the server answers, may be lost with the socket."""
        if self.client is None:
            return
        texts = self.client.due()
        reached = self.random.choice([len(texts), self.random.randint(0, len(texts))])
        self.carry(texts[:reached])
        if reached < len(texts) or self.random.random() < 0.2:
            self.lose_the_socket()
        else:
            self.hear()

    def carry(self, texts):
        for text in texts:
            message = self.server.receive(text)
            if isinstance(message, Receipt | Metrics):
                life = self.server.life
                assert message.n == self.store.noted.get(life, 0) + 1
                self.store.noted[life] = message.n
                (self.store.receipts if isinstance(message, Receipt) else self.store.metrics).append(message)
                self.server.note(message.n)

    def hear(self):
        for text in self.server.replies():
            self.client.receive(text)

    def freeze(self):
        if self.batch is not None:
            return
        self.buffer.step += 1
        keys = [key for key, group in self.buffer.open.items() if group.frozen is None]
        sets, waiting, receipts = self.buffer.freeze(
            self.buffer.step,
            keys,
            local=self.random.choice([None, None, None, "paused"]),
            reason="deadline",
            hold_steps=self.random.randint(0, 3),
        )
        assert {got.group for got in sets} | {*waiting} == {*keys}
        for receipt in receipts:
            self.outbox.put(receipt)
        for got in sets:  # never another version's numbers
            assert got.advantage["a"] == (1000 * got.life + got.version if got.version else 0.5)
        self.batch = sets

    def step(self):
        for got in self.batch or ():
            self.outbox.put(self.buffer.use(got, self.buffer.step))
            self.parameters.append((self.buffer.life, got.group, got.version, self.buffer.step))
        self.batch = None

    def log(self):
        self.outbox.put(Metrics(n=1, step=self.buffer.step, values={"loss": 0.0}))

    def checkpoint(self):
        cursor = msgspec.json.encode(self.buffer.cursor(self.outbox.unnoted())).decode()
        self.checkpoints.append((cursor, list(self.parameters)))

    def kill_and_restart(self):
        self.start(max(0, len(self.checkpoints) - 1 - self.random.choice([0, 0, 1, 3])))

    def restore_the_server(self):
        if self.store.rows:
            self.store.rows.pop()
            self.lose_the_socket()

    def check(self):
        """The cursor says exactly what is in the parameters, each (life, group) once."""
        cursor: Cursor = self.buffer.cursor([])
        assert list(map(tuple, cursor.applied)) == self.parameters
        assert len({(life, group) for life, group, *_ in self.parameters}) == len(self.parameters)

    def finish(self):
        """In the end everything is told: every row of the stream has a last word, and it is true."""
        self.issue_life()
        self.connect()
        for _ in range(1000):
            self.rows_arrive()
            self.carry(self.client.due())
            self.hear()
            if self.server.sent == len(self.store.rows) and not len(self.outbox):
                break
        assert self.server.sent == len(self.store.rows) and not len(self.outbox)
        last = {(receipt.life, receipt.group, receipt.version): receipt.status for receipt in self.store.receipts}
        used = {(life, group, version) for life, group, version, _ in self.parameters if life > 0}
        held = {(life, group, version) for life, group, version in self.buffer.cursor([]).pending}
        for _, _, row in self.store.rows:
            if row not in held:
                assert (last[row] == "applied") == (row in used), (row, last[row])
        assert all(last[one] == "applied" for one in used)
        return Counter(last.values())


WEIGHTS = {
    OneJob.issue_life: 4,
    OneJob.declare: 8,
    OneJob.decide_or_correct: 10,
    OneJob.connect: 4,
    OneJob.lose_the_socket: 1,
    OneJob.rows_arrive: 10,
    OneJob.tell: 8,
    OneJob.freeze: 4,
    OneJob.step: 5,
    OneJob.log: 2,
    OneJob.checkpoint: 3,
    OneJob.kill_and_restart: 1.5,
    OneJob.restore_the_server: 0.3,
}


def play(seed, steps=150):
    job = OneJob(seed)
    for act in job.random.choices(list(WEIGHTS), weights=list(WEIGHTS.values()), k=steps):
        act(job)
        job.check()
    return job.finish()


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_nothing_is_lost_doubled_or_mixed(first):
    words = sum((play(seed) for seed in range(first, first + 100)), Counter())
    assert {"applied", "superseded", "too_late", "not_used"} <= set(words)  # the walk met every case
