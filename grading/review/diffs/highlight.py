"""Syntax classes for the lines of a hunk: four inks, `tok-k` `tok-s` `tok-c` `tok-n`. Core.

Lexers come from a short list by file name: a candidate's path must not pick any of pygments' 500.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import PurePosixPath

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Operator, String, _TokenType

from grading.review.diffs.python_inks import python_tokens

Tokens = list[tuple[str, str]]  # (class or "", text)

MAX_HUNK_CHARS = 60_000
MAX_UNTIMED_CHARS = 4_000  # without a time limit: pygments' patterns go quadratic on hostile text
MAX_LINE_CHARS = 1_000
TOKENS_PER_LOOK = 32
SUFFIXES = {
    **dict.fromkeys((".py", ".pyi", ".pyx", ".pxd"), "python"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "javascript"),
    **dict.fromkeys((".ts", ".tsx", ".mts"), "typescript"),
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp"), "cpp"),
    **dict.fromkeys((".sh", ".bash", ".zsh"), "bash"),
    **dict.fromkeys((".yml", ".yaml"), "yaml"),
    **dict.fromkeys((".ini", ".cfg", ".properties"), "ini"),
    **dict.fromkeys((".html", ".htm"), "html"),
    **dict.fromkeys((".xml", ".svg"), "xml"),
    ".java": "java",
    ".kt": "kotlin",
    ".scala": "scala",
    ".go": "go",
    ".rs": "rust",
    ".rb": "ruby",
    ".php": "php",
    ".cs": "csharp",
    ".swift": "swift",
    ".lua": "lua",
    ".r": "r",
    ".jl": "julia",
    ".pl": "perl",
    ".sql": "sql",
    ".css": "css",
    ".json": "json",
    ".toml": "toml",
    ".rst": "rst",
    ".md": "markdown",
}
NAMES = {"Makefile": "make", "Dockerfile": "docker"}
PYTHON = "python"
QUOTES = ('"""', "'''")
FAMILIES = ((Comment, "tok-c"), (String, "tok-s"), (Keyword, "tok-k"), (Operator.Word, "tok-k"))
NAMED = (Name.Function, Name.Class, Name.Builtin, Name.Decorator, Name.Tag)


def language_of(path: str) -> str | None:
    """Returns: the lexer's name for a file, None where it is shown plain."""
    name = PurePosixPath(path).name
    return NAMES.get(name) or SUFFIXES.get(PurePosixPath(name).suffix.lower())


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


@lru_cache(maxsize=2048)
def _class(token: _TokenType) -> str:
    for family, name in FAMILIES:
        if token in family:
            return name
    return "tok-n" if any(token in family for family in NAMED) else ""


def plain(lines: list[str]) -> list[Tokens]:
    return [[("", line)] for line in lines]


def highlight(path: str, lines: list[str], is_late: Callable[[], bool] | None = None) -> list[Tokens]:
    """Colour consecutive lines of one side of a hunk.

    Args:
        path: chooses the language.
        lines: texts without line ends; a bare CR in one is content.
        is_late: asked now and then; colouring stops where it says yes. None: only small hunks are coloured.
    Returns:
        Per line its tokens; joined they are the line. Plain where the language is unknown, the hunk or a line is
        too long, or time is up.
    """
    language = language_of(path)
    limit = MAX_UNTIMED_CHARS if is_late is None else MAX_HUNK_CHARS
    if not language or sum(map(len, lines)) > limit or (is_late and is_late()):
        return plain(lines)
    giants = {n: line for n, line in enumerate(lines) if len(line) > MAX_LINE_CHARS}
    short = ["" if n in giants else line for n, line in enumerate(lines)]
    done = _lexed(language, short, is_late)
    if not _is_whole(done, short):
        return plain(lines)
    for n, line in giants.items():
        done[n] = [("", line)]
    return done


def _lexed(language: str, lines: list[str], is_late: Callable[[], bool] | None) -> list[Tokens]:
    prose = _prose_lines(lines) if language == PYTHON else 0
    coloured: list[Tokens] = [[]]
    source = "\n".join(lines[prose:])
    tokens = python_tokens(source) if language == PYTHON else _others(language, source)
    for count, (name, text) in enumerate(tokens):
        if is_late and count % TOKENS_PER_LOOK == 0 and is_late():
            return []
        for n, piece in enumerate(text.split("\n")):
            if n:
                coloured.append([])
            if piece:
                coloured[-1].append((name, piece))
    return [[("tok-s", line)] for line in lines[:prose]] + coloured[: len(lines) - prose]


def _others(language: str, source: str) -> Iterator[tuple[str, str]]:
    """Tokens by pygments, which takes a CR for a line end: it must not see one."""
    for token, text in _lexer(language).get_tokens(source.replace("\r", "\x00")):
        yield _class(token), text.replace("\x00", "\r")


def _is_whole(done: list[Tokens], lines: list[str]) -> bool:
    """A lexer that drops or changes a character must not change what a reader sees."""
    return len(done) == len(lines) and all(
        "".join(text for _, text in tokens) == line for tokens, line in zip(done, lines, strict=True)
    )


def _prose_lines(lines: list[str]) -> int:
    """How many first lines lie inside a docstring that began above the hunk; its closing line is among them."""
    marked = [n for n, line in enumerate(lines) if any(line.count(quote) % 2 for quote in QUOTES)]
    if len(marked) % 2 == 0:
        return 0
    first = marked[0]
    above = next((line.rstrip() for line in reversed(lines[:first]) if line.strip()), "")
    if lines[first].strip() not in QUOTES or not above or above.endswith((":", "(", ",", "=")):
        return 0
    return first + 1
