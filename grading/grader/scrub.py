"""Take out what betrays who made a candidate, and find the raw words of a quote again. Core, table-driven.

Prose (messages, events, logs, comments) loses every name; code loses only addresses, folders of people, ids, trailers
and words in which an author names itself, so that it stays the code that it was. Lines stay lines.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grading.grader import scrub_names

MODEL, AGENT, PERSON, EMAIL, LINK, ID = "[model]", "[agent]", "[person]", "[email]", "[link]", "[id]"
USER, REPOSITORY = "[user]", "[repo]"
SHORTEST_ID = 6  # "7" or "a" as an id says nothing, and stands everywhere

_EMAIL = re.compile(
    r"(?<![\w.+-])(?!git@)[\w.+-]{1,64}@(?!(?:[\w-]{1,40}\.){0,2}(?:example\.|test\b|localhost|invalid\b))"
    r"[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}"
)  # an address at example.com is a fixture, nobody's
_HOME = re.compile(r"(?<![\w.])(?:/home/|/Users/|/usr/home/|[A-Za-z]:\\{1,2}Users\\{1,2})(?P<name>[\w.@+-]{1,64})")
_LINK = re.compile(
    r"(?:https?://)?(?<![\w.-])(?:[\w-]{1,40}\.){0,3}(?i:claude|anthropic|openai|chatgpt|deepseek|moonshot|qwen|mistral"
    r"|cursor|aider|x)\.(?:ai|com|dev|chat)\b(?:/[^\s)\]>\"']{0,200})?"
)
_TRAILER = re.compile(
    r"(?im)^[^\w\n]{0,12}(?:co-authored|signed-off|reviewed|acked|tested|reported|suggested|assisted|generated|created"
    r"|committed|authored|helped|co-developed)-by:[ \t]*(?P<name>[^\n]{1,300})"
)
_GENERATED = re.compile(
    r"(?im)^[^\w\n]{0,12}(?:🤖 {0,2}generated (?:with|by|using) (?P<name>[^\n]{1,300})"
    r"|generated (?:with|by|using) (?P<link>\[[^\n\]]{1,100}\]\([^\n)]{1,200}\)))"
)
_MAIL_HEAD = re.compile(
    r"(?m)^(?:From|Author|Committer|Commit|Sender|To|Cc):[ \t]*(?P<name>[^\n]{0,200}<[^\n>]{0,200}>)"
)
_AUTHOR = re.compile(
    r"(?m)^[^\w\n]{0,6}(?:@author|__author__[ \t]*=|[Aa]uthors?:|[Cc]ommitter:)[ \t]*(?P<name>[^\n]{1,200})"
)
# Where the tries stood: agents have folders of their own, and a suffix may name a model.
_ROOT = re.compile(
    r"(?<![\w./-])/(?:testbed|workspace|repo)(?:[-_][\w.-]{1,80}(?<!\.)|/[\w.-]{1,40}__[\w.-]{1,80}(?<!\.))?"
    r"(?=[/\s'\":,;)\]}>]|\.?$|\.\s)",
    re.MULTILINE,
)
_ODD_ROOT = re.compile(r"(?<![\w./-])/testbed[-_][\w.-]{1,80}(?<!\.)")

_FULL_NAME = re.compile(r"[^\W\d_a-z][\w.'’-]{0,30}(?: [\w.'’-]{1,30}){1,3}")

Rule = tuple[re.Pattern[str], str]
EVERYWHERE: tuple[Rule, ...] = (
    (_TRAILER, PERSON), (_GENERATED, AGENT), (_MAIL_HEAD, PERSON), (_EMAIL, EMAIL), (_HOME, USER),
    (_ODD_ROOT, REPOSITORY), (scrub_names.MADE_BY, MODEL),
)  # fmt: skip
IN_PROSE: tuple[Rule, ...] = (
    *EVERYWHERE, (_AUTHOR, PERSON), (_LINK, LINK), (_ROOT, REPOSITORY), (scrub_names.AGENT, AGENT),
    (scrub_names.MODEL, MODEL), (scrub_names.MAKER, MODEL),
)  # fmt: skip

_PROSE_FILE = re.compile(r"(?i)(?:\.(?:md|rst|txt|adoc|markdown|patch|diff|log)|(?:^|/)[A-Z_]+)$")
_COMMENT = re.compile(r"(?:^|\s)(?:#|//|/\*|\*(?=\s)|--\s|;;|%%?\s|<!--|\"\"\"|''')")


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement: `start`..`end` of the scrubbed text stands for `raw_start`..`raw_end` of the raw one."""

    start: int
    end: int
    raw_start: int
    raw_end: int


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """A scrubbed text and where it differs from the raw one."""

    text: str
    edits: tuple[Edit, ...] = ()

    def raw_span(self, start: int, end: int) -> tuple[int, int]:
        """Give the span of the raw text that a span of the scrubbed one stands for.

        Args:
            start, end: positions in `text`; one inside a placeholder means the whole of what it replaced.
        Returns:
            (start, end) in the raw text.
        """
        return self._raw(start, is_end=False), self._raw(end, is_end=True)

    def _raw(self, at: int, *, is_end: bool) -> int:
        n = bisect_right(self.edits, at, key=lambda edit: edit.start) - 1
        if n < 0:
            return at
        edit = self.edits[n]
        if at == edit.start:
            return edit.raw_start
        if at < edit.end:
            return edit.raw_end if is_end else edit.raw_start
        return edit.raw_end + at - edit.end


class Scrub:
    """The rules for one group: the tables, and the names its rollouts brought along. Same text, same result."""

    def __init__(self, *, names: Iterable[str] = (), ids: Iterable[str] = (), about: str = ""):
        """Take the group's own words.

        Args:
            names: of models, people and agents of this group.
            ids: of its rollouts and its run; common words and the task's own are left.
            about: the statement; a name in it is what the code is about, and stays unless somebody signs with it.
        """
        self._topics = scrub_names.topics(about)
        own = [(_literal(names), MODEL), (_literal(id for id in ids if _is_telling(id) and id not in about), ID)]
        given = tuple((pattern, word) for pattern, word in own if pattern is not None)
        self._names = given[:1] if own[0][0] is not None else ()
        self._everywhere = EVERYWHERE + tuple(rule for rule in given if rule[1] == ID)
        self._in_prose = given + IN_PROSE

    def prose(self, text: str) -> Scrubbed:
        """Returns: a message, an event, a log or a commit message without any name."""
        return _replaced(text, self._spans(self._in_prose, text, 0))

    def words(self, text: str) -> str:
        """Returns: `prose` without its map."""
        return self.prose(text).text

    def code(self, text: str, path: str = "") -> Scrubbed:
        """Returns: lines of a file; what follows a comment's sign is prose, and so is the whole of a text file."""
        if _PROSE_FILE.search(path):
            return self.prose(text)
        spans, at = [*self._spans(self._everywhere, text, 0)], 0
        for line in text.split("\n"):
            if comment := _COMMENT.search(line):
                spans += self._spans(self._in_prose, line[comment.start() :], at + comment.start())
            at += len(line) + 1
        return _replaced(text, spans)

    def file_name(self, path: str, used: dict[str, str]) -> str:
        """Scrub the path of a file that a candidate made.

        Args:
            path: with or without `a/` and `b/`, or a whole header line of a patch.
            used: name found -> its placeholder, kept over one patch so that two files stay two.
        Returns:
            The path with `[model]`, `[model-2]`… for each name.
        """

        def placeholder(found: re.Match[str]) -> str:
            if found.re is scrub_names.IN_NAME and scrub_names.topic(found[0]) in self._topics:
                return found[0]
            return used.setdefault(found[0], f"[model-{len(used) + 1}]" if used else MODEL)

        for pattern, _ in (*self._names, *self._everywhere[len(EVERYWHERE) :], (scrub_names.IN_NAME, MODEL)):
            path = pattern.sub(placeholder, path)
        return path

    def _spans(self, rules: Iterable[Rule], text: str, shift: int) -> Iterator[tuple[int, int, str]]:
        for pattern, word in rules:
            is_bare = self._topics and pattern in scrub_names.BARE
            for found in pattern.finditer(text):
                if is_bare and scrub_names.topic(found[0]) in self._topics:
                    continue
                start, end = found.span(found.lastgroup or 0)  # the named part of a pattern is what betrays
                yield start + shift, end + shift, word


def _is_telling(id: str) -> bool:
    return len(id) >= SHORTEST_ID and not id.isdigit() and any(char.isdigit() or char in "-_/.:" for char in id)


def signers(text: str) -> frozenset[str]:
    """Returns: people who sign in trailers, mail heads and author lines of a text, first and last name at least."""
    signed = (found["name"] for pattern in (_TRAILER, _MAIL_HEAD, _AUTHOR) for found in pattern.finditer(text))
    names = (re.split(r"[<(,]", line, maxsplit=1)[0].strip(" \t\"'*") for line in signed)
    return frozenset(name for name in names if _FULL_NAME.fullmatch(name))


def _literal(names: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern of given names: separators are one another's spelling, and part of a longer word is no hit."""
    longest = sorted({name.strip() for name in names if len(name.strip()) > 2}, key=lambda name: (-len(name), name))
    spelled = [r"[-_ ./]".join(map(re.escape, re.split(r"[-_ ./]", name))) for name in longest]
    return re.compile(rf"(?<![A-Za-z0-9])(?i:{'|'.join(spelled)})(?![A-Za-z0-9])") if spelled else None


def _replaced(text: str, spans: Iterable[tuple[int, int, str]]) -> Scrubbed:
    """Replace spans from the left; of two that overlap the earlier and longer one names the placeholder."""
    parts: list[str] = []
    edits: list[Edit] = []
    raw_at = at = 0
    for first, end, word in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end <= raw_at:
            continue
        start = max(first, raw_at)
        kept = text[raw_at:start]
        if edits and start == edits[-1].raw_end:  # the rest of an overlap belongs to what it overlaps
            edits[-1] = Edit(edits[-1].start, edits[-1].end, edits[-1].raw_start, end)
        else:
            parts += [kept, word]
            edits.append(Edit(at + len(kept), at + len(kept) + len(word), start, end))
            at += len(kept) + len(word)
        raw_at = end
    return Scrubbed("".join(parts) + text[raw_at:], tuple(edits)) if edits else Scrubbed(text)
