"""A backup of the tests' database taken while it is in use, and its restoration, on SQLite and on PostgreSQL."""

import sqlite3
from pathlib import Path

from django.db import connection, transaction

SCHEMA = "chaos_backup"


class Backup:
    """All rows as they were when it was taken. Restore it when no server runs."""

    def __init__(self, folder: Path):
        self.file = folder / "backup.sqlite3"
        if connection.vendor == "sqlite":
            self._copy(Path(connection.settings_dict["NAME"]), self.file)
            return
        self.tables = [name for name in connection.introspection.table_names() if name != "django_migrations"]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
            cursor.execute(f"CREATE SCHEMA {SCHEMA}")
            for name in self.tables:
                cursor.execute(f'CREATE TABLE {SCHEMA}."{name}" AS TABLE public."{name}"')

    def restore(self) -> None:
        if connection.vendor == "sqlite":
            connection.close()
            self._copy(self.file, Path(connection.settings_dict["NAME"]))
            return
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")  # as pg_restore: no triggers
            cursor.execute("TRUNCATE " + ", ".join(f'public."{name}"' for name in self.tables) + " CASCADE")
            for name in self.tables:
                cursor.execute(f'INSERT INTO public."{name}" OVERRIDING SYSTEM VALUE SELECT * FROM {SCHEMA}."{name}"')
                cursor.execute(f"SELECT pg_get_serial_sequence('public.\"{name}\"', a.attname) FROM pg_attribute a"
                               f" WHERE a.attrelid = 'public.\"{name}\"'::regclass AND a.attname = 'id'")  # fmt: skip
                if (found := cursor.fetchone()) and found[0]:
                    newest = f'SELECT coalesce(max(id), 0) + 1 FROM public."{name}"'
                    cursor.execute(f"SELECT setval('{found[0]}', ({newest}), false)")
            cursor.execute(f"DROP SCHEMA {SCHEMA} CASCADE")

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        with sqlite3.connect(source, timeout=60) as one, sqlite3.connect(target, timeout=60) as other:
            one.backup(other)
        one.close()
        other.close()
