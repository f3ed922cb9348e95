import asyncio
import contextlib
import socket
import sys

from gagar_web import embedded


def test_a_child_that_fails_at_its_start_is_tried_ever_more_rarely(monkeypatch):
    monkeypatch.setattr(embedded, "RESTART_AT_MOST_S", 0.04)
    child = embedded.Child("doomed", [sys.executable, "-c", "raise SystemExit(3)"], wait_s=0.01)
    child.start()

    async def watch():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(child.supervise(), 3)

    asyncio.run(watch())
    assert child.wait_s == 0.04 and not child.has_ended


def test_a_child_that_may_end_is_not_started_again():
    child = embedded.Child("done", [sys.executable, "-c", ""], ends=True)
    child.start()
    first = child.process
    asyncio.run(asyncio.wait_for(child.supervise(), 30))
    assert child.has_ended and child.process is first


def test_no_part_of_an_answer_waits_for_the_acknowledgement_of_another(settings, tmp_path):
    settings.GAGAR_DATA_DIR = tmp_path
    with embedded.place("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
