"""Run the row tests and the chaos suite again on PostgreSQL, Redis and RabbitMQ where they answer; else say why not.

`--chaos` runs the chaos suite alone; with GAGAR_CHAOS set, at its full counts.
"""

import os
import socket
import subprocess
import sys

from tests import tables

SERVICES = {
    "DATABASE_URL": ("GAGAR_TEST_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres", 5432),
    "REDIS_URL": ("GAGAR_TEST_REDIS_URL", "redis://127.0.0.1:6379/15", 6379),
    "CELERY_BROKER_URL": ("GAGAR_TEST_BROKER_URL", "amqp://guest:guest@127.0.0.1:5672//", 5672),
}
CHAOS, CHAOS_TESTS = "--chaos", ["tests/chaos"]
ROW_TESTS = ["tests/grading", "tests/training_bridge", "tests/test_one_group.py"]


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True


def main() -> int:
    environment = dict(os.environ)
    for name, (override, default, port) in SERVICES.items():
        if override not in os.environ and not answers(port):
            print(f"skipped: the tests on real services need {name}; nothing answers on 127.0.0.1:{port}")
            return 0
        environment[name] = os.environ.get(override, default)
    parallel = ["-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"]
    more = [word for word in sys.argv[1:] if word != CHAOS]
    runs = [[*parallel, "-m", "django_db or postgres", *ROW_TESTS]] if CHAOS not in sys.argv else []
    print("again on PostgreSQL, Redis and RabbitMQ", flush=True)
    try:
        for words in [*runs, CHAOS_TESTS]:
            command = [sys.executable, "-m", "pytest", *words, *more]
            if status := subprocess.run(command, env=environment, check=False).returncode:
                return status
    finally:
        tables.forget_database(environment["DATABASE_URL"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
