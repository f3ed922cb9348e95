"""Tools that look at the repository: at its base commit, or with a candidate's patch applied."""

from pydantic import Field

from grading.grader.tool_texts import Piece, bytes_lines, cut_line, listed
from grading.grader.tools.desk import Arguments, Desk, Refused, Tool, at_least, page
from grading.grader.trees import File
from grading.review.diffs.text import visible

FILE_BYTES = 4 * 2**20  # of one file; what is behind it is not read
FILES_AT_ONCE = 300
LINES_AT_ONCE = 100
TREE = Field(None, description="a candidate's letter: the tree with its patch applied; absent: the base commit")
START = Field(1, description="first line of this listing, from 1, to read on")


class ListFiles(Arguments):
    under: str = Field("", description="a folder; absent: the whole tree")
    candidate: str | None = TREE
    start: int = START


def list_files(desk: Desk, asked: ListFiles) -> str:
    letter, start = tree_of(desk, asked.candidate), at_least("start", asked.start, 1)
    found = desk.ws.list_files(asked.under, letter, start=start - 1, limit=FILES_AT_ONCE)
    if not found.items:
        words = f"{found.total} files below {asked.under[:200]!r} in {named(letter)}"
        raise Refused(f"There are {words}, none from the {start}th on.")
    piece = listed(_file_words(file) for file in found.items)
    last = start + piece.body.count("\n")
    cut = f"Files {start}-{last} of {found.total}" + (f"; go on with start={last + 1}." if last < found.total else ".")
    return desk.answer(f"files of {named(letter)}", Piece(piece.body, cut))


def _file_words(file: File) -> str:
    kind = "" if file.kind == "file" else f", {file.kind}"
    return f"{visible(file.path)} ({file.size} bytes{kind})"


class ReadFile(Arguments):
    path: str = Field(description="from the root of the repository")
    candidate: str | None = TREE
    start: int = Field(1, description="first line, from 1")
    offset: int = Field(0, description="characters to skip in each line, to read on in a long one")


def read_file(desk: Desk, asked: ReadFile) -> str:
    letter, offset = tree_of(desk, asked.candidate), at_least("offset", asked.offset, 0)
    data = desk.ws.read_file(asked.path, letter, limit=FILE_BYTES)
    if b"\0" in data[:8_000]:
        return f"The file is binary, {data.total} bytes; it is not shown."
    if not data:
        return "The file is empty."
    lines = (f"{n:>6} | {cut_line(line, offset)}" for n, line in enumerate(bytes_lines(bytes(data)), 1))
    piece = page(lines, asked.start)
    behind = f" Only the first {len(data)} of {data.total} bytes can be read." if data.total > len(data) else ""
    return desk.answer(f"file {asked.path} of {named(letter)}", Piece(piece.body, piece.cut + behind))


class SearchFiles(Arguments):
    words: str = Field(description="literal text, or with is_regex an extended regular expression, of one line")
    under: str = Field("", description="only in this folder or file")
    candidate: str | None = TREE
    is_regex: bool = False
    ignore_case: bool = False
    start: int = START


def search_files(desk: Desk, asked: SearchFiles) -> str:
    letter, start = tree_of(desk, asked.candidate), at_least("start", asked.start, 1)
    found = desk.ws.search_files(
        asked.words, letter, start=start - 1, limit=LINES_AT_ONCE, under=asked.under, is_regex=asked.is_regex,
        ignore_case=asked.ignore_case,
    )  # fmt: skip
    if not found.items:
        return f"{'No line' if start == 1 else f'No line from the {start}th on'} in {named(letter)} has that."
    piece = listed(f"{visible(hit.path)}:{hit.line}: {cut_line(hit.text, wide=200)}" for hit in found.items)
    last = start + piece.body.count("\n")
    more = f" go on with start={last + 1}." if last < found.total else ""
    said = f"Lines {start}-{last} of {found.total}{' or more' if found.is_cut else ''};{more or ' that is all.'}"
    return desk.answer(f"lines found in {named(letter)}", Piece(piece.body, said))


def tree_of(desk: Desk, candidate: str | None) -> str | None:
    """Returns: the letter of a tree, None for the base. Raises Refused where there is no such tree."""
    letter = None if candidate is None or candidate.strip().lower() in ("", "base") else desk.shown(candidate).letter
    if why := desk.ws.why_no_tree(letter):
        raise Refused(f"Nobody can look at {named(letter)}: {why}")
    return letter


def named(letter: str | None) -> str:
    """Returns: a tree in words."""
    return "the base" if letter is None else f"the tree of candidate {letter}"


NEEDS = ("repository",)
AT = "at the base commit or with a candidate's patch applied"
TOOLS = (
    Tool("list_files", f"Files of the repository, {AT}.", ListFiles, list_files, NEEDS),
    Tool("read_file", f"A file, {AT}. Its line numbers cite nothing: those of a patch do.", ReadFile, read_file, NEEDS),
    Tool("search_files", f"Lines of the repository that hold a text, {AT}.", SearchFiles, search_files, NEEDS),
)
