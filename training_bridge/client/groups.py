"""The handle of one declared group: rollouts go in here."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from training_bridge.client.sets import Rollout
from training_bridge.client.trajectory import Events, trajectory_fields


class TakesRollouts(Protocol):
    """What a handle hands its rollouts to: the client."""

    def take_rollout(
        self,
        key: str,
        fields: dict[str, Any],
        rollout: Rollout,
        events: Events | None,
        log: bytes | Callable[[], bytes] | None,
    ) -> None:
        """Queue one rollout of group `key`."""


class GroupHandle:
    """One declared group: the job submits its rollouts here and passes it to `freeze`."""

    def __init__(self, gagar: TakesRollouts, key: str, step: int):
        self._gagar, self.key, self.step = gagar, key, step

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
            GagarError: another outcome, or the id was submitted with another one.
        """
        fields = trajectory_fields(
            self.key,
            external_id,
            outcome=outcome,
            reward=reward,
            patch=patch,
            tests=tests,
            counts=counts,
            truncated=truncated,
            policy_version=policy_version,
        )
        if events is None and log is None:
            fields["events"] = []  # nothing will follow: else the server waits for a body until its deadline
        self._gagar.take_rollout(self.key, fields, Rollout(outcome, reward, truncated), events, log)  # type: ignore[arg-type]
