"""Fixtures that several rooms share: a real server, and rows that later tests may rely on."""

import asyncio
import threading
import time

import pytest

from tests.factories import flash


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    """PBKDF2 is slow on purpose; tests sign in hundreds of times."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def server(transactional_db):
    """The whole ASGI site on a free port, in a thread, over the test database. Yields its URL."""
    import uvicorn

    from gagar_web.asgi import application
    from gagar_web.relay import ThreadSafeInMemoryChannelLayer

    flash()
    config = uvicorn.Config(application, host="127.0.0.1", port=0, lifespan="off", log_level="warning")
    uvicorn_server = uvicorn.Server(config)

    async def serve():
        ThreadSafeInMemoryChannelLayer.home = asyncio.get_running_loop()
        await uvicorn_server.serve()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    while not uvicorn_server.started:
        time.sleep(0.01)
    port = uvicorn_server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    uvicorn_server.should_exit = True
    thread.join(10)
    ThreadSafeInMemoryChannelLayer.home = None


def wait_for(what, *, within_s: float = 60.0, every_s: float = 0.05):
    """Ask until the answer is true, and return it; fail loudly when it never is."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if answer := what():
            return answer
        time.sleep(every_s)
    raise AssertionError(f"not true within {within_s} s: {what}")
