"""Fixtures that several rooms share: a real server, and rows that later tests may rely on."""

import asyncio
import contextlib
import os
import threading
import time
from pathlib import Path

import pytest

from tests import tables
from tests.factories import flash


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment, django_db_blocker, django_db_modify_db_settings):
    """In the place of pytest-django's own, which would migrate anew in every process."""
    from django.conf import settings as site
    from django.db import connection

    name = str(connection.creation._get_test_db_name())
    with contextlib.ExitStack() as kept:
        if connection.vendor == "sqlite":
            tables.copy_file(Path(name))
        else:
            kept.enter_context(tables.copied_database(os.environ["DATABASE_URL"], name))
        site.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name
        yield
        with django_db_blocker.unblock():
            connection.close()
            if connection.vendor != "sqlite":
                connection.close_pool()


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    """PBKDF2 is slow on purpose; tests sign in hundreds of times."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def server(transactional_db):
    """The whole ASGI site on a free port, in a thread, over the test database. Yields its URL."""
    import uvicorn
    from channels.layers import channel_layers

    from gagar_web.asgi import application
    from gagar_web.relay import ThreadSafeInMemoryChannelLayer

    flash()
    # A layer belongs to one event loop. The server before this one may have left a reader in the old layer.
    channel_layers.backends.clear()
    config = uvicorn.Config(
        application, host="127.0.0.1", port=0, lifespan="off", log_level="warning", timeout_graceful_shutdown=5
    )
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
    thread.join(60)
    assert not thread.is_alive(), "the test's server did not stop within 60 s: what does it wait for?"
    ThreadSafeInMemoryChannelLayer.home = None


def wait_for(what, *, within_s: float = 60.0, every_s: float = 0.05):
    """Ask until the answer is true, and return it; fail loudly when it never is."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if answer := what():
            return answer
        time.sleep(every_s)
    raise AssertionError(f"not true within {within_s} s: {what}")
