"""Before Django spools a body to disk: one too large, without a token, or in a charset that is none, is refused."""

import json

from channels.db import database_sync_to_async

from grading.ingest.auth import token_of
from grading.ingest.reading import JSON_LIMIT, MIB, STREAM_LIMIT
from grading.ingest.refusals import API, refusal

FREE_BYTES = MIB  # a body of the API up to here reaches Django, which refuses a bad token in its own words


class BodyGuard:
    """ASGI around the site. Django itself has no limit here, and fails (500) on `charset=bz2_codec`."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        body = _Body(receive, headers.get(b"authorization", ""), is_api=scope["path"].startswith(API))
        length = headers.get(b"content-length", "")
        charset = headers.get(b"content-type", "").lower().partition("charset=")[2].split(";")[0].strip(' "')
        try:
            if charset not in ("", "utf-8", "utf8"):
                raise _Refused(
                    415, "the text is in another charset", got=charset, expected="utf-8", where="Content-Type"
                )
            await body.admit(int(length) if length.isdecimal() else 0)
            await self.app(scope, body, send)
        except _Refused as refused:  # raised while Django reads the body: nothing has been answered yet
            await _answer(send, refused)


class _Refused(Exception):
    def __init__(self, status: int, what: str, **said):
        self.status, self.said = status, refusal(what, **said)


class _Body:
    """`receive`, until more bytes of body have come than this sender may send."""

    def __init__(self, receive, authorization: str, *, is_api: bool):
        self.receive, self.authorization = receive, authorization
        self.limit, self.read, self.is_proven = STREAM_LIMIT if is_api else JSON_LIMIT, 0, not is_api

    async def __call__(self):
        message = await self.receive()
        self.read += len(message.get("body", b""))
        await self.admit(self.read)
        return message

    async def admit(self, size: int) -> None:
        if size > self.limit:
            raise _Refused(413, "the body is too large", got=f"over {self.limit} bytes", expected=f"<= {self.limit}")
        if size > FREE_BYTES and not self.is_proven:
            find = database_sync_to_async(token_of, thread_sensitive=False)
            if await find(self.authorization) is None:
                what = "a large body needs a token that is known and not revoked"
                raise _Refused(401, what, expected="Authorization: Bearer <token>", where="Authorization")
            self.is_proven = True


async def _answer(send, refused: _Refused) -> None:
    body = json.dumps(refused.said).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"connection", b"close"), *([(b"www-authenticate", b"Bearer")] if refused.status == 401 else [])]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
