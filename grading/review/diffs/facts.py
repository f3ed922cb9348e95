"""What a file's header says in plain words: rename, mode, binary, submodule, line ends, encoding. Core."""

from grading.review.diffs.patch import FilePatch, Line
from grading.review.diffs.text import encoding_words, hides, texts_of

SHORT_ID = 10
LARGE_LINES = 2_000
LARGE_BYTES = 200_000
EXECUTABLE = "100755"


def header_facts(file: FilePatch) -> tuple[str, ...]:
    """Say what happened to a file beside its lines.

    Args:
        file: parsed.
    Returns:
        Short phrases for people, most important first; () for a plain change of a UTF-8 text.
    """
    facts = [*_status(file), *_mode(file), *_special(file), *file.notes]
    if file.kind == "text":
        facts += [*_newline(file), *_line_ends(file), *_reading(file)]
    return tuple(facts)


def closed_words(file: FilePatch) -> str | None:
    """Say why a file stays closed until someone opens it.

    Returns:
        "2,408 changed lines, 139 kB", or None for a file of ordinary size.
    """
    if file.line_count <= LARGE_LINES and file.size_bytes <= LARGE_BYTES:
        return None
    return f"{file.added + file.removed:,} changed lines, {size_words(file.size_bytes)}"


def size_words(size_bytes: int) -> str:
    """Returns: a size for people: "812 bytes", "139 kB", "5.2 MB"."""
    if size_bytes < 1_000:
        return f"{size_bytes} bytes"
    return f"{size_bytes / 1_000:,.0f} kB" if size_bytes < 1_000_000 else f"{size_bytes / 1_000_000:,.1f} MB"


def _status(file: FilePatch) -> list[str]:
    alike = f", {file.similarity} % alike" if file.similarity is not None and file.similarity < 100 else ""
    is_empty = file.kind == "text" and not file.hunks and not file.notes and not file.problems
    if file.status == "added":
        return ["new empty file" if is_empty else "new file"]
    if file.status == "deleted":
        return ["empty file deleted" if is_empty else "file deleted"]
    if file.status in ("renamed", "copied"):
        return [f"{file.status} from {file.old_path}{alike}"]
    return []


def _mode(file: FilePatch) -> list[str]:
    old, new = file.old_mode, file.new_mode
    if file.status == "added":
        return ["executable"] if new == EXECUTABLE else []
    if not old or not new or old == new:
        return []
    meaning = " (now executable)" if new == EXECUTABLE else " (no longer executable)" if old == EXECUTABLE else ""
    return [f"mode {old} → {new}{meaning}" + (", no other change" if file.status == "mode" else "")]


def _special(file: FilePatch) -> list[str]:
    if file.kind not in ("submodule", "symlink"):
        return []
    texts = {line.kind: line.content.decode("utf-8", errors="replace") for line in file.lines}
    old, new = texts.get("del"), texts.get("add")
    if file.kind == "submodule":
        old, new = (text and text.removeprefix("Subproject commit ")[:SHORT_ID] for text in (old, new))
        return [f"submodule {' → '.join(text for text in (old, new) if text)}".rstrip()]
    return [f"symbolic link to {' → '.join(text for text in (old, new) if text) or 'the same place'}"]


def _newline(file: FilePatch) -> list[str]:
    old = any(line.eol == "" and line.old_no is not None for line in file.lines)
    new = any(line.eol == "" and line.new_no is not None for line in file.lines)
    if old and new:
        return ["no newline at the end, before and after"]
    if new:
        return ["no newline at the end"]
    return (
        ["newline added at the end"] if old and file.status != "deleted" else ["no newline at the end"] if old else []
    )


def _line_ends(file: FilePatch) -> list[str]:
    old = _ends([line for line in file.lines if line.old_no is not None])
    new = _ends([line for line in file.lines if line.new_no is not None])
    if old and new and old != new:
        return [f"line ends {old} → {new}"]
    return [f"line ends {new or old}"] if (new or old or "LF") != "LF" else []


def _ends(lines: list[Line]) -> str:
    ends = {line.eol for line in lines if line.eol}
    return "mixed LF and CRLF" if len(ends) > 1 else "CRLF" if "\r\n" in ends else "LF" if ends else ""


def _reading(file: FilePatch) -> list[str]:
    facts = []
    if (words := encoding_words(file)) != "UTF-8":
        facts.append(f"encoding {words}")
    codecs = texts_of(file)
    hidden = sum(hides(line.content, codecs[line.side]) for line in file.lines if line.is_changed)
    if hidden:
        facts.append(f"{hidden} changed line{'s' * (hidden > 1)} with invisible characters, shown by their code")
    return facts
