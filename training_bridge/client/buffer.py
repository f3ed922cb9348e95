"""What the job holds between a decision and its use: open groups, decided rows, what was used. Pure; the caller locks.

Exactly once is kept here: a (life, group) is frozen into one batch, and every version of it gets one word back.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from training_bridge.client.errors import GagarError, check_name
from training_bridge.client.sets import AdvantageSet, Rollout, decided_set, local_set
from training_bridge.protocol.client_session import Position
from training_bridge.protocol.messages import Advantages, Receipt, ReceiptStatus

EXPIRE_STEPS = 100
KEEP_APPLIED = 50_000


class Cursor(msgspec.Struct, kw_only=True):
    """What a checkpoint holds of the bridge, as JSON.

    Attributes:
        life: of the process that saved it; negative if no server had issued one.
        epoch, seq, digest: the last row held.
        step: the newest training step.
        mask_truncated: as the last welcome said.
        applied: [life, group, version, step] of every group used, oldest first; each (life, group) once.
        applied_dropped: how many older entries were left out to keep the checkpoint small.
        pending: [life, group, version] of rows held and not yet used.
        unnoted: receipts and metrics the server has not confirmed.
    """

    format: int = 1
    run: str
    life: int
    epoch: int
    seq: int
    digest: str | None = None
    step: int = 0
    mask_truncated: bool = False
    applied: list[tuple[int, str, int, int]] = []
    applied_dropped: int = 0
    pending: list[tuple[int, str, int]] = []
    unnoted: list[dict[str, Any]] = []


@dataclass
class OpenGroup:
    """One declared group that no batch has used up."""

    step: int
    eligible: bool = True
    rollouts: dict[str, Rollout] = field(default_factory=dict)
    row: Advantages | None = None  # the newest decision
    carried: bool = False  # a freeze has let it wait
    frozen: AdvantageSet | None = None


class Buffer:
    """The state of one life of the job.

    While no server has issued a life, `life` is a negative number, one below any in the checkpoint, so that groups of
    two starts without a server are never taken for each other.
    """

    def __init__(self, run: str, saved: Cursor | None = None):
        """Start empty, or where a checkpoint stands: its groups are of an older life and are not used again.

        Args:
            run: the public id of the run.
            saved: from the checkpoint.
        Raises:
            GagarError: the checkpoint belongs to another run.
        """
        if saved is not None and saved.run != run:
            raise GagarError("the cursor in the checkpoint", got=f"run {saved.run!r}", expected=f"run {run!r}")
        self.run = run
        self.step = saved.step if saved else 0
        self.mask_truncated = saved.mask_truncated if saved else False
        self.position = Position(saved.epoch, saved.seq, saved.digest) if saved else Position()
        self.open: dict[str, OpenGroup] = {}
        self.applied: OrderedDict[tuple[int, str], tuple[int, int]] = OrderedDict()
        self.applied_dropped = saved.applied_dropped if saved else 0
        for life, group, version, step in saved.applied if saved else ():
            self.applied[life, group] = (version, step)
        lives = [life for life, _ in self.applied] + ([saved.life] if saved else [])
        self.life = min([0, *lives]) - 1

    def adopt(self, life: int) -> None:
        """Take the life the server issued; what this process did before belongs to it. Args: life, from 1."""
        local, self.life = self.life, life
        self.applied = OrderedDict(
            ((life if of == local else of, group), used) for (of, group), used in self.applied.items()
        )

    def declare(self, key: str, step: int, *, eligible: bool) -> OpenGroup:
        """Open a group, or find it again.

        Args:
            key: unique in this life.
            step: its training step.
            eligible: whether it is graded.
        Raises:
            GagarError: it was used already or declared for another step, or the key or step is none.
        """
        check_name("group key", key)
        if step < 0:
            raise GagarError(f"step of group {key!r}", got=step, expected="0 or more")
        if (self.life, key) in self.applied:
            raise GagarError(f"group {key!r}", got="one that was used already", expected="a new key in this life")
        group = self.open.setdefault(key, OpenGroup(step, eligible))
        if (group.step, group.eligible) != (step, eligible):
            raise GagarError(f"group {key!r}", got=f"step {step}", expected=f"step {group.step}, as declared before")
        return group

    def take(self, row: Advantages, position: Position) -> list[Receipt]:
        """Hold one row of the stream.

        Args:
            row: it follows the last one.
            position: of this row.
        Returns:
            The receipts it causes: of the row itself if nobody will use it, of the one it supersedes.
        """
        self.position = position
        used = self.applied.get((row.life, row.group))
        if used is not None:
            status: ReceiptStatus = "applied" if used[0] == row.version else "too_late"
            return [self._receipt(row.life, row.group, row.version, status, used[1])]
        if row.life != self.life:
            return [self._receipt(row.life, row.group, row.version, "not_used")]
        group = self.open.get(row.group)
        if group is None:
            return [self._receipt(row.life, row.group, row.version, "too_late")]
        if group.frozen is not None:
            again = row.version == group.frozen.version
            return [] if again else [self._receipt(row.life, row.group, row.version, "too_late")]
        return self._hold(group, row)

    def undecided(self, keys: Iterable[str]) -> list[str]:
        """Those of the groups without a decision."""
        return [key for key in keys if self.open[key].row is None]

    def freeze(
        self, step: int, keys: list[str], *, local: str | None, reason: str, hold_steps: int
    ) -> tuple[list[AdvantageSet], list[str], list[Receipt]]:
        """Choose the rows of one batch, once.

        Args:
            step: the training step.
            keys: groups of this life, each open.
            local: use version 0 for every group, decided or not, for this reason; None normally.
            reason: of version 0 where a group is undecided and may not wait.
            hold_steps: how many steps an undecided group may wait.
        Returns:
            The sets in the order of the keys, the keys that wait, and receipts of rows passed over or expired.
        """
        sets, waiting, receipts = [], [], []
        for key in keys:
            group = self.open[key]
            if group.row is not None and local is None:
                group.frozen = decided_set(group.row, group.step, group.rollouts)
            elif local is None and step - group.step < hold_steps:
                group.carried = True
                waiting.append(key)
                continue
            else:
                receipts += self._pass_over(key, group, "not_used")
                group.frozen = self._local(key, group, local or reason)
            sets.append(group.frozen)
        return sets, waiting, receipts + self._expire(step, {*keys}, hold_steps)

    def use(self, used: AdvantageSet, step: int) -> Receipt | None:
        """Mark a frozen set as applied.

        Args:
            used: from a batch.
            step: of the optimiser step.
        Returns:
            Its receipt; None if it was marked before.
        Raises:
            GagarError: it was not frozen here.
        """
        group = self.open.get(used.group)
        if group is None and (self.life, used.group) in self.applied:
            return None
        if group is None or group.frozen is None or group.frozen.version != used.version:
            raise GagarError(f"group {used.group!r} version {used.version}", got="not frozen", expected="from a freeze")
        del self.open[used.group]
        self.applied[self.life, used.group] = (used.version, step)
        while len(self.applied) > KEEP_APPLIED:
            self.applied.popitem(last=False)
            self.applied_dropped += 1
        return self._receipt(self.life, used.group, used.version, "applied", step)

    def cursor(self, unnoted: list[dict[str, Any]]) -> Cursor:
        """What the checkpoint holds. Args: unnoted, from the outbox."""
        at = self.position
        held = [(row.life, row.group, row.version) for row in (group.row for group in self.open.values()) if row]
        return Cursor(
            run=self.run,
            life=self.life,
            epoch=at.epoch,
            seq=at.seq,
            digest=at.digest,
            step=self.step,
            mask_truncated=self.mask_truncated,
            applied=[(life, group, version, step) for (life, group), (version, step) in self.applied.items()],
            applied_dropped=self.applied_dropped,
            pending=held,
            unnoted=unnoted,
        )

    def _local(self, key: str, group: OpenGroup, reason: str) -> AdvantageSet:
        said = {"eligible": group.eligible, "reason": reason, "mask_truncated": self.mask_truncated}
        return local_set(key, self.life, group.step, group.rollouts, **said)

    def _hold(self, group: OpenGroup, row: Advantages) -> list[Receipt]:
        held = group.row
        if held is None or held.version < row.version:
            group.row = row
            return [self._receipt(held.life, held.group, held.version, "superseded")] if held else []
        if held.version == row.version:
            return []
        return [self._receipt(row.life, row.group, row.version, "superseded")]

    def _pass_over(self, key: str, group: OpenGroup, status: ReceiptStatus) -> list[Receipt]:
        row, group.row = group.row, None
        return [self._receipt(row.life, key, row.version, status)] if row else []

    def _expire(self, step: int, asked: set[str], hold_steps: int) -> list[Receipt]:
        """Forget groups that the trainer dropped without a word, else memory grows with the run."""
        oldest = step - max(EXPIRE_STEPS, 2 * hold_steps)
        gone = [key for key, g in self.open.items() if g.step < oldest and g.frozen is None and key not in asked]
        return [receipt for key in gone for receipt in self._pass_over(key, self.open.pop(key), "expired")]

    def _receipt(self, life: int, group: str, version: int, status: ReceiptStatus, step: int | None = None) -> Receipt:
        return Receipt(
            n=1, life=life, group=group, version=version, status=status, step=self.step if step is None else step
        )


def pending_receipts(saved: Cursor) -> list[Receipt]:
    """What an older life held and never used: nobody will.

    Args:
        saved: the checkpoint of that life.
    Returns:
        `not_used` receipts, still without a number.
    """
    return [
        Receipt(n=1, life=life, group=group, version=version, status="not_used", step=saved.step)
        for life, group, version in saved.pending
        if life > 0
    ]


def read_cursor(cursor: dict[str, Any]) -> Cursor:
    """Read what a checkpoint holds.

    Args:
        cursor: what `GagarClient.checkpoint` yielded, also after a trip through JSON or torch.
    Returns:
        The cursor.
    Raises:
        GagarError: it is something else, or of a format we do not know.
    """
    try:
        read = msgspec.convert(cursor, type=Cursor)
    except msgspec.ValidationError as error:
        raise GagarError("the cursor in the checkpoint", got=error, expected="what checkpoint() yielded") from error
    if read.format != 1:
        raise GagarError("the cursor in the checkpoint", got=f"format {read.format}", expected="format 1")
    return read
