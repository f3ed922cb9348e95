"""Bytes of a file as text for a page: encoding said in words, nothing invisible. Core."""

import re
import unicodedata
from typing import Literal

from grading.review.diffs.patch import FilePatch, Line, Side

Utf16 = Literal["utf-16-le", "utf-16-be"]

# Control, format, bidi, zero-width and look-alike-blank characters: all that can hide in a line. Not the tab, and not
# the variation selector and joiner inside an emoji, which agents write a lot and which are visible by their effect.
HIDDEN = re.compile(
    "(?<![\u203c-\u3299\U0001f000-\U0001faff])\ufe0f"
    "|(?<![\ufe0f\u2600-\u27bf\U0001f000-\U0001faff])\u200d|\u200d(?![\u2600-\u27bf\U0001f000-\U0001faff])"
    "|[\x00-\x08\x0a-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200c\u200e\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb"
    "\U000110bd\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)
# words, not the Unicode control pictures: many monospaced fonts have no glyph for those
CONTROLS = (
    "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
).split()
DELETE = 0x7F
HIDDEN_ASCII = bytes(code for code in range(0x80) if HIDDEN.match(chr(code)))


def utf16_of(file: FilePatch, side: Side) -> Utf16 | None:
    """Find the byte order mark a UTF-16 file shows in its first line.

    Args:
        file: the file's patch.
        side: "new" or "old".
    Returns:
        The codec's name, None where line 1 is not shown or has no such mark.
    """
    for line in file.lines:
        if line.number_on(side) == 1:
            if line.content.startswith(b"\xff\xfe"):
                return "utf-16-le"
            return "utf-16-be" if line.content.startswith(b"\xfe\xff") else None
    return None


def line_text(content: bytes, utf16: Utf16 | None = None) -> str:
    """Decode one line: UTF-16 where the file says so, else UTF-8, else Latin-1. Never fails.

    Args:
        content: the line without its line end.
        utf16: from `utf16_of`; a line was cut at the byte 0x0a, so half a line feed may hang on either end.
    Returns:
        Text, white space as it was.
    """
    if utf16:
        if len(content) % 2:
            content = content[1:] if utf16 == "utf-16-le" else content[:-1]
        return content.decode(utf16, errors="replace")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def texts_of(file: FilePatch) -> dict[Side, Utf16 | None]:
    """Returns: side -> codec for `line_text`; both sides, because a change may be the change of encoding."""
    return {"old": utf16_of(file, "old"), "new": utf16_of(file, "new")}


def text_of(line: Line, codecs: dict[Side, Utf16 | None]) -> str:
    """Returns: the text of a line, by the codec of the side it is shown on."""
    return line_text(line.content, codecs[line.side])


def encoding_words(file: FilePatch) -> str:
    """Say how the file was read.

    Returns:
        "UTF-8", "UTF-16 little endian", "Latin-1", "mixed: …", and "… -> …" where the two sides differ.
    """
    names = []
    for side in ("old", "new"):
        lines = [line for line in file.lines if line.number_on(side) is not None]
        if lines:
            names.append(_side_encoding(lines, utf16_of(file, side)))
    return " -> ".join(dict.fromkeys(names)) or "UTF-8"


def _side_encoding(lines: list[Line], utf16: Utf16 | None) -> str:
    if utf16:
        return "UTF-16 little endian" if utf16 == "utf-16-le" else "UTF-16 big endian"
    wide = [line.content for line in lines if not line.content.isascii()]
    foreign = sum(not _is_utf8(content) for content in wide)
    if not foreign:
        return "UTF-8"
    if foreign == len(wide):
        return "Latin-1"
    return f"mixed: {foreign} of {len(wide)} lines beyond ASCII are not UTF-8, shown as Latin-1"


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def shown(character: str) -> str:
    """Returns: a visible stand-in for one hidden character: ⟨CR⟩ for a control character, else its code, ⟨U+202E⟩."""
    code = ord(character)
    if code < len(CONTROLS):
        return f"⟨{CONTROLS[code]}⟩"
    return "⟨DEL⟩" if code == DELETE else f"⟨U+{code:04X}⟩"


def named(character: str) -> str:
    """Returns: what a hidden character is, for a title: its code point and Unicode name."""
    code = ord(character)
    return f"U+{code:04X} {unicodedata.name(character, 'control character')}"


def hides(content: bytes, utf16: Utf16 | None = None) -> bool:
    """Whether a line has a hidden character. ASCII, which most lines are, is not decoded: a line can have 5 MB."""
    if content.isascii() and not utf16:
        return len(content.translate(None, HIDDEN_ASCII)) != len(content)
    return HIDDEN.search(line_text(content, utf16)) is not None


def visible(text: str) -> str:
    """Returns: the text with every hidden character replaced by its stand-in, for places that take no markup."""
    return HIDDEN.sub(lambda found: shown(found.group()), text)
