"""What the server must know before any rollout: tasks, repositories, and groups, many of these in one request."""

from collections.abc import Sequence
from typing import Any, Protocol

from training_bridge.client.api import Api, Away, Refused
from training_bridge.client.shared import Shared
from training_bridge.client.trajectory import to_json
from training_bridge.client.waiting import Errand, Waiting

DECLARED_TOGETHER = 256  # of a step's groups: the server keeps the life locked while it writes them


class OnRefusal(Protocol):
    """Tells a refusal aloud; raises Away where the call has to be made again."""

    def __call__(self, what: str, refused: Refused, *, group: str | None = None) -> None: ...


class Errands:
    """Runs the errands of `Waiting` in their order, in the upload thread."""

    def __init__(self, api: Api, shared: Shared, waiting: Waiting, on_refusal: OnRefusal):
        """Serve one upload thread. Args: api, shared, waiting: its own; on_refusal: told of each refusal."""
        self._api, self._shared, self._waiting, self._on_refusal = api, shared, waiting, on_refusal
        self._one_by_one = 0  # groups to declare singly, after several were refused as a whole

    def run(self, life: int) -> None:
        """Run the oldest one, with the declarations that follow it if it is one.

        Args:
            life: of this process.
        Raises:
            Away: no answer that settles it.
        """
        together = self._waiting.declarations(1 if self._one_by_one else DECLARED_TOGETHER)
        if len(together) > 1:
            self._declare(together, life)
        else:
            self._one_by_one = max(0, self._one_by_one - len(together))
            self._run_one(self._waiting.errands[0], life)

    def _run_one(self, errand: Errand, life: int) -> None:
        try:
            if errand.ticket is not None:
                content = self._waiting.spool.get(errand.ticket)
                self._api.call("PUT", errand.path, content, content_type="application/octet-stream")
            else:
                body = {**(errand.body or {}), **({"life": life} if errand.group is not None else {})}
                self._api.call("PUT", errand.path, to_json(body))
        except Refused as refused:
            self._on_refusal(f"PUT {errand.path}", refused, group=errand.group)
        self._done([errand])

    def _declare(self, together: Sequence[Errand], life: int) -> None:
        """A request each would cost the server more than a step's deliveries do."""
        groups = [{**(errand.body or {}), "key": errand.group} for errand in together]
        path = f"{self._api.run_path}/groups"
        try:
            answer = self._api.call("POST", path, to_json({"life": life, "groups": groups}))
        except Refused as refused:
            if refused.status == 401 or is_forgotten(refused):
                self._on_refusal(f"POST {path}", refused)
            self._one_by_one = len(together)  # one of them is to blame, or the server is older than we
            return
        if not isinstance(answer, dict) or len(answer.get("items", ())) != len(together):  # a proxy's page
            raise Away(f"POST {path} answered {str(answer)[:80]!r}, expected an item for each group")
        for errand, item in zip(together, answer["items"], strict=True):
            self._report(errand, item)
        self._done(together)

    def _report(self, errand: Errand, item: dict[str, Any]) -> None:
        if item.get("status") in ("conflict", "error"):
            words = f"group {errand.group!r} was refused and is not sent again: {item.get('error')}"
            self._shared.problems.add(words)
            self._shared.break_group(errand.group or "", words)

    def _done(self, errands: Sequence[Errand]) -> None:
        self._waiting.errands_done(len(errands))
        declared = {errand.group for errand in errands if errand.group is not None}
        if declared:
            with self._shared.condition:
                self._shared.undeclared -= declared
            self._shared.wake()


def is_forgotten(refused: Refused) -> bool:
    """Whether the server does not know our life (any more)."""
    return refused.ours and refused.status == 404 and refused.where == "life"
