"""The upload thread: a life, then declarations, then outcomes, then the bodies the server wants.

Training never waits for it. Every call may be repeated; an answer that will not change is a problem told aloud.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from training_bridge.client.api import Api, Away, Refused, quoted
from training_bridge.client.bodies import Lines
from training_bridge.client.errands import Errands, is_forgotten
from training_bridge.client.shared import Backoff, Shared, log
from training_bridge.client.trajectory import to_json
from training_bridge.client.waiting import BATCH_ITEMS, Afterthought, Waiting

TOGETHER_BYTES = 2**20  # bodies are collected up to this size and sent as one request
SINGLE_JSON_BYTES = 6 * 2**20  # above it one rollout goes as NDJSON: the server's limit for JSON is 8 MB


class Uploader:
    """The thread that empties `Waiting`, one call at a time, in the order in which the server needs it."""

    def __init__(self, api: Api, shared: Shared, waiting: Waiting, on_life: Callable[[int], None], job: str):
        """Prepare; `start` runs the thread.

        Args:
            api: used by one thread at a time: by `issue_life` before the start, then by the thread.
            shared: for problems, and to stop when the server refuses the job.
            waiting: what to send.
            on_life: called with the issued life; again if the server has lost it and issued another.
            job: free text that names the process on the server's pages.
        """
        self._api, self._shared, self._waiting, self._on_life, self._job = api, shared, waiting, on_life, job
        self._life: int | None = None
        self._errands = Errands(api, shared, waiting, self._refused)
        self._one_by_one = 0  # outcomes to send singly, after a batch was refused as a whole
        self._away = False
        self._thread = threading.Thread(target=self._run, name="gagar-upload", daemon=True)

    def start(self) -> None:
        """Run the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the call it is in."""
        self._waiting.stop()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def close(self) -> None:
        """Close the pool, last of all."""
        self._api.close()

    def say_end(self, why: str) -> None:
        """Tell the server that this process ends, after `stop`. Args: why, empty for a clean end."""
        if self._life is None or self._shared.fatal:
            return
        try:
            self._api.call("POST", f"{self._api.run_path}/lives/{self._life}/end", to_json({"why": why}), timeout_s=2.0)
        except (Away, Refused) as lost:  # an older server, or none: the run looks silent for a while
            log.debug("gagar: the end was not told: %s", lost)

    def issue_life(self, timeout_s: float = 10.0) -> None:
        """Ask once for the life of this process; a lost answer leaves an empty life behind, which is fenced.

        Args:
            timeout_s: of the call.
        Raises:
            Away: no answer, or not one of our server.
        """
        try:
            body = to_json({"job": self._job})
            answer = self._api.call("POST", f"{self._api.run_path}/lives", body, timeout_s=timeout_s)
        except Refused as refused:
            if not refused.ours and refused.status != 401:  # a proxy's page, while the server is being deployed
                raise Away(str(refused)) from refused
            self._fatal(refused)
            return
        life = answer.get("life") if isinstance(answer, dict) else None
        if not isinstance(life, int):
            raise Away(f"POST lives answered {str(answer)[:80]!r}, expected a life")
        self._life = life
        self._on_life(life)

    def _run(self) -> None:
        backoff = Backoff()
        while not self._waiting.stopping and not self._shared.fatal:
            try:
                worked = self._work()
            except Away as away:
                self._tell(away)
                self._waiting.sleep(backoff.next_s(away.retry_after_s))
            except Exception:
                self._shared.problems.add("the upload thread failed on one call and tries again; see the log")
                log.exception("gagar: upload")
                self._waiting.sleep(backoff.next_s(1.0))
            else:
                backoff.reset()
                if worked:
                    self._tell(None)
                else:
                    self._waiting.rest()

    def _work(self) -> bool:
        """Do the first thing that is due. Returns: whether there was one."""
        if self._life is None or self._shared.life_lost:
            self.issue_life()
        elif self._waiting.errands:
            self._errands.run(self._life)
        elif self._waiting.outcomes:
            self._send_outcomes(self._life)
        elif afterthought := self._waiting.afterthought():
            self._run_afterthought(afterthought, self._life)
        else:
            return self._ask_for_bodies(self._life)
        return True

    def _run_afterthought(self, said: Afterthought, life: int) -> None:
        path = f"{self._api.run_path}/groups/{quoted(said.group)}/{said.verb}"
        try:
            self._api.call("POST", path, to_json({**said.body, "life": life}))
        except Refused as refused:
            self._refused(f"POST {path}", refused, group=said.group)
        self._waiting.afterthought_done(said)

    def _send_outcomes(self, life: int) -> None:
        batch = self._waiting.batch(1 if self._one_by_one else BATCH_ITEMS)
        if not batch:
            return
        texts = [self._waiting.spool.get(outcome.ticket) for outcome in batch]
        path = f"{self._api.run_path}/trajectories"
        refusal: Refused | None = None
        try:
            if len(texts) == 1 and len(texts[0]) > SINGLE_JSON_BYTES:
                line = b'{"type":"trajectory",' + texts[0][1:] + b'\n{"type":"end"}\n'
                answer = self._api.stream(f"{path}?life={life}", lambda: [line])
            else:
                envelope = b'{"life":%d,"trajectories":[%b]}' % (life, b",".join(texts))
                answer = self._api.call("POST", path, envelope)
            self._report_items(answer, {outcome.external_id: outcome.group for outcome in batch})
        except Refused as refused:
            if len(batch) > 1 and refused.status != 401 and not is_forgotten(refused):
                self._one_by_one = len(batch)
                return
            refusal = refused
            self._refused(f"rollout {batch[0].external_id!r}", refused, group=batch[0].group)
        self._one_by_one = max(0, self._one_by_one - 1)
        self._waiting.outcomes_done(batch, refused=refusal is not None)

    def _report_items(self, answer: Any, groups: Mapping[str, str]) -> None:
        """Tell what was not taken. Without it the group is never whole: no freeze may wait for its decision."""
        for item in answer.get("items", ()) if isinstance(answer, dict) else ():
            if item.get("status") in ("conflict", "error", "late"):
                said = item.get("error") or "it came after the group was complete"
                words = f"rollout {item.get('external_id')!r} is {item['status']}: {said}"
                self._shared.problems.add(words)
                if item["status"] != "late":
                    self._shared.break_group(groups.get(item.get("external_id"), ""), words)

    def _ask_for_bodies(self, life: int) -> bool:
        waiting = self._waiting
        with waiting.changed:
            group = waiting.bodies.due(time.monotonic())
        if group is None:
            return False
        path = f"{self._api.run_path}/groups/{quoted(group)}?life={life}"
        try:
            answer = self._api.call("GET", path)
        except Refused as refused:
            self._refused(f"GET {path}", refused)
            answer = {"bodies": "not_wanted"}
        if not isinstance(answer, dict) or "bodies" not in answer:  # a proxy's page; nothing is settled by it
            raise Away(f"GET {path} answered {str(answer)[:80]!r}, expected a group")
        if answer.get("bodies") == "wanted":
            rollouts = answer.get("rollouts", ())
            already = {r.get("external_id") for r in rollouts if r.get("events") is not None}
            self._send_bodies(life, group, already=already)
            return True
        open_still = answer.get("bodies") == "undecided" and answer.get("state") not in ("decided", "delivered")
        with waiting.changed:
            if open_still:
                waiting.bodies.ask_later(group, time.monotonic())
            else:
                waiting.bodies.settle(group)
            waiting.changed.notify_all()
        return True

    def _send_bodies(self, life: int, group: str, already: set[str]) -> None:
        """Send the bodies of a group, small ones together: a request each costs the server more than the bodies do."""
        with self._waiting.changed:
            bodies: list[tuple[str, Lines]] = list(self._waiting.bodies.groups[group].waiting.items())
        together: dict[str, bytes] = {}
        for external_id, lines in bodies:
            if external_id in already:
                self._settle(group, external_id)
            elif (text := _small(lines)) is not None:
                together[external_id] = text
            else:
                self._send_body(life, group, external_id, lines)
                self._settle(group, external_id)
            if sum(map(len, together.values())) >= TOGETHER_BYTES:
                self._send_together(life, group, together)
                together = {}
        if together:
            self._send_together(life, group, together)

    def _send_together(self, life: int, group: str, texts: dict[str, bytes]) -> None:
        try:
            answer = self._api.stream(f"{self._api.run_path}/trajectories?life={life}", texts.values)
            self._report_items(answer, dict.fromkeys(texts, group))
        except Refused as refused:
            if len(texts) == 1 or refused.status == 401 or is_forgotten(refused):
                self._refused(f"bodies of {', '.join(texts)}", refused, group=group)
            else:  # one of them is to blame: find out which
                for external_id, text in texts.items():
                    self._send_body(life, group, external_id, lambda text=text: [text])
        for external_id in texts:
            self._settle(group, external_id)

    def _settle(self, group: str, external_id: str) -> None:
        with self._waiting.changed:
            self._waiting.bodies.settle(group, external_id)
            self._waiting.changed.notify_all()

    def _send_body(self, life: int, group: str, external_id: str, lines: Lines) -> None:
        try:
            answer = self._api.stream(f"{self._api.run_path}/trajectories?life={life}", lines)
            self._report_items(answer, {external_id: group})
        except Refused as refused:
            self._refused(f"body of rollout {external_id!r}", refused, group=group)
        except Away:
            raise
        except Exception as error:  # the job's own callable
            self._shared.problems.add(f"the events of rollout {external_id!r} could not be read: {error!r}")

    def _refused(self, what: str, refused: Refused, *, group: str | None = None) -> None:
        if refused.status == 401:
            self._fatal(refused)
            return
        if is_forgotten(refused):  # its database was restored from before our life: get another, then go on
            self._shared.life_lost = True
            raise Away(f"{what}: {refused}")
        words = f"{what} was refused and is not sent again: {refused}"
        self._shared.problems.add(words)
        if group is not None:
            self._shared.break_group(group, words)

    def _fatal(self, refused: Refused) -> None:
        with self._shared.condition:
            self._shared.set_fatal(str(refused))

    def _tell(self, away: Away | None) -> None:
        waits = len(self._waiting.errands) + len(self._waiting.outcomes)
        if away is not None and not self._away:
            log.warning("gagar: the server is away (%s); %d uploads wait", away, waits)
        elif away is None and self._away:
            log.info("gagar: uploads go through again, %d wait", waits)
        self._away = away is not None


def _small(lines: Lines) -> bytes | None:
    """The text of a body; None if it is large, or if the job's callable fails (which `_send_body` then reports)."""
    parts: list[bytes] = []
    size = 0
    try:
        for line in lines():
            parts.append(line)
            size += len(line)
            if size >= TOGETHER_BYTES:
                return None
    except Exception:
        return None
    return b"".join(parts)
