"""`gagar-check URL RUN`: from the trainer's machine, before a run. Exit status 1 when something would break it."""

import argparse
import os
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import msgspec

from training_bridge.client import checks
from training_bridge.client.api import quoted
from training_bridge.client.checks import Found, Target
from training_bridge.protocol.messages import Estimator

DELIVER_WITHIN_S = 60.0
KEY = "gagar-check"  # the task, and the beginning of the group's key


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, tell, and return the exit status. Args: arguments, those of the process by default."""
    options = _options(arguments)
    token = os.environ.get(options.token_env, "").strip()
    if not token:
        print(f"FAIL  the environment variable {options.token_env} holds no token")
        return 1
    try:
        estimator = msgspec.json.decode(options.estimator.encode(), type=Estimator)
    except msgspec.MsgspecError as error:
        print(f"FAIL  --estimator is no JSON of our fields: {error}")
        return 1
    failed = 0
    for found in _all(Target(options.url, options.run, token), estimator, options):
        print(f"{found.kind if found.kind != 'fail' else 'FAIL':<5} {found.words}", flush=True)
        failed += found.kind == "fail"
    print("A run can start." if not failed else f"{failed} of these would break a run.")
    return 1 if failed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gagar-check", description=__doc__)
    parser.add_argument("url", help="of the server, http://host:8000 or https://host")
    parser.add_argument("run", help="the run's public id")
    parser.add_argument("--token-env", default="GAGAR_TOKEN", help="the variable that holds the token")
    parser.add_argument("--estimator", default="{}", help='as the job would give it, e.g. {"std": "none", "cap": 1.5}')
    parser.add_argument("--spool", type=Path, help="the folder that the job would give its client")
    parser.add_argument("--hold", type=float, default=0.0, metavar="S", help="keep an idle websocket open so long")
    parser.add_argument(
        "--deliver", action="store_true",
        help=f"send one ungraded group of task {KEY} at step 0 and wait for its row; it stays in the run, marked",
    )  # fmt: skip
    return parser.parse_args(arguments)


def _all(target: Target, estimator: Estimator, options: argparse.Namespace) -> Iterator[Found]:
    yield from (address := list(checks.check_address(target)))
    if any(found.kind == "fail" for found in address):
        return
    yield checks.check_spool(options.spool)
    with httpx.Client(headers=target.headers, timeout=httpx.Timeout(30, connect=10)) as client:
        yield from (rest := list(checks.check_rest(target, client)))
        if any(found.kind == "fail" for found in rest):
            return
        yield from (socket := list(checks.check_socket(target, estimator, options.hold)))
        if options.deliver and not any(found.kind == "fail" for found in socket):
            yield deliver(target, client)


def deliver(target: Target, client: httpx.Client) -> Found:
    """One group out and its row back, in the newest life so that no running job is fenced.

    Args:
        target: the run.
        client: with its token.
    Returns:
        How long it took from the last rollout to the row.
    """
    key = f"{KEY}-{uuid.uuid4().hex[:12]}"
    try:
        life = _life(target, client)
        after = _get(client, f"{target.api}/advantages?after=0")["head_seq"]
        said = {"statement": "gagar-check: does a row come back? Nothing is graded."}
        _call(client, "PUT", f"{target.url.rstrip('/')}/api/v1/tasks/{KEY}", said)
        group = {"life": life, "task": KEY, "step": 0, "group_size": 2, "eligible": False}
        _call(client, "PUT", f"{target.api}/groups/{quoted(key)}", group)
        rollouts = [
            {"group": key, "external_id": f"{key}/{outcome}", "outcome": outcome, "events": []}
            for outcome in ("passed", "failed")
        ]
        _call(client, "POST", f"{target.api}/trajectories", {"life": life, "trajectories": rollouts})
        return _wait_for_row(target, client, key, after)
    except (httpx.HTTPError, LookupError, RuntimeError) as error:
        return Found("fail", f"the delivery test stopped: {error}")


def _life(target: Target, client: httpx.Client) -> int:
    """The newest life; a first one where the run has none. A resume of nobody's life names it without taking it."""
    resume = {"life": checks.NOBODY, "epoch": 0, "after_seq": 0, "estimator": {}}
    newest = int(checks.json_of(client.post(f"{target.api}/resume", json=resume))["expected"])
    return newest or _call(client, "POST", f"{target.api}/lives", {"job": KEY})["life"]


def _wait_for_row(target: Target, client: httpx.Client, key: str, after: int) -> Found:
    start = time.monotonic()
    while (waited := time.monotonic() - start) < DELIVER_WITHIN_S:
        page = _get(client, f"{target.api}/advantages?after={after}")
        for text in page["rows"]:
            row = msgspec.json.decode(text)
            after = row["seq"]
            if row.get("group") == key:
                return Found("ok", f"a group went out and its row came back in {waited:.1f} s (row {after})")
        time.sleep(0.1 if page["rows"] else 0.5)
    words = f"no row of group {key} within {DELIVER_WITHIN_S:.0f} s: does a worker run?"
    return Found("fail", words)


def _get(client: httpx.Client, url: str) -> dict:
    return _answer(client.get(url))


def _call(client: httpx.Client, method: str, url: str, body: dict) -> dict:
    return _answer(client.request(method, url, json=body))


def _answer(answer: httpx.Response) -> dict:
    if answer.status_code >= 300 or answer.status_code == 207:
        raise RuntimeError(f"{answer.request.method} {answer.request.url.path}: {checks.said(answer)}")
    return checks.json_of(answer)


if __name__ == "__main__":
    sys.exit(main())
