"""The tables that tests get as a copy are those that migrating would make."""

import sqlite3
from contextlib import closing

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.tables import copy_file

pytestmark = pytest.mark.django_db


def test_the_copied_tables_have_every_migration_and_its_rows(tmp_path):
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    copy_file(tmp_path / "copied.sqlite3")  # in the database of the tests others may have emptied every table
    with closing(sqlite3.connect(tmp_path / "copied.sqlite3")) as rows:
        assert rows.execute("SELECT number FROM grading_rubricversion").fetchall() == [(1,)]
    assert "test" in connection.settings_dict["NAME"], "never a database that somebody works in"
