"""Python in four inks, by one pattern: pygments tries forty patterns a token, and most patches are Python. Core."""

import builtins
import keyword
import re
from collections.abc import Iterator

BUILTINS = [name for name in dir(builtins) if name.islower() and not keyword.iskeyword(name)] + ["self", "cls"]
# Each quote runs to its end or, unfinished, to the end of the line or text: linear, whatever a candidate writes.
TOKEN = re.compile(
    r"""
    (?P<c>\#[^\n]*)
    |(?P<s>[bBfFrRuU]{0,2}(?:
        \"\"\"(?:[^\\]|\\.|\\\Z)*?(?:\"\"\"|\Z) | '''(?:[^\\]|\\.|\\\Z)*?(?:'''|\Z)
        | "(?:[^"\\\n]|\\.)*"? | '(?:[^'\\\n]|\\.)*'? ))
    |(?P<k>\b(?:KEYWORDS)\b)
    |(?P<n>(?<![\w.])(?:BUILTINS)\b | (?<=\bdef[ ])\w+ | (?<=\bclass[ ])\w+ | (?:(?<=\n)|\A)[ \t]*@[\w.]+)
    |\w+
    """.replace("KEYWORDS", "|".join(keyword.kwlist)).replace("BUILTINS", "|".join(BUILTINS)),
    re.VERBOSE | re.DOTALL,
)
INKS = {"c": "tok-c", "s": "tok-s", "k": "tok-k", "n": "tok-n"}


def python_tokens(source: str) -> Iterator[tuple[str, str]]:
    """Cut Python into tokens.

    Args:
        source: any text; it need not be whole or right.
    Returns:
        (class or "", text) in order; joined they are the source.
    """
    at = 0
    for found in TOKEN.finditer(source):
        kind = found.lastgroup
        if kind is None:
            continue
        start = found.start()
        if start > at:
            yield "", source[at:start]
        at = found.end()
        yield INKS[kind], found.group()
    if at < len(source):
        yield "", source[at:]
