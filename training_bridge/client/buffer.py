"""What the job holds between a decision and its use: open groups, decided rows, what was used. Pure; the caller locks.

Exactly once is kept here: a (life, group) is frozen into one batch, and every version of it gets one word back.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from training_bridge.client.cursor import Cursor
from training_bridge.client.errors import GagarError, check_name
from training_bridge.client.sets import AdvantageSet, Rollout, decided_set, local_set
from training_bridge.protocol.client_session import Position
from training_bridge.protocol.messages import Advantages, Outcome, Receipt, ReceiptStatus

EXPIRE_STEPS = 100
KEEP_APPLIED = 50_000
KEEP_IDS = 200_000


@dataclass
class OpenGroup:
    """One declared group that no batch has used up."""

    step: int
    eligible: bool = True
    rollouts: dict[str, Rollout] = field(default_factory=dict)
    amended: dict[str, str] = field(default_factory=dict)  # outcomes that were changed after they were told
    row: Advantages | None = None  # the newest decision
    broken: str = ""  # why no decision will come that the job could wait for
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
        self._group_of: OrderedDict[str, str] = OrderedDict()  # rollout to group, of this life; the newest ones
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

    def submit(self, key: str, external_id: str, rollout: Rollout) -> bool:
        """Hold how one rollout ended.

        Args:
            key: of its group.
            external_id: unique in this life.
            rollout: for the local advantages.
        Returns:
            Whether it is new; the same again is not.
        Raises:
            GagarError: the id stands in another group or was submitted with another outcome: the server would refuse
                it, and the group would wait for it in vain.
        """
        owner = self._group_of.setdefault(external_id, key)
        if owner != key:
            said = f"rollout {external_id!r}"
            raise GagarError(said, got=f"group {key!r}", expected=f"group {owner!r}, where this life submitted it")
        while len(self._group_of) > KEEP_IDS:
            self._group_of.popitem(last=False)
        group = self.open.get(key)
        before = group.rollouts.get(external_id) if group else None
        if before is not None and before.outcome != rollout.outcome and external_id not in group.amended:
            what = f"rollout {external_id!r} of group {key!r}"
            raise GagarError(what, got=f"outcome {rollout.outcome}", expected=f"{before.outcome}, as submitted")
        if group is not None and group.frozen is None and before is None:
            group.rollouts[external_id] = rollout
        return before is None

    def amend(self, key: str, external_id: str, outcome: Outcome, reward: float | None) -> list[Receipt]:
        """Change how one rollout ended. What was decided before is not used any more: a new version follows.

        Args:
            key, external_id: whose.
            outcome: as it counts from now on.
            reward: likewise; None leaves it.
        Returns:
            The receipt of a decided row that is passed over.
        Raises:
            GagarError: this life did not submit such a rollout to the group.
        """
        if self._group_of.get(external_id) != key:
            raise GagarError(f"rollout {external_id!r}", got="not submitted", expected=f"one of group {key!r}")
        group = self.open.get(key)
        if group is None or group.frozen is not None:
            return []  # used, or as good as used: the server's new version will be too late
        before = group.rollouts[external_id]
        group.rollouts[external_id] = replace(
            before, outcome=outcome, reward=before.reward if reward is None else reward
        )
        group.amended[external_id] = outcome
        return self._pass_over(key, group, "superseded")

    def break_group(self, key: str, why: str) -> None:
        """No freeze waits for this group any more. Args: key; why, for the set's reason."""
        group = self.open.get(key)
        if group is not None and not group.broken:
            group.broken = why[:200]

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
        """Those of the groups whose decision may still come."""
        return [key for key in keys if self.open[key].row is None and not self.open[key].broken]

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
            elif local is None and not group.broken and step - group.step < hold_steps:
                group.carried = True
                waiting.append(key)
                continue
            else:
                receipts += self._pass_over(key, group, "not_used")
                group.frozen = self._local(key, group, local or group.broken or reason)
            sets.append(group.frozen)
        return sets, waiting, receipts + self._expire(step, {*keys}, hold_steps)

    def thaw(self, sets: Iterable[AdvantageSet]) -> None:
        """Take a freeze back of which nobody has heard. Args: sets, from it."""
        for one in sets:
            if (group := self.open.get(one.group)) is not None:
                group.frozen = None

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

    def retell(self, lost: int) -> list[Receipt]:
        """What to say again to a server that has lost words: the newest uses, as many as there may be among them.

        Args:
            lost: how many numbered messages it had noted and lost.
        Returns:
            Receipts of this life's groups, the oldest first.
        """
        used = [(group, *how) for (life, group), how in self.applied.items() if life == self.life][-lost:]
        return [self._receipt(self.life, group, version, "applied", step) for group, version, step in used]

    def cursor(self, unnoted: list[dict[str, Any]]) -> Cursor:
        """What the checkpoint holds. Args: unnoted, from the outbox."""
        at = self.position
        held = [(g.row.life, key, g.row.version) for key, g in self.open.items() if g.row]
        held += [(self.life, key, 0) for key, g in self.open.items() if g.frozen and not g.row]
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
        if any(group.amended.get(r.trajectory, r.outcome) != r.outcome for r in row.rows):
            return [self._receipt(row.life, row.group, row.version, "superseded")]  # decided before the amendment
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
