"""Run the row tests again on PostgreSQL, Redis and RabbitMQ where they answer; say why not where they do not."""

import os
import socket
import subprocess
import sys

SERVICES = {
    "DATABASE_URL": ("GAGAR_TEST_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres", 5432),
    "REDIS_URL": ("GAGAR_TEST_REDIS_URL", "redis://127.0.0.1:6379/15", 6379),
    "CELERY_BROKER_URL": ("GAGAR_TEST_BROKER_URL", "amqp://guest:guest@127.0.0.1:5672//", 5672),
}
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
    command = [sys.executable, "-m", "pytest", *parallel, "-m", "django_db or postgres", *ROW_TESTS, *sys.argv[1:]]
    print("again on PostgreSQL, Redis and RabbitMQ", flush=True)
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
