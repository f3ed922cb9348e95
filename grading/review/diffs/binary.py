"""The `GIT binary patch` block: its sizes are shown, its content is not. Core."""

import re

CHUNK = re.compile(rb"(literal|delta) (\d+)$")
DATA = re.compile(rb"[A-Za-z](?:[0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{5})+$")
DIFFER = re.compile(rb"(?:Binary )?[Ff]iles (.+) and (.+) differ$")


def skip_binary(lines: list[bytes], at: int) -> tuple[int, list[str], str | None]:
    """Step over a binary block.

    Args:
        lines: the patch's lines; a CR at their ends is no part of the data.
        at: index of the line after `GIT binary patch`.
    Returns:
        (index after the block, words for each direction such as "7723 bytes", what is broken or None).
    """
    sizes: list[str] = []
    while at < len(lines) and (found := CHUNK.match(lines[at].rstrip(b"\r"))):
        sizes.append(f"{int(found[2])} bytes" if found[1] == b"literal" else f"delta of {int(found[2])} bytes")
        at += 1
        while at < len(lines) and lines[at].rstrip(b"\r"):
            if not DATA.match(lines[at].rstrip(b"\r")):
                return at, sizes, f"line {at + 1} is no binary data"
            at += 1
        at += 1
    return min(at, len(lines)), sizes, None if sizes else f"line {at + 1} has neither 'literal' nor 'delta'"


def binary_note(sizes: list[str]) -> str:
    """Args: sizes from `skip_binary`, forward direction first. Returns: the block in words."""
    if not sizes:
        return "binary"
    after, before = sizes[0], sizes[1] if len(sizes) > 1 else "0 bytes"
    if after.startswith("delta"):
        return f"binary, changed by a {after}"
    if before == "0 bytes":
        return f"binary, {after}"
    return f"binary, {before} before" if after == "0 bytes" else f"binary, {before} before, {after} after"
