"""The REST calls of the client: one try each, and whether trying again can help."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

GZIP_FROM_BYTES = 1024
TIMEOUT = httpx.Timeout(60.0, connect=5.0)


class Away(Exception):
    """No answer, or one that may be better later (429, 5xx)."""

    def __init__(self, why: str, retry_after_s: float = 0.0):
        super().__init__(why)
        self.retry_after_s = retry_after_s


class Refused(Exception):
    """An answer that will not change: `status` and what the server said."""

    def __init__(self, status: int, text: str, *, ours: bool, where: str = ""):
        super().__init__(f"HTTP {status}: {text}")
        self.status, self.text = status, text
        self.ours = ours  # a JSON error of the protocol, not a page of some proxy
        self.where = where  # the field or parameter it is about


class Api:
    """One connection pool to one server for one run. Used by one thread at a time."""

    def __init__(self, url: str, run: str, token: str):
        self.run_path = f"/runs/{quoted(run)}"
        self._client = httpx.Client(
            base_url=f"{url.rstrip('/')}/api/v1",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=TIMEOUT,
        )

    def close(self) -> None:
        """Close the pool."""
        self._client.close()

    def call(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        *,
        content_type: str = "application/json",
        timeout_s: float | None = None,
    ) -> Any:
        """Make one request with a body of bytes, gzipped if that helps.

        Args:
            method, path: below `/api/v1`.
            content: the body.
            content_type: of the body.
            timeout_s: instead of the usual 60.
        Returns:
            The decoded JSON answer; None if it has none.
        Raises:
            Away, Refused.
        """
        headers = {"Content-Type": content_type}
        if content is not None and len(content) >= GZIP_FROM_BYTES:
            headers["Content-Encoding"] = "gzip"
            content = b"".join(_gzip([content]))
        timeout = TIMEOUT if timeout_s is None else httpx.Timeout(timeout_s)
        return self._ask(lambda: self._client.request(method, path, content=content, headers=headers, timeout=timeout))

    def stream(self, path: str, lines: Callable[[], Iterable[bytes]]) -> Any:
        """POST NDJSON without holding it in memory.

        Args:
            path: below `/api/v1`.
            lines: makes the lines; called once a try.
        Returns, Raises:
            As `call`.
        """
        headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
        return self._ask(lambda: self._client.post(path, content=_gzip(lines()), headers=headers))

    def _ask(self, send: Callable[[], httpx.Response]) -> Any:
        try:
            response = send()
        except httpx.TransportError as error:
            raise Away(f"{type(error).__name__}: {error}") from error
        status = response.status_code
        if status in (408, 425, 429) or status >= 500:
            raise Away(f"HTTP {status}", _retry_after_s(response))
        answer = _json(response)
        if status >= 300:
            ours = isinstance(answer, dict) and "what" in answer
            where = str(answer.get("where") or "") if ours else ""
            raise Refused(status, _said(answer) if ours else response.text[:200], ours=ours, where=where)
        return answer


def quoted(key: str) -> str:
    """A key as one segment of a path. Args: key, any text."""
    return quote(key, safe="")


def _gzip(parts: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(3, wbits=31)
    for part in parts:
        if packed := packer.compress(part):
            yield packed
    yield packer.flush()


def _json(response: httpx.Response) -> Any:
    try:
        return msgspec.json.decode(response.content) if response.content else None
    except msgspec.DecodeError:
        return None


def _said(answer: dict[str, Any]) -> str:
    place = f" at {answer['where']}" if answer.get("where") else ""
    return f"{answer['what']}{place}: got {answer.get('got')}, expected {answer.get('expected')}"


def _retry_after_s(response: httpx.Response) -> float:
    try:
        return min(float(response.headers.get("Retry-After", 0)), 120.0)
    except ValueError:
        return 0.0
