"""`python -m training_bridge.tiny_job`: start the job, or go on where its checkpoint stands."""

import argparse
import os
import signal
import sys
import threading
import time
from pathlib import Path

METHODS = ("outcome", "downweight_only", "redistribute", "redistribute_shuffled", "redistribute_inverted")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m training_bridge.tiny_job", description=__doc__)
    parser.add_argument("--url", default=os.environ.get("GAGAR_URL"), help="of the server (GAGAR_URL)")
    parser.add_argument("--run", default="tiny-job", help="public id of the run")
    parser.add_argument("--token-file", type=Path, help="file with the job's token; else GAGAR_TOKEN")
    parser.add_argument("--offline", action="store_true", help="no server: local outcome advantages, version 0")
    parser.add_argument("--advantages", choices=METHODS, default="redistribute", help="the method the run has")
    parser.add_argument("--steps", type=int, help="steps in all; without it the job runs until Ctrl-C")
    parser.add_argument("--checkpoint", type=Path, default=Path("tiny_job.pt"))
    parser.add_argument("--checkpoint-every", type=int, default=1, metavar="STEPS")
    parser.add_argument("--cache", type=Path, help="file of test results; default: beside the checkpoint")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--groups", type=int, default=8, help="groups a step")
    parser.add_argument("--rollouts", type=int, default=16, help="rollouts a group")
    parser.add_argument("--hold-steps", type=int, default=20, help="steps a group may wait for a person")
    parser.add_argument("--wait-s", type=float, default=5.0, help="seconds a step waits for decisions")
    parser.add_argument("--min-step-s", type=float, default=0.0, help="least duration of a step (a pace for demos)")
    parser.add_argument("--bodies-every", type=int, default=1, metavar="STEPS", help="send events and logs of these")
    options = parser.parse_args(argv)
    if not options.offline and not options.url:
        parser.error("--url is missing, expected the server's address, or --offline")
    return options


def read_token(options: argparse.Namespace) -> str:
    """Find the job's token.

    Raises:
        SystemExit: there is none.
    """
    token = options.token_file.read_text("utf-8").strip() if options.token_file else os.environ.get("GAGAR_TOKEN", "")
    if not token:
        raise SystemExit("no token: got neither --token-file nor GAGAR_TOKEN, expected a machine token of the run")
    return token


def connect(options: argparse.Namespace, cursor: dict | None):
    """Make the client, or its offline stand-in."""
    from training_bridge.tiny_job.offline import OfflineGagar

    if options.offline:
        return OfflineGagar(options.run, cursor)
    from training_bridge.client import Estimator, GagarClient

    estimator = Estimator(loss="token-mean, clipped ratio")
    return GagarClient(options.url, options.run, read_token(options), cursor=cursor, estimator=estimator)


def stop_on_signals() -> threading.Event:
    """Let the first Ctrl-C or SIGTERM end the job after its step; a second Ctrl-C ends it at once."""
    told = threading.Event()

    def tell(number: int, frame: object) -> None:
        if told.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not told.is_set():
            print("stopping after this step, then saving (Ctrl-C again: stop at once)", flush=True)
        told.set()

    signal.signal(signal.SIGINT, tell)
    signal.signal(signal.SIGTERM, tell)
    return told


def report(advantages: str, number: int, done: dict) -> None:
    """Print one line about a step."""
    from training_bridge.tiny_job.metrics import is_other_method

    values = done["metrics"]
    loss = f"{values['pg_loss']:+.4f}" if "pg_loss" in values else "   none"
    regimes = ", ".join(f"{regime} {count}" for regime, count in done["regimes"].items()) or "none"
    print(
        f"step {number:4d}  pass {values['pass_rate']:.3f}  loss {loss}  entropy {values['entropy']:.3f}  "
        f"turns {values['turns']:.1f}  trained {values['groups_trained']}  waiting {values['groups_waiting']}  "
        f"regimes: {regimes}  {values['step_time_s']:.1f} s"
        f"{f'  (the run has another method than {advantages})' if is_other_method(advantages, done['sets']) else ''}",
        flush=True,
    )


def main(argv: list[str] | None = None) -> int:
    """Run the job; returns the exit status."""
    options = parse(argv)
    told = stop_on_signals()
    import torch  # after the options: `--help` must not take seconds

    from training_bridge.tiny_job import checkpoint, loop
    from training_bridge.tiny_job.errors import TinyJobError
    from training_bridge.tiny_job.runner import Runner

    torch.set_num_threads(1)
    plan = loop.Plan(options.advantages, options.seed, options.groups, options.rollouts)
    pace = loop.Pace(
        options.steps, options.wait_s, options.hold_steps, options.min_step_s, max(1, options.checkpoint_every),
        max(1, options.bodies_every),
    )  # fmt: skip
    cache = options.cache or options.checkpoint.parent / "tiny_job_tests.jsonl"
    try:
        with checkpoint.held(options.checkpoint), Runner(cache) as runner:
            job = loop.Job(plan, runner, options.checkpoint)
            prepare(job)
            with connect(options, job.cursor) as gagar:
                print(f"life {gagar.life} of run {options.run}, from step {job.step}", flush=True)
                loop.run(job, gagar, pace, told.wait, lambda number, done: report(options.advantages, number, done))
    except TinyJobError as broken:
        print(f"tiny job: {broken}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped at once; the last checkpoint stands", file=sys.stderr)
        return 130
    print(f"{'stopped' if told.is_set() else 'done'}: step {job.step} saved in {options.checkpoint}", flush=True)
    return 0


def prepare(job) -> None:
    """Resume from the checkpoint, or warm up a new policy."""
    if job.path.exists():
        job.resume()
        print(f"resumed {job.path} at step {job.step}, {len(job.pending)} groups waiting", flush=True)
        return
    print("warming the policy up by imitation (the first time some hundred test runs are executed)", flush=True)
    started = time.monotonic()
    job.begin()
    print(f"warmed up in {time.monotonic() - started:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
