"""File headers of a patch: names (quoted, octal, with spaces), modes, renames. Core.

Follows git's own reader; where git only guesses (no `a/` prefix, svn's labels) the written name is kept.
"""

import re
from dataclasses import dataclass

QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"')
ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
PREFIX = re.compile(rb"[abciow]/")  # a/ b/, and those of diff.mnemonicPrefix
LABEL = re.compile(rb"\s*\((?:revision \d+|working copy|nonexistent|arbeitskopie)\)$", re.IGNORECASE)
STAMP = re.compile(rb"\s+(?:\d{4}-\d\d-\d\d|\d\d? \w{3} \d{4}|\w{3} \w{3} [ \d]\d) [\d:.]+.*$")
ABSENT = re.compile(rb"/dev/null(?:\s|$)|\(nonexistent\)|\s1970-01-01 00:00:00(?:\.0+)? [+-]0000")
MODE_FIELDS = {b"old mode ": "old_mode", b"new mode ": "new_mode"}
SPLIT_FIELDS = {
    b"rename from ": ("renamed", "old_name"),
    b"rename to ": ("renamed", "new_name"),
    b"rename old ": ("renamed", "old_name"),
    b"rename new ": ("renamed", "new_name"),
    b"copy from ": ("copied", "old_name"),
    b"copy to ": ("copied", "new_name"),
}
INDEX = re.compile(rb"index (?:([0-9a-f,]+)\.\.([0-9a-f]+)(?: (\d{6}))?$)?")
EMPTY_BLOBS = (
    b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    b"473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)
MERGE_MODE = re.compile(rb"mode ([\d,]+)\.\.(\d{6})$")
PERCENT = re.compile(rb"(?:dis)?similarity index (\d+)%$")


@dataclass
class Header:
    """What a file's header has said so far; names are raw bytes, unquoted, prefix still on for `listed` ones."""

    start: int
    is_git: bool = False
    parents: int = 1
    status: str | None = None
    old_name: bytes | None = None  # without prefix: rename and copy lines
    new_name: bytes | None = None
    listed: tuple[bytes, bytes] | None = None  # from the `diff --git` line
    old_label: bytes | None = None  # from `---`
    new_label: bytes | None = None  # from `+++`
    old_mode: str | None = None
    new_mode: str | None = None
    old_id: bytes | None = None
    new_id: bytes | None = None
    similarity: int | None = None
    lines: int = 0

    @property
    def says_change(self) -> bool:
        """Whether the header alone changes something: a name, a mode, a file that comes or goes."""
        return self.status is not None or self.old_mode != self.new_mode

    @property
    def hides_content(self) -> bool:
        """Whether a file comes or goes that is not empty by its blob's name."""
        blob = {"added": self.new_id, "deleted": self.old_id}.get(self.status or "")
        return bool(blob) and not any(empty.startswith(blob) for empty in EMPTY_BLOBS)


def unquote(raw: bytes) -> bytes:
    """Undo git's C-style quoting of a path.

    Args:
        raw: a name as it stands in a header, quoted or not.
    Returns:
        The path's bytes: `"tab\\there"` and `"\\346\\216"` decoded, an unquoted name as it is.
    """
    found = QUOTED.fullmatch(raw)
    return ESCAPE.sub(_escape, found[1]) if found else raw


def _escape(found: re.Match) -> bytes:
    code = found[1]
    if len(code) == 3:
        return bytes([int(code, 8)])
    return ESCAPES.get(code, code)


def path_text(raw: bytes) -> str:
    """Returns: a path as text, UTF-8 else Latin-1."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def listed_names(rest: bytes) -> tuple[bytes, bytes] | None:
    """Split what follows `diff --git `; blanks in names are not escaped, so both names must agree as git demands.

    Args:
        rest: `a/old b/new`, each perhaps quoted.
    Returns:
        (old, new), prefixes on; None where no split gives one name twice (a rename says its names in lines of its own).
    """
    if rest.startswith(b'"'):
        found = QUOTED.match(rest)
        return (unquote(found[0]), unquote(rest[found.end() + 1 :])) if found and rest[found.end() :] else None
    if rest.endswith(b'"'):
        cut = rest.find(b' "')
        return (rest[:cut], unquote(rest[cut + 1 :])) if cut > 0 else None
    cut = rest.find(b" ")
    while cut > 0:
        old, new = rest[:cut], rest[cut + 1 :]
        if old == new or (PREFIX.match(old) and PREFIX.match(new) and old[2:] == new[2:]):
            return old, new
        cut = rest.find(b" ", cut + 1)
    old, _, new = rest.partition(b" ")
    return (old, new) if new and b" " not in new else None


def label_name(rest: bytes) -> bytes:
    """Returns: the name in a `---` or `+++` line: up to the tab, without date or revision label."""
    if rest.startswith(b'"') and (found := QUOTED.match(rest)):
        return unquote(found[0])
    return LABEL.sub(b"", STAMP.sub(b"", rest.split(b"\t")[0]))


def is_absent(label: bytes | None) -> bool:
    """Returns: whether a `---` or `+++` line says that the file does not exist on its side."""
    return label is not None and ABSENT.search(label) is not None


def without_prefix(name: bytes) -> bytes:
    return name[2:] if PREFIX.match(name) else name


def names(header: Header) -> tuple[bytes | None, bytes | None]:
    """Decide on the two names of a file.

    Args:
        header: read to its end.
    Returns:
        (old, new) without prefixes; None for a side without a name or without the file.
    """
    old = label_name(header.old_label) if header.old_label else None
    new = label_name(header.new_label) if header.new_label else None
    if header.listed:
        old, new = old or header.listed[0], new or header.listed[1]
    gone_old = header.status == "added" or is_absent(header.old_label)
    gone_new = header.status == "deleted" or is_absent(header.new_label)
    sides = [None if gone_old else old, None if gone_new else new]
    present = [name for name in sides if name]
    if all(PREFIX.match(name) for name in present) and header.parents == 1:
        sides = [name and without_prefix(name) for name in sides]
    elif header.parents > 1:
        sides = [name and (without_prefix(name) if header.old_label else name) for name in sides]
    return header.old_name or sides[0], header.new_name or sides[1]


def read_extended(header: Header, line: bytes) -> bool:
    """Take in one line of a git header (`old mode`, `rename from`, `index`, `---`, …); git minds no order.

    Args:
        header: changed in place.
        line: without its line end.
    Returns:
        False if the line is none; the header then ends before it.
    """
    for start, name in MODE_FIELDS.items():
        if line.startswith(start):
            setattr(header, name, mode_text(line[len(start) :]))
            return True
    for start, (status, name) in SPLIT_FIELDS.items():
        if line.startswith(start):
            header.status = status
            setattr(header, name, unquote(line[len(start) :]))
            return True
    if line.startswith(b"--- "):
        header.old_label = line[4:]
    elif line.startswith(b"+++ "):
        header.new_label = line[4:]
    elif line.startswith(b"new file mode "):
        header.status, header.new_mode = "added", mode_text(line[14:])
    elif line.startswith(b"deleted file mode "):
        header.status, header.old_mode = "deleted", mode_text(line[18:])
    elif found := INDEX.match(line):
        header.old_id, header.new_id = found[1], found[2]
        if found[3]:
            header.old_mode = header.new_mode = mode_text(found[3])
    elif found := MERGE_MODE.match(line):
        header.old_mode, header.new_mode = mode_text(found[1]), mode_text(found[2])
    elif found := PERCENT.match(line):
        header.similarity = int(found[1]) if line.startswith(b"sim") else 100 - int(found[1])
    else:
        return False
    return True


def mode_text(raw: bytes) -> str:
    """Returns: a mode as text; of a merge's several modes the first."""
    return path_text(raw.split(b",")[0].strip())
