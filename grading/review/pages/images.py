"""Images that an event carries as data URLs: sniffed, bounded, or said in words. Core."""

import binascii
import re
import struct
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass

IMAGE_BYTES = 2_000_000
IMAGES_AT_ONCE = 8
MOST_PIXELS = 40_000_000  # what a browser unpacks: a small file may hold a huge picture
DATA_URL = re.compile(
    r"data:([\w.+-]{1,40}/[\w.+-]{1,60})?(?:;[\w.=+-]{1,60}){0,4};base64,([A-Za-z0-9+/_-]{24,}={0,2})"
)
NAMED = {b"\x89PNG\r\n\x1a\n": "png", b"GIF87a": "gif", b"GIF89a": "gif", b"\xff\xd8\xff": "jpeg"}


@dataclass(frozen=True)
class Image:
    """An image to draw (`url` is ours, made of its bytes), or the words about one that is not drawn."""

    words: str
    url: str = ""
    width: int = 0
    height: int = 0


def cut(text: str, room: int = IMAGES_AT_ONCE) -> Iterator[str | Image]:
    """Cut a text at its data URLs.

    Args:
        text: what an event says; it may hold any number of data URLs, of anything.
        room: how many images may be drawn.
    Returns:
        The texts between them, and an `Image` for each.
    """
    at = drawn = 0
    for found in DATA_URL.finditer(text):
        if found.start() > at:
            yield text[at : found.start()]
        image = _read(found[1] or "text/plain", found[2], may_draw=drawn < room)
        drawn += bool(image.url)
        yield image
        at = found.end()
    if at < len(text) or not at:
        yield text[at:]


def without(text: str) -> str:
    """Returns: the text with a short word in place of each data URL."""
    return DATA_URL.sub(lambda found: f"[data URL, {found[1] or 'text/plain'}]", text) if "data:" in text else text


def _read(said: str, encoded: str, *, may_draw: bool) -> Image:
    size = len(encoded) * 3 // 4
    words = f"{said}, {size:,} bytes"
    if not may_draw:
        return Image(f"{words}: not drawn, an event draws {IMAGES_AT_ONCE} images")
    if size > IMAGE_BYTES:
        return Image(f"{words}: not drawn, the limit is {IMAGE_BYTES:,} bytes")
    plain = encoded.replace("-", "+").replace("_", "/")  # the alphabet of addresses
    try:
        raw = b64decode(plain + "=" * (-len(plain) % 4))
    except binascii.Error:
        return Image(f"{words}: not drawn, its base64 is broken")
    kind, sides = sniff(raw)
    if sides is None:
        return Image(f"{words}: not drawn, it is no PNG, JPEG, GIF or WebP")
    width, height = sides
    if width * height > MOST_PIXELS:
        return Image(f"{words}: not drawn, it has {width:,} × {height:,} pixels")
    words = f"{kind.upper()}, {width:,} × {height:,}, {len(raw):,} bytes"
    return Image(words, f"data:image/{kind};base64,{plain}", width, height)


def sniff(raw: bytes) -> tuple[str, tuple[int, int] | None]:
    """Tell an image by its bytes, never by what it says it is.

    Args:
        raw: the decoded bytes.
    Returns:
        png, jpeg, gif or webp with (width, height) in pixels; ("", None) for anything else, and for a cut head.
    """
    kind = next((kind for mark, kind in NAMED.items() if raw.startswith(mark)), "")
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        kind = "webp"
    try:
        sides = {"png": _png, "gif": _gif, "jpeg": _jpeg, "webp": _webp}[kind](raw)
    except (KeyError, struct.error, IndexError):
        return "", None
    return (kind, sides) if sides and min(sides) > 0 else ("", None)


def _png(raw: bytes) -> tuple[int, int] | None:
    return struct.unpack(">II", raw[16:24]) if raw[12:16] == b"IHDR" else None


def _gif(raw: bytes) -> tuple[int, int]:
    return struct.unpack("<HH", raw[6:10])


def _jpeg(raw: bytes) -> tuple[int, int] | None:
    at = 2
    while raw[at] == 0xFF:
        marker, length = raw[at + 1], struct.unpack(">H", raw[at + 2 : at + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a start of frame
            height, width = struct.unpack(">HH", raw[at + 5 : at + 9])
            return width, height
        at += 2 + length
    return None


def _webp(raw: bytes) -> tuple[int, int] | None:
    if raw[12:16] == b"VP8 ":
        width, height = struct.unpack("<HH", raw[26:30])
        return width & 0x3FFF, height & 0x3FFF
    if raw[12:16] == b"VP8L":
        bits = struct.unpack("<I", raw[21:25])[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if raw[12:16] == b"VP8X":
        return int.from_bytes(raw[24:27], "little") + 1, int.from_bytes(raw[27:30], "little") + 1
    return None
