"""Numbers as pages print them: tabular, real minus sign, an advantage never without its sign."""

from datetime import datetime

from django import template
from django.utils import timezone

from grading.integrity.registry import WORDS as DETECTORS
from grading.review.diffs.text import visible
from grading.review.pages.ansi import plain

register = template.Library()
MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
SAME = 1e-9


@register.filter
def signed(value, digits=3) -> str:
    """An advantage: +0.314, −0.786, 0.000."""
    if value is None or value == "":
        return NONE
    text = f"{float(value):.{int(digits)}f}"
    if float(text) == 0:
        return text.lstrip("-")
    return f"+{text}" if not text.startswith("-") else MINUS + text[1:]


@register.filter
def signed_as(value, other) -> str:
    """`signed`; numbers that differ by floating point alone print the same digits."""
    return signed(other if abs(float(value) - float(other)) <= SAME else value)


@register.filter
def fixed(value, digits=2) -> str:
    """A plain number with so many decimals."""
    if value is None or value == "":
        return NONE
    return f"{float(value):,.{int(digits)}f}".replace("-", MINUS)


@register.filter
def factor(value) -> str:
    """A factor: two decimals, three where they say more (0.625)."""
    if value is None or value == "":
        return NONE
    text = f"{float(value):.3f}"
    return text[:-1] if text.endswith("0") else text


@register.filter
def percent(value, digits=0) -> str:
    """A share of one as a percentage."""
    return NONE if value is None or value == "" else f"{float(value) * 100:.{int(digits)}f} %".replace("-", MINUS)


@register.filter
def bytesize(value) -> str:
    """A size in words a person compares at a glance."""
    if value is None or value == "":
        return NONE
    size = float(value)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


@register.filter
def seconds(value) -> str:
    """A duration: 4.2 s, 3 min 20 s, 2 h 05 min."""
    if value is None or value == "":
        return NONE
    s = float(value)
    if s < 60:
        return f"{s:.1f} s" if s < 10 else f"{s:.0f} s"
    whole = round(s)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


@register.filter
def ago(value: datetime | None) -> str:
    """How long ago, in one unit."""
    if value is None:
        return "never"
    s = max(0.0, (timezone.now() - value).total_seconds())
    if s < 5:
        return "now"
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h")):
        if s < limit:
            return f"{s // size:.0f} {unit} ago"
    return f"{s // 86_400:.0f} d ago"


@register.filter
def words(value) -> str:
    """A name of the wire as words: side_effects -> side effects."""
    return str(value).replace("_", " ")


@register.filter
def detector(name) -> str:
    """A detector with what it looks for: H8, hidden tests, reference patch or environment read."""
    return f"{name}, {DETECTORS[name]}" if name in DETECTORS else str(name)


@register.filter
def seen(value) -> str:
    """Text of others in one line of a page: no terminal codes, hidden characters named."""
    return visible(plain(str(value)))


@register.filter
def initials(name) -> str:
    """Two letters for an avatar."""
    parts = [part for part in str(name).replace(".", " ").replace("-", " ").split() if part]
    return "".join(part[0] for part in (parts[:1] + parts[-1:] if len(parts) > 1 else parts)).upper()
