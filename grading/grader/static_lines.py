"""What sort of change each line of a patch is: code, comment, blank or spacing only. Core.

Unsure means code: a fix taken for a comment would cost its author more than a comment taken for code.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import PurePosixPath
from typing import Literal

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, String
from rapidfuzz.distance import Indel

from grading.review.diffs.patch import FilePatch, Hunk, Line, Side
from grading.review.diffs.text import line_text

Sort = Literal["code", "comment", "blank", "spacing"]

# A closed list: the name of a file is the candidate's choice, and some of pygments' lexers are slow on odd text.
_LEXERS = {
    "python": ".py .pyi .pyx",
    "java": ".java",
    "kotlin": ".kt .kts",
    "scala": ".scala",
    "javascript": ".js .mjs .cjs .jsx",
    "typescript": ".ts .tsx",
    "c": ".c .h",
    "cpp": ".cc .cpp .cxx .hpp .hh",
    "csharp": ".cs",
    "go": ".go",
    "rust": ".rs",
    "ruby": ".rb",
    "php": ".php",
    "swift": ".swift",
    "bash": ".sh .bash",
    "yaml": ".yml .yaml",
    "toml": ".toml",
    "ini": ".ini .cfg",
    "sql": ".sql",
    "css": ".css",
}
_LEXER_OF = {suffix: name for name, suffixes in _LEXERS.items() for suffix in suffixes.split()}
_INDENTED = frozenset({".py", ".pyi", ".pyx", ".yml", ".yaml", ".mk", ".coffee", ".haml", ".pug", ".nim", ".hs", ".fs"})
_MARKS = re.compile(rb"#|//|/\*|\*/|\"\"\"|'''|--|;|^\s*\*")
_DIRECTIVE = re.compile(r"^\s*(//go:|//\s*\+build|#\s*(cython|distutils):|#.*coding[:=]|#\s*frozen_string_literal)")
_COMMENTS = (Comment.Single, Comment.Multiline, Comment.Hashbang)
LINE_CHARS = 1_000  # longer lines are data or generated: not lexed
PIECE_CHARS = 10_000  # lexed at once: an unclosed comment makes a lexer look to the end from each of its openings
PATCH_CHARS = 100_000  # lexed of one patch
PAIRS = 25_000_000  # line pairs of one block compared in full


class Budget:
    """How many characters of one patch may still be lexed; `is_spent` once something was left out."""

    def __init__(self, chars: int = PATCH_CHARS):
        self.chars = chars
        self.is_spent = False

    def take(self, chars: int) -> bool:
        """Returns: whether that many may be lexed; they are booked then."""
        if chars > self.chars:
            self.is_spent = True
            return False
        self.chars -= chars
        return True


def sorted_lines(file: FilePatch, budget: Budget) -> Iterator[tuple[Line, Sort]]:
    """Say of each changed line of a file what sort of change it is.

    Args:
        file: one file of a patch.
        budget: of the whole patch; comments are not recognised once it is spent.
    Returns:
        (line, sort) of the changed lines in their order. Spacing: the same line stands on the other side of the
        change, up to white space that means nothing in this language.
    """
    for hunk in file.hunks:
        changed = [line for line in hunk.lines if line.is_changed]
        spacing = _spacing(hunk, file)
        comments = (
            _comments(hunk, file, budget) if any(_MARKS.search(line.content[:200]) for line in changed) else set()
        )
        for line in changed:
            if id(line) in spacing:
                yield line, "spacing"
            elif not line.content.strip():
                yield line, "blank"
            else:
                yield line, "comment" if id(line) in comments else "code"


def _spacing(hunk: Hunk, file: FilePatch) -> set[int]:
    """Identities of lines whose block says the same, in the same order, on both sides."""
    is_indented = PurePosixPath(file.path).suffix.lower() in _INDENTED or PurePosixPath(file.path).name == "Makefile"
    found: set[int] = set()
    for is_changed, run in groupby(hunk.lines, key=lambda line: line.is_changed):
        if not is_changed:
            continue
        block = list(run)
        old, new = ([line for line in block if line.kind == kind and line.content.strip()] for kind in ("del", "add"))
        keys = [
            [line.content.rstrip() if is_indented else line.content.strip() for line in side] for side in (old, new)
        ]
        for i, j in _same(*keys):
            found |= {id(old[i]), id(new[j])}
    return found


def _same(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Pairs of equal lines in order; of a very large block only those before and after its differences."""
    if len(old) * len(new) <= PAIRS:
        for step in Indel.opcodes(old, new):
            if step.tag == "equal":
                yield from zip(range(step.src_start, step.src_end), range(step.dest_start, step.dest_end), strict=True)
        return
    shorter = min(len(old), len(new))
    head = next((k for k in range(shorter) if old[k] != new[k]), shorter)
    tail = next((k for k in range(shorter - head) if old[-1 - k] != new[-1 - k]), shorter - head)
    yield from ((k, k) for k in range(head))
    yield from ((len(old) - 1 - k, len(new) - 1 - k) for k in range(tail))


def _comments(hunk: Hunk, file: FilePatch, budget: Budget) -> set[int]:
    """Identities of changed lines that are comment or docstring and nothing else."""
    lexer = _lexer(PurePosixPath(file.path).suffix.lower())
    if lexer is None:
        return set()
    sides: tuple[Side, Side] = ("old", "new")
    found: set[int] = set()
    for side in sides:
        lines = [line for line in hunk.lines if line.kind != ("add" if side == "old" else "del")]
        if not any(line.is_changed for line in lines) or any(len(line.content) > LINE_CHARS for line in lines):
            continue
        texts = [line_text(line.content).replace("\r", " ") + "\n" for line in lines]
        for start, stop in _pieces(texts):
            if not budget.take(sum(map(len, texts[start:stop]))):
                break
            at_top = lines[start].number_on(side) == 1
            numbers = _comment_lines(lexer, texts[start:stop], at_top=at_top)
            found |= {id(lines[start + n]) for n in numbers if lines[start + n].is_changed}
    return found


def _pieces(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Ranges of lines of about `PIECE_CHARS` characters each."""
    start = size = 0
    for n, text in enumerate(texts):
        size += len(text)
        if size >= PIECE_CHARS or n + 1 == len(texts):
            yield start, n + 1
            start, size = n + 1, 0


def _comment_lines(lexer: Lexer, texts: Sequence[str], *, at_top: bool) -> set[int]:
    """Numbers of the lines that hold a comment and no code."""
    code: set[int] = set()
    comment: set[int] = set()
    for first, kind, value in _tokens(lexer, texts):
        is_comment = kind in _COMMENTS or (kind in String.Doc and _is_docstring(texts, first, value, at_top=at_top))
        for n, piece in enumerate(value.split("\n"), first):
            if piece.strip():
                (comment if is_comment else code).add(n)
    return {n for n in comment - code if not _DIRECTIVE.match(texts[n])}


def _tokens(lexer: Lexer, texts: Sequence[str]) -> Iterator[tuple[int, object, str]]:
    """(line, kind, text) of each token; the pieces of one docstring joined."""
    line = 0
    for is_doc, run in groupby(lexer.get_tokens_unprocessed("".join(texts)), key=lambda token: token[1] in String.Doc):
        for kind, value in [(String.Doc, "".join(t[2] for t in run))] if is_doc else [(t[1], t[2]) for t in run]:
            yield line, kind, value
            line += value.count("\n")


def _is_docstring(texts: Sequence[str], first: int, value: str, *, at_top: bool) -> bool:
    """Whether a string is closed and opens a module or follows a head: else a hunk may have begun inside of it."""
    quote = value.lstrip("rRuUbB")[:3]
    if quote not in ('"""', "'''") or len(value.strip()) < 6 or not value.rstrip().endswith(quote):
        return False
    before = next((text.strip() for text in reversed(texts[:first]) if text.strip()), None)
    return before.endswith(":") if before is not None else at_top


@lru_cache(maxsize=64)
def _lexer(suffix: str) -> Lexer | None:
    name = _LEXER_OF.get(suffix)
    return get_lexer_by_name(name, stripnl=False, ensurenl=False) if name else None
