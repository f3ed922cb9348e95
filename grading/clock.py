"""The database's clock: leases and deadlines must agree between machines."""

from datetime import UTC, datetime

from django.db import connection


def now() -> datetime:
    """The database's time. SQLite lives in this process, so its clock is ours."""
    if connection.vendor == "sqlite":
        return datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]
