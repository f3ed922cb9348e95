"""Real processes in milliseconds: one that has imported all forks a fresh one for each order read from its input."""

import asyncio
import ctypes
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

PR_SET_PDEATHSIG = 1


def web(port: int, ping_s: float) -> None:
    """The whole ASGI site, as `serve` runs it, without a worker."""
    import uvicorn

    from gagar_web.asgi import application
    from gagar_web.relay import ThreadSafeInMemoryChannelLayer

    async def serve() -> None:
        ThreadSafeInMemoryChannelLayer.home = asyncio.get_running_loop()
        config = uvicorn.Config(
            application, host="127.0.0.1", port=port, lifespan="off", log_level="warning", ws_max_size=2**20,
            ws_ping_interval=ping_s, ws_ping_timeout=ping_s,
        )  # fmt: skip
        await uvicorn.Server(config).serve()

    asyncio.run(serve())


def sweeper() -> None:
    """What the worker's clock does every 2 s: deadlines and deliveries whose doorbell was lost."""
    from grading.review import deadlines
    from training_bridge import delivery

    while True:
        deadlines.sweep()
        delivery.sweep()
        time.sleep(0.5)


def trainer(**plan) -> None:
    from tests.chaos.trainer import train

    train(**plan)


def listener(**plan) -> None:
    from tests.chaos.trainer import listen

    listen(**plan)


WHAT = {"web": web, "sweeper": sweeper, "trainer": trainer, "listener": listener}


def begin(what: str, log: str, order: dict) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    status = 0
    try:
        WHAT[what](**order)
    except BaseException:
        traceback.print_exc()
        status = 1
    (Path(log).with_suffix(".status")).write_text(str(status))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main() -> None:
    from django.conf import settings

    settings.DATABASES["default"]["NAME"] = os.environ["CHAOS_DATABASE"]  # that of the tests
    import httpx  # noqa: F401
    import uvicorn.protocols.websockets.auto  # noqa: F401
    import websockets.asyncio.client  # noqa: F401

    import gagar_web.asgi  # noqa: F401  (sets Django up)
    import gagar_web.urls  # noqa: F401
    import grading.review.deadlines  # noqa: F401
    import tests.chaos.trainer  # noqa: F401
    import training_bridge.delivery  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            begin(order.pop("what"), order.pop("log"), order)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
