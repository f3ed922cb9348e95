"""Before Django spools a body to disk: one that is too large, or in a charset Python cannot decode, is refused."""

import json

from grading.ingest.reading import JSON_LIMIT, STREAM_LIMIT
from grading.ingest.refusals import API, refusal


class BodyGuard:
    """ASGI around the site. Django itself has no limit here, and fails (500) on `charset=bz2_codec`."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        limit = STREAM_LIMIT if scope["path"].startswith(API) else JSON_LIMIT
        charset = headers.get(b"content-type", "").lower().partition("charset=")[2].split(";")[0].strip(' "')
        if charset not in ("", "utf-8", "utf8"):
            said = refusal("the text is in another charset", got=charset, expected="utf-8", where="Content-Type")
            return await _answer(send, 415, said)
        length = headers.get(b"content-length", "")
        if length.isdecimal() and int(length) > limit:
            return await _too_large(send, limit)
        try:
            await self.app(scope, _Counted(receive, limit), send)
        except _TooLarge:  # raised while Django reads the body: nothing has been answered yet
            await _too_large(send, limit)


class _TooLarge(Exception):
    pass


class _Counted:
    """`receive`, until more than `limit` bytes of body have come."""

    def __init__(self, receive, limit: int):
        self.receive, self.left = receive, limit

    async def __call__(self):
        message = await self.receive()
        self.left -= len(message.get("body", b""))
        if self.left < 0:
            raise _TooLarge
        return message


async def _too_large(send, limit: int) -> None:
    await _answer(send, 413, refusal("the body is too large", got=f"over {limit} bytes", expected=f"<= {limit}"))


async def _answer(send, status: int, said: dict) -> None:
    body = json.dumps(said).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})
