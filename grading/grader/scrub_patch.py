"""A patch without what betrays its maker: messages as prose, added lines as code, the names of new files. Core.

Lines stay lines, so that line numbers of the scrubbed patch are those of the raw one.
"""

import re
from collections.abc import Iterator
from itertools import groupby

from grading.grader.scrub import Scrub

_HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_HEADER = re.compile(
    r"^(?:diff |--- |\+\+\+ |rename (?:from|to) |copy (?:from|to) |Binary files |new file mode|deleted file mode"
    r"|index |similarity |dissimilarity |old mode|new mode|@@|GIT binary|literal \d|delta \d)"
)
_MADE = re.compile(r"^(?:new file mode|rename to|copy to|--- /dev/null)")
_NEW_PATH = re.compile(r"^\+\+\+ \"?(?:b/)?(.*?)\"?(?:\t.*)?\r?$")


def scrub_patch(patch: bytes, scrub: Scrub) -> bytes:
    """Scrub a patch.

    Args:
        patch: its raw bytes, in any encoding.
        scrub: the group's rules.
    Returns:
        As many lines as before. Context and removed lines are the repository's and stay as they are.
    """
    lines = patch.decode("utf-8", "surrogateescape").split("\n")
    return "\n".join(_lines(lines, scrub)).encode("utf-8", "surrogateescape")


def _lines(lines: list[str], scrub: Scrub) -> Iterator[str]:
    """Lines of one kind in a row are scrubbed at once: no rule reaches over a line, and a call a line would be slow."""
    used: dict[str, str] = {}
    for (kind, path), run in groupby(_kinds(lines), key=lambda one: one[0]):
        here = [line for _, line in run]
        if kind == "added":
            yield from ("+" + line for line in scrub.code("\n".join(line[1:] for line in here), path).text.split("\n"))
        elif kind == "prose":
            yield from scrub.words("\n".join(here)).split("\n")
        elif kind == "made":
            yield from (scrub.file_name(line, used) for line in here)
        else:
            yield from here


def _kinds(lines: list[str]) -> Iterator[tuple[tuple[str, str], str]]:
    """Give each line with what it is: "added" (and in which file), "made" (a header of a new file), "prose", "kept"."""
    made = _made_files(lines)
    path, is_made, old, new = "", False, 0, 0
    for number, line in enumerate(lines):
        if old > 0 or new > 0:
            sign = line[:1]
            old, new = old - (sign in ("", " ", "-", "\r")), new - (sign in ("", " ", "+", "\r"))
            yield ("added", path) if sign == "+" else ("kept", ""), line
        elif hunk := _HUNK.match(line):
            old, new = (int(count) if count is not None else 1 for count in hunk.groups())
            yield ("kept", ""), line
        elif _HEADER.match(line):
            is_made = number in made if line.startswith(("diff ", "--- ")) else is_made
            path = found[1] if (found := _NEW_PATH.match(line)) else path
            yield ("made" if is_made else "kept", ""), line
        else:
            yield ("prose", ""), line


def _made_files(lines: list[str]) -> set[int]:
    """Numbers of the lines where the headers of a file begin that the candidate made or renamed."""
    found, start, inside = set(), [], 0
    for number, line in enumerate(lines):
        if line.startswith("diff ") or (line.startswith("--- ") and not inside):
            start, inside = [number], line.startswith("diff ")
        elif line.startswith("--- "):
            start.append(number)
        if line.startswith("@@"):
            inside = 0
        elif start and _MADE.match(line):
            found.update(start)
            found.update(n for n in range(start[0], min(start[0] + 8, len(lines))) if lines[n].startswith("--- "))
    return found
