"""A whole site in processes of its own, as a person starts it, watched from outside: logs, rows, /proc, HTTP."""

import os
import re
import socket
import sqlite3
import subprocess
import sys
import uuid
from html.parser import HTMLParser
from pathlib import Path
from typing import Self

import httpx

from gagar_web.embedded import die_with_parent
from tests import tables
from tests.conftest import wait_for

ROOT = Path(__file__).resolve().parents[1]
START_S, STOP_S = 240, 40  # a machine that does five other things needed more than a minute to start
NOT_INHERITED = (
    "DATABASE_URL",
    "REDIS_URL",
    "CELERY_BROKER_URL",
    "GAGAR_RELAY",
    "GAGAR_TOKEN",
)  # of the tests, not of a site


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class Started:
    """One process with its output in a file."""

    def __init__(self, command: list[str], env: dict[str, str], log: Path):
        self.log = log
        with log.open("w") as out:
            # A test run that is killed leaves nothing behind either.
            self.process = subprocess.Popen(
                [sys.executable, *command], cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                preexec_fn=die_with_parent,  # noqa: PLW1509
            )  # fmt: skip

    @property
    def said(self) -> str:
        return self.log.read_text()

    def find(self, pattern: str) -> str | None:
        found = re.search(pattern, self.said)
        return found[found.re.groups] if found else None

    def wait_to_say(self, pattern: str, within_s: float = START_S) -> str:
        """The first group of the pattern, or all it matched. A process that ends without the word fails at once."""

        def look():
            ended = self.process.poll() is not None
            found = self.find(pattern)
            assert found is not None or not ended, f"ended before it said {pattern!r}:\n{self.said}"
            return [found] if found is not None else None

        return wait_for(look, within_s=within_s)[0]

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def ended(self, within_s: float = STOP_S) -> int:
        """The exit status."""
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs after {within_s} s:\n{self.said}") from None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Site:
    """A data folder and what runs on it. Every process of it, however deep, carries a mark in its PATH."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.mark = f"mark-{uuid.uuid4().hex}"
        self.env = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED} | {
            "GAGAR_DATA_DIR": str(folder / "data"),
            "GAGAR_LEASE_S": "3",
            "PATH": f"{os.environ.get('PATH', os.defpath)}:/{self.mark}",
        }
        self.started: list[Started] = []

    def with_tables(self) -> Self:
        """As if it had been set up before: a first start migrates for many seconds."""
        (self.folder / "data").mkdir(exist_ok=True)
        tables.copy_file(self.folder / "data" / "gagar.sqlite3")
        return self

    def start(self, *command: str, **env: str) -> Started:
        log = self.folder / f"{len(self.started)}-{command[1].rpartition('.')[2]}.log"
        self.started.append(Started([*command], self.env | env, log))
        return self.started[-1]

    def manage(self, *command: str) -> Started:
        return self.start("manage.py", *command, "--port", str(self.port))

    def serve(self) -> Started:
        server = self.manage("serve", "--concurrency", "1")
        server.wait_to_say("Gagar is at")
        wait_for(lambda: httpx.get(f"{self.url}/sign-in", timeout=30).status_code, within_s=START_S)
        return server

    def running(self) -> dict[int, str]:
        """Command lines of our processes by pid; zombies have none."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (folder / "environ").read_bytes():
                    words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if words:
                        found[int(folder.name)] = words
            except OSError:
                continue
        return found

    def workers(self) -> list[int]:
        """The Celery worker with its pool."""
        return [pid for pid, words in self.running().items() if " celery " in words]

    def stop(self) -> None:
        for started in self.started:
            started.kill()
        for pid in self.running():
            os.kill(pid, 9)

    def rows(self, sql: str, *values) -> list[tuple]:
        database = sqlite3.connect(f"file:{self.folder / 'data' / 'gagar.sqlite3'}?mode=ro", uri=True, timeout=20)
        try:
            return database.execute(sql, values).fetchall()
        finally:
            database.close()

    def value(self, sql: str, *values):
        return self.rows(sql, *values)[0][0]


class Fields(HTMLParser):
    """What a browser without JavaScript would post with one form of a page, also from fields outside its tags."""

    def __init__(self, form: str, page: str):
        """Args: form, its id or its class; page, the HTML."""
        super().__init__()
        self.form, self.inside, self.select = form, False, None
        self.values: dict[str, str | list[str]] = {}
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        has = dict(attrs)
        if tag == "form":
            self.inside = self.form in (has.get("id"), has.get("class"))
        name = has.get("name")
        ours = name and has.get("form", self.form if self.inside else None) == self.form
        if tag == "option" and self.select:
            if "selected" in has or not self.values.get(self.select):
                self.values[self.select] = has.get("value", "")
        elif not ours:
            return
        elif tag == "select":
            self.select = name
        elif tag == "textarea":
            self.values[name] = ""
        elif has.get("type") != "checkbox":
            self.values[name] = has.get("value") or ""
        elif "checked" in has:
            self.values.setdefault(name, []).append(has.get("value", "on"))

    def handle_endtag(self, tag):
        if tag == "form":
            self.inside = False
        elif tag == "select":
            self.select = None


class Browser:
    """A person at a browser without JavaScript."""

    def __init__(self, url: str):
        self.client = httpx.Client(base_url=url, timeout=30, follow_redirects=True)

    def sign_in(self, username: str, password: str) -> None:
        self.page("/sign-in")
        signed_in = self.post("/sign-in", {"username": username, "password": password})
        assert "/sign-in" not in str(signed_in.url), signed_in.text[:2000]

    def page(self, path: str) -> str:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text[:2000]
        return answer.text

    def post(self, path: str, fields: dict) -> httpx.Response:
        token = self.client.cookies["csrftoken"]
        answer = self.client.post(path, data={**fields, "csrfmiddlewaretoken": token})
        alerts = re.findall(r'class="field-error">([^<]*)|<b>Not saved.</b>([^<]*)', answer.text)
        assert answer.status_code == 200, (path, answer.status_code, alerts)
        return answer
