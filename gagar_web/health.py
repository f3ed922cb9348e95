"""What a load balancer asks, by whatever name it calls us: does the database answer, is every migration applied?"""

import json

from channels.db import database_sync_to_async
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

PATH = "/healthz"
_is_migrated = False  # once true it stays so for this process; looking costs more than a health check may


class Health:
    """ASGI around the site: 200 or 503 and two words of JSON. No sign-in, no Host that must be allowed, no secret."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["path"] != PATH:
            return await self.app(scope, receive, send)
        found = await database_sync_to_async(look, thread_sensitive=False)()
        body = json.dumps(found).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        status = 200 if all(found.values()) else 503
        await send(
            {"type": "http.response.start", "status": status, "headers": [*headers, (b"cache-control", b"no-store")]}
        )
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def look() -> dict[str, bool]:
    """Returns: whether the database answers, and whether its tables are those of this code."""
    global _is_migrated
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        if not _is_migrated:
            executor = MigrationExecutor(connection)
            _is_migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    except Error:
        return {"database": False, "migrations": False}
    return {"database": True, "migrations": _is_migrated}
