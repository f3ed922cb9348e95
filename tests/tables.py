"""Empty tables for the tests: made once for each state of the migrations, then copied: migrating takes many seconds."""

import fcntl
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "tables"  # git-ignored
LOCK_KEY = 7_101_966  # any number, the same for everybody


def digest() -> str:
    """Of all that shapes the tables: our migrations, and the versions of whoever has some too."""
    files = sorted(ROOT.glob("*/migrations/*.py"))
    said = hashlib.sha256()
    for file in [ROOT / "requirements.lock", *files]:
        said.update(file.name.encode() + file.read_bytes())
    return said.hexdigest()[:16]


def _migrate(**environment: str) -> None:
    with tempfile.TemporaryDirectory(prefix="gagar-tables-") as folder:
        env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        env |= {"GAGAR_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "gagar_web.settings"} | environment
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=env, check=True)
        made = Path(folder) / "gagar.sqlite3"
        if made.exists():
            part = KEPT / f"{digest()}.part"
            part.unlink(missing_ok=True)
            with closing(sqlite3.connect(made)) as rows:
                rows.execute("VACUUM INTO ?", [str(part)])  # one file, whatever still stood in the log beside it
            part.rename(part.with_suffix(".sqlite3"))


def copy_file(to: Path) -> None:
    """Put an SQLite file with all tables there, in the place of an older one."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = KEPT / f"{digest()}.sqlite3"
        if not kept.exists():
            for older in KEPT.glob("*.sqlite3"):
                older.unlink()
            _migrate()
        for beside in ("", "-wal", "-shm"):
            Path(f"{to}{beside}").unlink(missing_ok=True)
        shutil.copyfile(kept, to)


@contextmanager
def copied_database(admin: str, name: str) -> Iterator[None]:
    """A PostgreSQL database of this name with all tables, for as long as the block runs. `admin`: its server's URL."""
    import psycopg

    server, template = admin.rpartition("/")[0], f"gagar_tables_{digest()}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as rows:
        rows.execute("SELECT pg_advisory_lock(%s)", [LOCK_KEY])
        rows.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        found = rows.execute("SELECT 1 FROM pg_database WHERE datname = %s", [template]).fetchone()
        if not found:
            rows.execute(f'DROP DATABASE IF EXISTS "{template}_new" WITH (FORCE)')  # of somebody who was killed
            rows.execute(f'CREATE DATABASE "{template}_new"')
            _migrate(DATABASE_URL=f"{server}/{template}_new")
            rows.execute(f'ALTER DATABASE "{template}_new" RENAME TO "{template}"')
        rows.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    try:
        yield
    finally:
        with psycopg.connect(f"{server}/postgres", autocommit=True) as rows:
            rows.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def forget_database(admin: str) -> None:
    """Drop what was kept on the server for further copies."""
    import psycopg

    with psycopg.connect(f"{admin.rpartition('/')[0]}/postgres", autocommit=True) as rows:
        rows.execute("SELECT pg_advisory_lock(%s)", [LOCK_KEY])
        rows.execute(f'DROP DATABASE IF EXISTS "gagar_tables_{digest()}"')
