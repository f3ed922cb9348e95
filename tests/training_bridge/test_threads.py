"""The sockets' steps: a SQLite connection stays open, unless it failed or its file was replaced."""

import asyncio
import os
import shutil
import threading

import pytest
from django.db import DatabaseError, connection, connections

from training_bridge import threads

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connections["default"].vendor != "sqlite", reason="PostgreSQL has a pool of its own"),
]


def opened():
    connection.ensure_connection()
    return connection.connection


def fail():
    with connection.cursor() as cursor:
        cursor.execute("SELECT nothing FROM nowhere")


def in_a_thread_of_its_own(work):
    """A thread, so that the connection is not the test's own. Returns what the work gave."""
    found = []

    def run():
        found.append(work())
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_a_connection_stays_open_until_a_step_failed():
    def work():
        first, second = (threads._on_a_sound_connection(opened) for _ in range(2))
        with pytest.raises(DatabaseError):
            threads._on_a_sound_connection(fail)
        return first, second, threads._on_a_sound_connection(opened)

    first, second, third = in_a_thread_of_its_own(work)
    assert first is second and third is not first


def test_a_database_that_was_put_in_its_place_is_opened_anew(tmp_path):
    def work():
        here = connection.settings_dict["NAME"]
        connection.settings_dict = connection.settings_dict | {"NAME": tmp_path / "rows.sqlite3"}
        try:
            (tmp_path / "rows.sqlite3").touch()
            first = threads._on_a_sound_connection(opened)
            shutil.copy(tmp_path / "rows.sqlite3", tmp_path / "backup.sqlite3")
            os.replace(tmp_path / "backup.sqlite3", tmp_path / "rows.sqlite3")
            return first, threads._on_a_sound_connection(opened)
        finally:
            connection.settings_dict = connection.settings_dict | {"NAME": here}

    first, second = in_a_thread_of_its_own(work)
    assert first is not second


def test_a_step_runs_beside_the_event_loop_with_its_arguments():
    async def main():
        name = await threads.rows(lambda a, *, b: (threading.current_thread().name, a, b))(1, b=2)
        return name

    name, *said = asyncio.run(main())
    assert name != threading.current_thread().name and said == [1, 2]
