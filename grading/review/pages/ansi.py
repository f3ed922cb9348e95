"""Terminal output as safe HTML: colours become classes, everything else a terminal would obey is taken out. Core.

Links, titles, clipboard writes and cursor moves are removed; a line that a carriage return wrote over is folded to its
last state and says so; control and bidi characters are shown by their names, so nothing in the text is invisible.
"""

import re
from html import escape

from grading.review.diffs.spans import show_hidden

# In this order: strings up to their end (or the line's), then sequences with parameters, then two-character ones.
STRINGS = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c|(?=\n)|$)"
SEQUENCES = r"(?:\x1b\[|\x9b)([0-?]*)[ -/]*([@-~])?"
SHORT = r"\x1b[ -/]*[0-~]?"
CONTROL = re.compile(f"{STRINGS}|{SEQUENCES}|{SHORT}")
COLOURS = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")  # black and white are the page's own
BACKGROUNDS = ("", "red", "green", "", "", "", "", "")
LONGEST = 2_000  # parameters of one sequence that are read


def plain(text: str) -> str:
    """Take out all control sequences.

    Args:
        text: what a program wrote.
    Returns:
        The text without them, each line in its last state; hidden characters stay as they are.
    """
    return "\n".join(_last_state(line)[0] for line in CONTROL.sub("", text).split("\n"))


def to_html(text: str) -> str:
    """Colour a program's output.

    Args:
        text: what it wrote.
    Returns:
        Escaped HTML; only spans with classes of ours.
    """
    style, lines = _Style(), []
    for line in text.split("\n"):
        shown, folded = _last_state(line)
        mark = (
            f'<span class="quiet fold-mark" title="{folded} earlier states of this line are folded">⟲{folded} </span>'
            if folded
            else ""
        )
        if folded:  # colours set in the folded part still hold
            for found in CONTROL.finditer(line[: len(line) - len(shown)]):
                style.obey(found)
        lines.append(mark + _painted(shown, style))
    return "\n".join(lines)


def _last_state(line: str) -> tuple[str, int]:
    """The text after the last carriage return that something follows, and how many states it wrote over."""
    states = line.rstrip("\r").split("\r")
    return states[-1], len([state for state in states[:-1] if CONTROL.sub("", state).strip()])


def _painted(line: str, style: "_Style") -> str:
    out, at = [], 0
    for found in CONTROL.finditer(line):
        out.append(style.paint(line[at : found.start()]))
        style.obey(found)
        at = found.end()
    out.append(style.paint(line[at:]))
    return "".join(out)


class _Style:
    """What SGR sequences have set so far."""

    def __init__(self):
        self.colour = self.background = ""
        self.is_bold = self.is_dim = False

    def paint(self, text: str) -> str:
        names = ["ansi-bold"] * self.is_bold + ["ansi-dim"] * self.is_dim
        names += [f"ansi-{self.colour}"] if self.colour else []
        names += [f"ansi-bg-{self.background}"] if self.background else []
        if not text:
            return ""
        # Tabs are text; every other control character is named.
        shown = "\t".join(show_hidden(part) for part in text.split("\t"))
        return f'<span class="{escape(" ".join(names))}">{shown}</span>' if names else shown

    def obey(self, found: re.Match) -> None:
        if found[2] != "m" or len(found[1]) > LONGEST:
            return
        codes = [int(code) if code.isdecimal() and len(code) < 6 else 0 for code in re.split("[;:]", found[1])]
        at = 0
        while at < len(codes):
            at += self._set(codes, at)

    def _set(self, codes: list[int], at: int) -> int:
        """Apply one code; returns how many numbers it took."""
        code = codes[at]
        if code in (38, 48):
            return self._extended(codes, at)
        if code == 0:
            self.__init__()
        elif code in (1, 2):
            self.is_bold, self.is_dim = (True, self.is_dim) if code == 1 else (self.is_bold, True)
        elif code == 22:
            self.is_bold = self.is_dim = False
        elif 30 <= code <= 37 or 90 <= code <= 97:
            self.colour = COLOURS[code % 10]
        elif 40 <= code <= 47 or 100 <= code <= 107:
            self.background = BACKGROUNDS[code % 10]
        elif code in (39, 49):
            self.colour, self.background = ("", self.background) if code == 39 else (self.colour, "")
        return 1

    def _extended(self, codes: list[int], at: int) -> int:
        """256 colours: the first 16 are ours, the rest, as true colour, is the page's own."""
        kind = codes[at + 1] if at + 1 < len(codes) else 0
        number = codes[at + 2] if kind == 5 and at + 2 < len(codes) else 16
        name = COLOURS[number % 8] if number < 16 else ""
        if codes[at] == 38:
            self.colour = name
        else:
            self.background = name if name in BACKGROUNDS else ""
        return {5: 3, 2: 5}.get(kind, 2)
