"""A small real server that speaks the wire: REST over http.server, the stream over websockets, behind one cable.

It keeps everything in memory and decides nothing by itself: a test calls `decide`.
"""

import base64
import gzip
import json
import threading
import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

from tests.training_bridge.client.cable import Cable
from training_bridge.protocol.messages import (
    AdvantageRow,
    Advantages,
    CloseCode,
    Control,
    Durable,
    Metrics,
    ProtocolError,
    Receipt,
    Resume,
    Want,
)
from training_bridge.protocol.sessions import ServerSession, StreamFacts
from training_bridge.protocol.wire import encode_row

TOKEN = "little-token"


class LittleServer:
    """The state of one run, and the two servers that show it."""

    def __init__(self, *, ping_s: float | None = None) -> None:
        self.ping_s = ping_s
        self.lock = threading.Condition()
        self.lives = 0
        self.epoch = 1
        self.rows: list[tuple[str, str]] = []  # text, digest
        self.groups: dict[tuple[int, str], dict] = {}
        self.tasks: dict[str, dict] = {}
        self.repositories: dict[str, bytes] = {}
        self.trajectories: dict[tuple[int, str], dict] = {}
        self.bodies: dict[tuple[int, str], list[dict]] = {}
        self.receipts: list[Receipt] = []
        self.metrics: list[Metrics] = []
        self.numbers: dict[int, int] = {}  # life to the highest n stored
        self.wants: list[tuple[Want, float]] = []
        self.resumes: list[Resume] = []
        self.durable = 0
        self.mode = "normal"
        self.bodies_answer = "not_wanted"
        self.statuses: list[int] = []  # answers to give to the next calls instead of the right one
        self.poison = ""  # external_id whose posts are refused as a whole, or the key of a group that is refused
        self.declares_together = True
        self.handshake = 101
        self.close_code: CloseCode | None = None
        self.tamper = None  # what becomes of the texts about to be sent
        self.calls: Counter[str] = Counter()
        self.posts: list[list[str]] = []
        self.sockets = 0
        self.ended: list[tuple[int, str]] = []  # life, why
        self.afterthoughts: list[tuple[str, str, dict]] = []  # group, verb, body
        self._stopping = False

    def __enter__(self) -> "LittleServer":
        handler = type("Handler", (Handler,), {"server_state": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        self._ws = serve(
            self._stream,
            "127.0.0.1",
            0,
            subprotocols=["gagar.v1"],
            process_request=self._handshake,
            ping_interval=self.ping_s,
            ping_timeout=self.ping_s,
        )
        threading.Thread(target=self._ws.serve_forever, daemon=True).start()
        self.cable = Cable(self._http.server_address[1], self._ws.socket.getsockname()[1])
        self.cable.plug()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        self.cable.unplug()
        self._http.shutdown()
        self._http.server_close()
        self._ws.shutdown()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.cable.port}"

    def decide(self, group: str, *, life: int | None = None, version: int = 1, advantages=None, **fields) -> None:
        """Store the next row of the stream."""
        with self.lock:
            life = life or self.lives
            known = [e for (of, e), t in self.trajectories.items() if of == life and t["group"] == group]
            advantages = advantages or dict.fromkeys(known, 0.25 * version)
            rows = tuple(
                AdvantageRow(
                    trajectory=name, outcome="passed", reward=1.0, equivalent_reward=1.0, advantage=a, factor=0.5
                )
                for name, a in advantages.items()
            )
            made = {"step": 0, "regime": "bounded", "train": True, **fields}
            self._store(Advantages(seq=len(self.rows) + 1, group=group, life=life, version=version, rows=rows, **made))

    def control(self, mode: str) -> None:
        with self.lock:
            self.mode = mode
            self._store(Control(seq=len(self.rows) + 1, mode=mode, reason="paused by a person"))

    def new_epoch(self, groups: list[tuple[int, str, int]]) -> None:
        """Start the stream over with the open groups, as after a restore of the database."""
        self.epoch += 1
        self.rows = []
        for life, group, version in groups:
            self.decide(group, life=life, version=version)

    def wait(self, condition, timeout_s: float = 10.0):
        """Wait until `condition()` holds and return what it gave."""
        deadline = time.monotonic() + timeout_s
        while not (got := condition()):
            assert time.monotonic() < deadline, "the little server waited in vain"
            time.sleep(0.01)
        return got

    def ledger(self) -> dict[tuple[int, str, int], list[str]]:
        """Every word the job gave back, by (life, group, version)."""
        words: dict[tuple[int, str, int], list[str]] = {}
        for receipt in list(self.receipts):
            words.setdefault((receipt.life, receipt.group, receipt.version), []).append(receipt.status)
        return words

    def _store(self, row) -> None:
        self.rows.append(encode_row(row))
        self.lock.notify_all()

    def _handshake(self, connection, request):
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return connection.respond(403, "token")
        return None if self.handshake == 101 else connection.respond(self.handshake, "refused")

    def _stream(self, socket_) -> None:
        self.sockets += 1
        session = ServerSession()
        with suppress(ConnectionClosed):
            try:
                if self.close_code:
                    raise ProtocolError("test", got="this", expected="that", code=self.close_code)
                while not self._stopping:
                    self._turn(socket_, session)
            except ProtocolError as error:
                socket_.close(int(error.code), error.reason)

    def _turn(self, socket_, session: ServerSession) -> None:
        try:
            text = socket_.recv(timeout=0.01)
        except TimeoutError:
            text = None
        with self.lock:
            if text is not None:
                self._carry_out(session, session.receive(text))
            if session.life:
                session.fence(self.lives)
            texts = session.replies()
            while session.room > 0 and session.sent < len(self.rows):
                texts.append(session.pass_on(session.sent + 1, self.rows[session.sent][0]))
        for out in self.tamper(texts) if self.tamper else texts:
            socket_.send(out)

    def _carry_out(self, session: ServerSession, message) -> None:
        match message:
            case Resume():
                if needed := session.answer(self._facts(message)):
                    self.epoch = max(self.epoch, needed.above)
                    open_groups = [(life, key, 1) for life, key in self.groups if (life, key, 1) in self._decided()]
                    self.new_epoch(open_groups)
                    session.answer(self._facts(message))
            case Receipt():
                self.receipts.append(message)
            case Metrics():
                self.metrics.append(message)
            case Want():
                self.wants.append((message, time.monotonic()))
            case Durable(seq=seq):
                self.durable = seq
        if isinstance(message, Receipt | Metrics):
            self.numbers[session.life] = message.n
            session.note(message.n)

    def _decided(self) -> set[tuple[int, str, int]]:
        rows = [json.loads(text) for text, _ in self.rows]
        return {(row["life"], row["group"], row["version"]) for row in rows if row["type"] == "advantages"}

    def _facts(self, resume: Resume) -> StreamFacts:
        self.resumes.append(resume)
        digest = self.rows[resume.after_seq - 1][1] if 0 < resume.after_seq <= len(self.rows) else None
        noted = self.numbers.get(resume.life, 0)
        return StreamFacts(
            life=self.lives, epoch=self.epoch, head_seq=len(self.rows), mode=self.mode, digest=digest, noted=noted
        )

    def rest(self, method: str, path: list[str], query: dict, kind: str, body: bytes) -> tuple[int, dict]:
        """Answer one call below `/api/v1/`."""
        match method, path:
            case "POST", ["runs", "r", "lives"]:
                self.lives += 1
                return 201, {"life": self.lives}
            case "POST", ["runs", "r", "lives", n, "end"]:
                self.ended.append((int(n), json.loads(body)["why"]))
            case "POST", ["runs", "r", "groups", key, verb]:
                self.afterthoughts.append((key, verb, json.loads(body)))
                if verb == "seal":
                    self.groups[json.loads(body)["life"], key]["group_size"] = 0
            case "POST", ["runs", "r", "groups"]:
                return self._declare(json.loads(body))
            case "PUT", ["tasks", key]:
                self.tasks[key] = json.loads(body)
            case "PUT", ["repositories", key]:
                self.repositories[key] = body
            case "PUT", ["runs", "r", "groups", key]:
                fields = json.loads(body)
                if fields["life"] > self.lives:
                    return 404, {"what": "no such life", "got": fields["life"], "expected": "one", "where": "life"}
                self.groups[fields["life"], key] = fields
            case "GET", ["runs", "r", "groups", key]:
                return 200, self._group(int(query["life"][0]), key)
            case "POST", ["runs", "r", "trajectories"] if kind == "application/x-ndjson":
                return self._take_lines(int(query["life"][0]), [json.loads(line) for line in body.splitlines()])
            case "POST", ["runs", "r", "trajectories"]:
                envelope = json.loads(body)
                if envelope["life"] > self.lives:
                    return 404, {"what": "no such life", "got": envelope["life"], "expected": "one", "where": "life"}
                self.posts.append([t["external_id"] for t in envelope["trajectories"]])
                if self.poison in self.posts[-1]:
                    return 400, {"what": self.poison, "got": "poison", "expected": "food", "where": "trajectories"}
                return 200, {"items": [self._take(envelope["life"], t) for t in envelope["trajectories"]]}
            case _:
                return 404, {"what": "path", "got": "/".join(path), "expected": "one of the API", "where": ""}
        return 201, {}

    def _declare(self, said: dict) -> tuple[int, dict]:
        if not self.declares_together:
            return 405, {"what": "method", "got": "POST", "expected": "GET", "where": ""}
        if said["life"] > self.lives:
            return 404, {"what": "no such life", "got": said["life"], "expected": "one", "where": "life"}
        items = [{"key": group["key"], "status": "created"} for group in said["groups"]]
        for item, group in zip(items, said["groups"], strict=True):
            if group["key"] == self.poison:
                item |= {"status": "conflict", "error": "declared otherwise"}
            else:
                self.groups[said["life"], group["key"]] = group
        return 207 if self.poison else 200, {"items": items}

    def _group(self, life: int, key: str) -> dict:
        mine = {e: t for (of, e), t in self.trajectories.items() if of == life and t["group"] == key}
        whole = len(mine) >= self.groups[life, key]["group_size"]
        rollouts = [
            {
                "external_id": e,
                "outcome": t["outcome"],
                "events": len(self.bodies[life, e]) if (life, e) in self.bodies else None,
            }
            for e, t in mine.items()
        ]
        answer = self.bodies_answer if whole else "undecided"
        return {"state": "complete" if whole else "collecting", "bodies": answer, "rollouts": rollouts}

    def _take(self, life: int, t: dict) -> dict:
        if (life, t["group"]) not in self.groups:
            return {"external_id": t["external_id"], "status": "error", "error": f"no group {t['group']!r}"}
        known = (life, t["external_id"]) in self.trajectories
        if known and self.trajectories[life, t["external_id"]]["group"] != t["group"]:
            return {"external_id": t["external_id"], "status": "conflict", "error": "another group has this rollout"}
        self.trajectories.setdefault((life, t["external_id"]), t)
        return {"external_id": t["external_id"], "status": "exists" if known else "created"}

    def _take_lines(self, life: int, lines: list[dict]) -> tuple[int, dict]:
        items = []
        while lines:
            length = lines.index({"type": "end"})
            items.append(self._take_body(life, lines[0], lines[1:length]))
            lines = lines[length + 1 :]
        return 200, {"items": items}

    def _take_body(self, life: int, head: dict, events: list[dict]) -> dict:
        assert head.pop("type") == "trajectory"
        item = self._take(life, head)
        if events or "log" in head or "log_base64" in head:
            log = head.get("log", "").encode() or base64.b64decode(head.get("log_base64", ""))
            self.bodies[life, head["external_id"]] = [*events, {"log": log}]
            item["status"] = "filled"
        return item


class Handler(BaseHTTPRequestHandler):
    """The HTTP side."""

    server_state: LittleServer
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        state, url = self.server_state, urlsplit(self.path)
        body = self._body()
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        path = [unquote(part) for part in url.path.removeprefix("/api/v1/").split("/")]
        with state.lock:
            state.calls[f"{self.command} {path[-2] if len(path) > 1 and self.command != 'POST' else path[-1]}"] += 1
            if state.statuses:
                status, answer = state.statuses.pop(0), {"what": "w", "got": "g", "expected": "e", "where": "here"}
            elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
                status, answer = 401, {"what": "token", "got": "?", "expected": "a token", "where": "Authorization"}
            else:
                status, answer = state.rest(
                    self.command, path, parse_qs(url.query), self.headers.get("Content-Type", ""), body
                )
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = answer

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""
