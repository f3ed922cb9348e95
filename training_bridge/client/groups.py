"""The handle of one declared group: rollouts go in here."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from training_bridge.client.errors import GagarError
from training_bridge.client.rollouts import Rollouts
from training_bridge.client.sets import Rollout
from training_bridge.client.trajectory import Events, trajectory_fields


class GroupHandle:
    """One declared group: the job submits its rollouts here and passes it to `freeze`.

    It may be pickled, as part of a batch: the copy names the group, and only the client's own process submits to it.
    """

    def __init__(self, rollouts: Rollouts | None, key: str, step: int):
        self._rollouts, self.key, self.step = rollouts, key, step

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None, self.key, self.step)

    def __repr__(self) -> str:
        return f"GroupHandle({self.key!r}, step={self.step})"

    def submit(
        self,
        external_id: str,
        *,
        outcome: str,
        reward: float | None = None,
        patch: bytes | str | None = None,
        tests: Iterable[Mapping[str, Any]] | None = None,
        counts: Mapping[str, float] | None = None,
        truncated: bool = False,
        events: Events | None = None,
        log: bytes | Callable[[], bytes] | None = None,
        policy_version: int | str | None = None,
    ) -> None:
        """Hand over one rollout; returns at once.

        Args:
            external_id: the rollout's id, unique in the run and life.
            outcome: `passed`, `failed` or `infra_invalid`.
            reward: shaped reward, reward units; None where the outcome is all.
            patch: the unified diff.
            tests: `{name, status, message?}` each.
            counts: turns, tokens, response_tokens, duration_s, cost_usd, and numbers of your own.
            truncated: whether it hit a limit.
            events: the transcript, a list or a callable that makes it; travels only if the server wants it.
            log: the evaluation's output, or a callable that reads it; likewise.
            policy_version: if it differs from the group's.
        Raises:
            GagarError: another outcome, or the id was submitted with another one or in another group.
        """
        fields = trajectory_fields(
            self.key, external_id, outcome=outcome, reward=reward, patch=patch, tests=tests, counts=counts,
            truncated=truncated, policy_version=policy_version,
        )  # fmt: skip
        if events is None and log is None:
            fields["events"] = []  # nothing will follow: else the server waits for a body until its deadline
        self._own().take(self.key, fields, Rollout(outcome, reward, truncated), events, log)  # type: ignore[arg-type]

    def amend(self, external_id: str, *, outcome: str, reason: str, reward: float | None = None) -> None:
        """Change a rollout's outcome (a flaky test). The group is decided anew, as a new version.

        A decision that is here already is passed over; if the group's rollouts were used, the new one is too late.

        Args:
            external_id: of a rollout submitted before.
            outcome: `passed`, `failed` or `infra_invalid`.
            reason: for the group's history, shown to reviewers.
            reward: shaped reward; None leaves it as it was.
        Raises:
            GagarError: another outcome, no reason, or a rollout that was not submitted.
        """
        self._own().amend(self.key, external_id, outcome, reward, reason)

    def seal(self) -> None:
        """Say that no more rollouts come: the group is complete with those submitted so far, at least one."""
        self._own().seal(self.key)

    def _own(self) -> Rollouts:
        if self._rollouts is None:
            raise GagarError(
                f"group {self.key!r}", got="a copy from another process", expected="the client's own handle"
            )
        return self._rollouts
