"""File trees as dictionaries, their digests, and git-style unified diffs between them."""

import difflib
import hashlib
import io
import tarfile

Tree = dict[str, str]


def digest(tree: Tree) -> str:
    """Return the sha256 of a tree's paths and contents, independent of their order.

    Args:
        tree: path relative to the root -> text.
    Returns:
        64 hex digits.
    """
    parts = hashlib.sha256()
    for path in sorted(tree):
        for part in (path, tree[path]):
            raw = part.encode()
            parts.update(len(raw).to_bytes(8, "big") + raw)
    return parts.hexdigest()


def diff(old: Tree, new: Tree) -> bytes:
    """Return the patch that turns one tree into another, in the format `git apply` reads.

    Args:
        old: the tree before, path -> text.
        new: the tree after, path -> text.
    Returns:
        UTF-8 bytes; empty if the trees are equal. Files are in the order of their paths.
    """
    patches = [_diff_file(path, old.get(path), new.get(path)) for path in sorted(old.keys() | new.keys())]
    return "".join(patches).encode()


def archive(tree: Tree) -> bytes:
    """Return a tar archive of a tree that is equal for equal trees (no clock, no owner).

    Args:
        tree: path -> text.
    Returns:
        bytes of an uncompressed tar file.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted(tree):
            raw = tree[path].encode()
            entry = tarfile.TarInfo(path)
            entry.size = len(raw)
            tar.addfile(entry, io.BytesIO(raw))
    return buffer.getvalue()


def blob_id(text: str) -> str:
    """Return the id git gives to a file with this text (seven digits, as in an index line)."""
    raw = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()[:7]


def _diff_file(path: str, old: str | None, new: str | None) -> str:
    if old == new:
        return ""
    head = [f"diff --git a/{path} b/{path}\n"]
    if old is None:
        head += ["new file mode 100644\n", f"index 0000000..{blob_id(new)}\n"]
    elif new is None:
        head += ["deleted file mode 100644\n", f"index {blob_id(old)}..0000000\n"]
    else:
        head += [f"index {blob_id(old)}..{blob_id(new)} 100644\n"]
    hunks = difflib.unified_diff(
        _lines(old or ""),
        _lines(new or ""),
        fromfile="/dev/null" if old is None else f"a/{path}",
        tofile="/dev/null" if new is None else f"b/{path}",
    )
    return "".join(head + [_closed(line) for line in hunks])


def _lines(text: str) -> list[str]:
    # str.splitlines also cuts at form feeds and carriage returns, which git does not.
    return io.StringIO(text, newline="\n").readlines()


def _closed(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
