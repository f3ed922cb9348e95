"""A real HTTP server that speaks the OpenAI and Anthropic wire formats and plays scripts (model_scripts.py).

`with ModelServer("good") as server:` serves at `server.url`; `python -m tests.model_server` is a process.
"""

import argparse
import json
import re
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.model_scripts import SCRIPTS, Asked, Say, Script

PIECE_CHARS = 400


@dataclass(frozen=True)
class Request:
    """One call as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class ModelServer:
    """Plays a script per call, in order; the last one plays on. A script is a name, a `Say` or a function."""

    def __init__(self, *scripts: "str | Say | Script", port: int = 0):
        self.scripts = [_script(script) for script in scripts or ("good",)]
        self.requests: list[Request] = []
        self.released = threading.Event()  # ends every hanging call
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def url(self) -> str:
        """The base URL for `openai:…`; `anthropic:…` takes `root`."""
        return f"{self.root}/v1"

    @property
    def calls(self) -> int:
        return len(self.requests)

    def play(self, *scripts: "str | Say | Script") -> None:
        """Start anew with other scripts."""
        with self._lock:
            self.scripts, self.requests = [_script(script) for script in scripts], []

    def answer(self, request: Request) -> Say:
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            script = self.scripts[min(number, len(self.scripts)) - 1]
        return script(Asked.of(request.body, number))

    def start(self) -> "ModelServer":
        self._thread.start()
        return self

    def stop(self) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    __enter__ = start

    def __exit__(self, *_: object) -> None:
        self.stop()


def _script(script: "str | Say | Script") -> "Script":
    if isinstance(script, Say):
        return lambda asked: script
    return SCRIPTS[script] if isinstance(script, str) else script


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    owner: ModelServer

    def handle_error(self, request, client_address) -> None:
        """A client that hangs up on a slow script is what the script is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
        owner = self.server.owner
        say = owner.answer(request)
        if say.delay_s:
            owner.released.wait(say.delay_s)
        if say.hang:
            owner.released.wait(600)
            self.close_connection = True
        elif say.status != 200:
            kind = "rate_limit_error" if say.status == 429 else "server_error"
            error = {"message": say.text or "scripted", "type": kind} | ({"code": say.code} if say.code else {})
            self._send(say.status, {"error": error}, say.headers)
        else:
            wire = _Anthropic if self.path.endswith("/messages") else _OpenAI
            self._play(say, wire(say, body), streams=bool(body.get("stream")))

    def _play(self, say: Say, wire: "_OpenAI | _Anthropic", *, streams: bool) -> None:
        if not streams:
            self._send(200, wire.whole(), cut=say.cut)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        lines = [say.raw] if say.raw else list(wire.stream())
        if say.cut == "stream":  # ends quietly, in the middle
            lines = lines[: max(1, len(lines) // 2)]
        elif say.cut == "json":  # ends in the middle of a line
            lines = [*lines[: len(lines) // 2], lines[len(lines) // 2][: len(lines[len(lines) // 2]) // 2] + "\n\n"]
        for line in lines:
            self.wfile.write(line.encode())
            self.wfile.flush()
            if say.pause_s:
                self.server.owner.released.wait(say.pause_s)

    def _send(self, status: int, body: dict, headers: Sequence[tuple[str, str]] = (), cut: str = "") -> None:
        data = json.dumps(body).encode()
        data = data[: len(data) // 2] if cut else data
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


class _OpenAI:
    """Chat completions."""

    def __init__(self, say: Say, body: dict[str, Any]):
        self.say, self.model = say, body.get("model", "scripted")
        self.finish = say.finish or ("tool_calls" if say.tool_calls else "stop")
        prompt, cached, out = say.usage
        self.usage = {
            "prompt_tokens": prompt,
            "completion_tokens": out,
            "total_tokens": prompt + out,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        self.calls = [
            {"id": f"call_{i}_{time.monotonic_ns()}", "type": "function", "function": {"name": n, "arguments": a}}
            for i, (n, a) in enumerate(say.calls_json())
        ]

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": self.model}

    def whole(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.say.text or None}
        if self.calls:
            message["tool_calls"] = self.calls
        if self.say.thinking:
            message["reasoning_content"] = self.say.thinking
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self.usage}

    def stream(self) -> Iterator[str]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": piece} for piece in _pieces(self.say.thinking)]
        deltas += [{"content": piece} for piece in _pieces(self.say.text)]
        for i, call in enumerate(self.calls):
            deltas.append({"tool_calls": [{"index": i, **call}]})
        for delta in deltas:
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            yield _data({**self._head("chat.completion.chunk"), "choices": [choice]})
        last = {"index": 0, "delta": {}, "finish_reason": self.finish}
        yield _data({**self._head("chat.completion.chunk"), "choices": [last]})
        yield _data({**self._head("chat.completion.chunk"), "choices": [], "usage": self.usage})
        yield "data: [DONE]\n\n"


class _Anthropic:
    """Messages."""

    def __init__(self, say: Say, body: dict[str, Any]):
        self.say, self.model = say, body.get("model", "scripted")
        stops = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
        self.finish = stops.get(say.finish or ("tool_calls" if say.tool_calls else "stop"), "end_turn")
        prompt, cached, out = say.usage
        self.usage = {
            "input_tokens": prompt - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0,
            "output_tokens": out,
        }  # fmt: skip

    def _blocks(self) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": self.say.text}] if self.say.text else []
        for i, (name, args) in enumerate(self.say.calls_json()):
            blocks.append({"type": "tool_use", "id": f"toolu_{i}", "name": name, "input": json.loads(args)})
        return blocks

    def _message(self, **fields: Any) -> dict[str, Any]:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "stop_sequence": None,
            **fields,
        }

    def whole(self) -> dict[str, Any]:
        return self._message(content=self._blocks(), stop_reason=self.finish, usage=self.usage)

    def stream(self) -> Iterator[str]:
        yield _event("message_start", message=self._message(content=[], stop_reason=None, usage=self.usage))
        for i, block in enumerate(self._blocks()):
            is_text = block["type"] == "text"
            empty = {"type": "text", "text": ""} if is_text else {**block, "input": {}}
            yield _event("content_block_start", index=i, content_block=empty)
            text = block["text"] if is_text else json.dumps(block["input"])
            for piece in _pieces(text):
                delta = (
                    {"type": "text_delta", "text": piece}
                    if is_text
                    else {"type": "input_json_delta", "partial_json": piece}
                )
                yield _event("content_block_delta", index=i, delta=delta)
            yield _event("content_block_stop", index=i)
        yield _event("message_delta", delta={"stop_reason": self.finish, "stop_sequence": None}, usage=self.usage)
        yield _event("message_stop")


def _pieces(text: str) -> list[str]:
    return re.findall(rf"(?s).{{1,{PIECE_CHARS}}}", text)


def _data(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--script", default="good", help=", ".join(SCRIPTS))
    args = parser.parse_args()
    server = ModelServer(args.script, port=args.port).start()
    print(f"{args.script} at {server.url}", flush=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        server.stop()


if __name__ == "__main__":
    main()
