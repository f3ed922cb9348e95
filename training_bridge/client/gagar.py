"""The client a training job imports: declare, submit, freeze, apply, checkpoint, log."""

import hashlib
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from training_bridge.client.api import Api, Away, quoted
from training_bridge.client.connection import Connection
from training_bridge.client.errors import GagarError
from training_bridge.client.freezing import Freezer
from training_bridge.client.groups import GroupHandle
from training_bridge.client.rollouts import Rollouts
from training_bridge.client.sets import FrozenBatch
from training_bridge.client.shared import restored
from training_bridge.client.spool import Spool
from training_bridge.client.trajectory import task_fields
from training_bridge.client.upload import Uploader
from training_bridge.client.waiting import Waiting
from training_bridge.protocol.messages import Estimator, Metrics
from training_bridge.protocol.wire import encode, metric_values

START_S, CLOSE_S = 5.0, 10.0


class GagarClient:
    """One process of a training job. Use it as a context manager, in the one process that assembles batches.

    Attributes:
        life: of this process, issued by the server; negative while no server has answered.
        online: whether the socket is up.
        problems: what was refused or lost, newest last; each was logged as well.
    """

    def __init__(
        self,
        url: str,
        run: str,
        token: str,
        *,
        cursor: dict[str, Any] | None = None,
        estimator: Estimator | None = None,
        spool: Path | None = None,
        job: str = "",
    ):
        """Prepare; `with` starts it.

        Args:
            url: of the server, `http://…` or `https://…`.
            run: the run's public id.
            token: a machine token of the run with the purposes `ingest` and `train`.
            cursor: what `checkpoint` yielded, from the checkpoint that the job restores; None at the first start.
            estimator: how the trainer centres and normalises; the server refuses one that breaks the numbers.
            spool: a folder for what waits while the server is away; None keeps up to 512 MiB in memory.
            job: free text that names the process on the server's pages.
        Raises:
            GagarError: the URL or the cursor is not one, or the cursor is of another run.
        """
        if not url.startswith(("http://", "https://")):
            raise GagarError("url", got=repr(url), expected="http://host or https://host")
        self._shared = restored(run, cursor)
        self._buffer = self._shared.buffer
        self._spool = Spool(spool)
        self._waiting = Waiting(self._spool, self._shared.problems)
        self._uploader = Uploader(Api(url, run, token), self._shared, self._waiting, self._on_life, job)
        self._connection = Connection(url, run, token, estimator or Estimator(), self._shared)
        self._tasks: dict[str, str] = {}  # key to digest of what was sent
        self._shared.wake, self._shared.wake_uploads = self._connection.wake, self._waiting.nudge
        self._freezer = Freezer(self._shared)
        self._rollouts = Rollouts(self._shared, self._waiting)
        self._run_path = f"/runs/{quoted(run)}"

    def __enter__(self) -> Self:
        """Get a life, or start without one if the server does not answer within seconds."""
        try:
            self._uploader.issue_life(START_S)
        except Away as away:
            with self._shared.condition:
                self._shared.start_without(str(away))
        self._uploader.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        """Give what is queued some seconds (few after an exception), then stop the threads."""
        deadline = time.monotonic() + (CLOSE_S if kind is None else CLOSE_S / 5)
        self._waiting.flush(deadline - time.monotonic(), given_up=lambda: self._shared.unreachable)
        self._shared.drain(deadline)
        if untold := len(self._shared.outbox):
            self._shared.problems.add(f"the job ended before the server had noted {untold} receipts and metrics")
        self._connection.stop()
        self._uploader.stop()
        self._uploader.say_end("" if kind is None else kind.__name__)
        self._uploader.close()
        self._spool.close()

    def describe(self, **known: Any) -> None:
        """Say what an adapter knows of the trainer, as fields of `Estimator`; what you named in `estimator` stays."""
        self._connection.describe(known)

    @property
    def life(self) -> int:
        """The life of this process; negative while no server has issued one."""
        with self._shared.condition:
            return self._buffer.life

    @property
    def online(self) -> bool:
        """Whether the socket is up and welcomed."""
        return self._shared.online

    @property
    def mode(self) -> str:
        """`outcome_only` while the run is paused, else `normal`."""
        return self._shared.mode

    @property
    def problems(self) -> list[str]:
        """What was refused or lost, oldest of the last 1,000 first."""
        return self._shared.problems.kept()

    def task(
        self,
        key: str,
        *,
        statement: str,
        repository: str | bytes | Path | None = None,
        base_commit: str | None = None,
        reference_patch: bytes | str | None = None,
    ) -> None:
        """Register a task; the same one again costs nothing.

        Args:
            key: unique in the team.
            statement: the problem as the policy reads it.
            repository: a git URL or a sha256 that the server knows, or the archive or bundle itself.
            base_commit: what the patches apply to.
            reference_patch: optional; helps to understand the task and gets no advantage.
        """
        archive = repository.read_bytes() if isinstance(repository, Path) else repository
        body = task_fields(statement, archive, base_commit, reference_patch)
        digest = hashlib.sha256(msgspec.json.encode(body)).hexdigest()
        if self._tasks.get(key) == digest:
            return
        self._tasks[key] = digest
        if isinstance(archive, bytes):
            self._waiting.put_bytes(f"/repositories/{body['repository']}", archive)
        self._waiting.put(f"/tasks/{quoted(key)}", body)

    def declare(
        self,
        key: str,
        *,
        task: str,
        step: int,
        policy_version: int | str | None = None,
        group_size: int = 16,
        eligible: bool = True,
    ) -> GroupHandle:
        """Open a group, also while the server is away.

        Args:
            key: unique in this life of the job, at most 200 characters.
            task: key of its task.
            step: the training step it is rolled out for.
            policy_version: of the policy that rolls out.
            group_size: rollouts it will have.
            eligible: False for a group that is not graded (not a coding task).
        Returns:
            The handle to submit to and to freeze.
        Raises:
            GagarError: the key was used up in this life or declared otherwise, or is no key.
        """
        with self._shared.condition:
            known = key in self._buffer.open
            self._buffer.declare(key, step, eligible=eligible)
            if not known:
                self._shared.undeclared.add(key)
        if not known:
            self._waiting.open_group(key, group_size)
            body = {"task": task, "step": step, "policy_version": policy_version}
            body |= {"group_size": group_size, "eligible": eligible}
            self._waiting.put(f"{self._run_path}/groups/{quoted(key)}", body, group=key)
        return GroupHandle(self._rollouts, key, step)

    def freeze(
        self, step: int, groups: Iterable[GroupHandle], within_s: float = 5.0, hold_steps: int = 0
    ) -> FrozenBatch:
        """Choose the rows of one optimiser step, once.

        The highest version decided now wins. The call waits up to `within_s` for groups it sees for the first time and
        for those that may wait no longer; a group that waits since an earlier freeze does not hold it up again.

        Args:
            step: the training step.
            groups: new ones, and `waiting` of earlier batches.
            within_s: seconds to wait; the server hears of it for the groups that may wait no longer.
            hold_steps: an undecided group waits for a later batch while `step - group.step < hold_steps`; after that it
                gets local outcome advantages, version 0. So does every group while the run is paused or the server is
                away for more than half a minute.
        Returns:
            The batch.
        Raises:
            GagarError: a group twice, or one that was frozen before.
        """
        return self.freeze_unless(threading.Event(), step, groups, within_s, hold_steps)

    def freeze_unless(
        self, given_up: threading.Event, step: int, groups: Iterable[GroupHandle], within_s: float, hold_steps: int
    ) -> FrozenBatch:
        """`freeze` for a caller that may leave: the async client.

        Args:
            given_up: once `give_up` has set it, nothing is frozen.
            step, groups, within_s, hold_steps: as in `freeze`.
        Returns, Raises: as `freeze`; GivenUp, it was given up in time.
        """
        keys = [group.key for group in groups]
        sets, waiting = self._freezer.freeze(step, keys, within_s, hold_steps, given_up)
        return FrozenBatch(step, sets, [GroupHandle(self._rollouts, key, asked_step) for key, asked_step in waiting])

    def give_up(self, given_up: threading.Event) -> None:
        """End a wait in `freeze_unless`. Args: given_up, that of the call."""
        with self._shared.condition:
            given_up.set()
            self._shared.condition.notify_all()

    def take_back(self, batch: FrozenBatch) -> None:
        """Undo a freeze of which nobody has heard. Args: batch, of which no set was used."""
        with self._shared.condition:
            self._buffer.thaw(batch.sets)

    def applied(self, batch: FrozenBatch) -> None:
        """Say that the optimiser step with this batch is done. A second call changes nothing.

        Args:
            batch: from `freeze`, every set of it counts as used, also those that do not train.
        Raises:
            GagarError: the batch was not frozen by this client.
        """
        with self._shared.condition:
            for used in batch.sets:
                receipt = self._buffer.use(used, batch.step)
                if receipt is not None:
                    self._shared.outbox.put(receipt)
        self._shared.wake()

    @contextmanager
    def checkpoint(self) -> Iterator[dict[str, Any]]:
        """Save the cursor inside the job's own checkpoint.

        Yields:
            A JSON-able dict to store with the parameters. On a clean exit the server hears that all up to here is on
            disk, so leave the block only when the file is written and synced; an exception tells it nothing.
        """
        with self._shared.condition:
            at = self._buffer.position
            cursor = self._buffer.cursor(self._shared.outbox.unnoted())
        yield msgspec.json.decode(msgspec.json.encode(cursor))
        with self._shared.condition:
            self._shared.durable = (at.epoch, at.seq)
        self._shared.wake()

    def log(self, step: int, values: Mapping[str, Any], units: Mapping[str, str] | None = None) -> None:
        """Send the numbers of one step.

        Args:
            step: the training step.
            values: name to anything `float()` takes; NaN and infinities too.
            units: of names that have one, as in {"lr": "1/step"}; the server keeps the newest it heard.
        Raises:
            TypeError, ValueError: a value is no number.
            ProtocolError: a name is empty or too long, a unit is, or the step is negative.
        """
        metrics = Metrics(n=1, step=step, values=metric_values(values), units=dict(units) if units else None)
        encode(metrics)  # refused here, not later in another thread
        with self._shared.condition:
            self._buffer.step = max(self._buffer.step, step)
            self._shared.outbox.put(metrics)
        self._shared.wake()

    def _on_life(self, life: int) -> None:
        with self._shared.condition:
            first = not self._shared.lives_issued
            self._shared.adopt(life)
        if first:
            self._connection.start()
        else:
            self._shared.problems.add(f"the server had lost the life of this job, which goes on as life {life}")
            self._connection.wake()
