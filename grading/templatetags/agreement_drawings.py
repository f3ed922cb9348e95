"""Pictures of agreement: intervals of grader and people beside each other, and W against what people prefer."""

from collections.abc import Sequence

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from grading.templatetags.figures import NONE, fixed, percent

register = template.Library()
LEFT, RIGHT, ROW, TOP = 130, 430, 34, 8
LOWEST = -0.2  # values below are drawn at the edge; their number is printed


def _joined(parts) -> SafeString:
    return format_html_join("", "{}", ((part,) for part in parts))


def _line(css: str, x1: float, y1: float, x2: float, y2: float) -> SafeString:
    ends = (f"{v:.1f}" for v in (x1, y1, x2, y2))
    return format_html('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>', css, *ends)


@register.simple_tag
def agreement_plot(rows: Sequence[dict]) -> SafeString:
    """`rows` of label, grader and people (estimates or None): squares with people, circles people with people."""
    known = [e.low for row in rows for e in (row["grader"], row["people"]) if e and e.low is not None]
    known += [e.value for row in rows for e in (row["grader"], row["people"]) if e and e.value is not None]
    start = max(min([0.4, *known]), LOWEST)
    start = int(start * 5 - (start * 5 % 1 > 0)) / 5 if start > 0 else LOWEST

    def x(value: float) -> float:
        return LEFT + (min(max(value, start), 1.0) - start) / (1 - start) * (RIGHT - LEFT)

    bottom = TOP + ROW * len(rows)
    ticks = [start + 0.2 * i for i in range(round((1 - start) / 0.2) + 1)]
    grid = [
        _joined([
            _line("gridline", x(t), TOP, x(t), bottom),
            format_html('<text x="{}" y="{}" text-anchor="middle">{}</text>', f"{x(t):.1f}", bottom + 14, f"{t:.1f}"),
        ])
        for t in ticks
    ]  # fmt: skip
    drawn = [_agreement_row(row, TOP + ROW * i, x) for i, row in enumerate(rows)]
    words = "; ".join(f"{row['label']}: grader {_said(row['grader'])}, people {_said(row['people'])}" for row in rows)
    return format_html(
        '<svg class="agreement" viewBox="0 0 540 {}" role="img" aria-label="{}">{}{}</svg>',
        bottom + 20, f"Agreement with intervals. {words}", _joined(grid), _joined(drawn),
    )  # fmt: skip


def _said(found) -> str:
    return fixed(found.value, 2) if found and found.value is not None else "undefined"


def _agreement_row(row: dict, y: float, x) -> SafeString:
    parts = [
        format_html('<text class="label" x="{}" y="{}" text-anchor="end">{}</text>', LEFT - 14, y + 21, row["label"])
    ]
    for who, at in (("people", y + 11), ("grader", y + 22)):
        found = row[who]
        if not found or found.value is None:
            continue
        if found.low is not None:
            parts.append(_line(f"whisker {who}", x(found.low), at, x(found.high), at))
        middle = f"{x(found.value):.1f}"
        if who == "people":
            parts.append(format_html('<circle class="people-dot" cx="{}" cy="{}" r="3.5"/>', middle, at))
        else:
            left = f"{x(found.value) - 3.5:.1f}"
            parts.append(format_html('<rect class="grader-dot" x="{}" y="{}" width="7" height="7"/>', left, at - 3.5))
    parts.append(format_html('<text class="value" x="446" y="{}">{}</text>', y + 21, _short(row["grader"])))
    parts.append(format_html('<text class="value" x="492" y="{}">/ {}</text>', y + 21, _short(row["people"])))
    return _joined(parts)


def _short(found) -> str:
    return fixed(found.value if found else None, 2)


@register.simple_tag
def band(found) -> SafeString:
    """A `Watched` as it came: the interval since the baseline closing in, and the baseline's own behind it."""
    if not found.band:
        return format_html('<span class="quiet">{}</span>', NONE)
    width, height, last = 150, 44, max(len(found.band) - 1, 1)
    places = sorted({round(last * i / 60) for i in range(61)} & set(range(len(found.band))))

    def at(n: int, share: float) -> str:
        return f"{2 + n / last * (width - 4):.1f} {2 + (1 - share) * (height - 4):.1f}"

    lower, upper = [at(n, found.band[n][0]) for n in places], [at(n, found.band[n][1]) for n in places]
    low, high = (2 + (1 - share) * (height - 4) for share in (found.baseline.low, found.baseline.high))
    x = 2 + (found.left_at - 1) / last * (width - 4) if found.has_left else None
    mark = "" if x is None else _line("left-at", x, 2, x, height - 2)
    return format_html(
        '<svg class="watched-band" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">'
        '<rect class="baseline" x="0" y="{}" width="{}" height="{}"/><path class="since" d="M{} Z"/>{}</svg>',
        width, height, width, height,
        f"from 0 to 100 %: now {percent(found.band[-1][0])} to {percent(found.band[-1][1])}, "
        f"baseline {percent(found.baseline.low)} to {percent(found.baseline.high)}",
        f"{high:.1f}", width, f"{max(low - high, 1):.1f}", " L".join([*upper, *lower[::-1]]), mark,
    )  # fmt: skip


@register.simple_tag
def preference_plot(curve: dict) -> SafeString:
    """W difference to the right, P(people prefer the higher W) upward: bins with intervals, the isotonic line."""
    most = curve["most"] or 1.0

    def x(value: float) -> float:
        return 44 + value / most * 420

    def y(share: float) -> float:
        return 12 + (1 - share) * 190

    grid = [
        _joined([
            _line("gridline", 44, y(t), 464, y(t)),
            format_html('<text x="36" y="{}" text-anchor="end">{}</text>', f"{y(t) + 4:.1f}", percent(t)),
        ])
        for t in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]  # fmt: skip
    ticks = [most * i / 4 for i in range(5)]
    grid += [
        format_html('<text x="{}" y="220" text-anchor="middle">{}</text>', f"{x(t):.1f}", f"{t:.2f}") for t in ticks
    ]
    steps = " L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in curve["steps"])
    dots = [_bin(one, x(one["at"]), y) for one in curve["bins"]]
    words = "; ".join(
        f"W apart by {one['at']:.2f}: {percent(one['found'].value)} of {one['found'].n}" for one in curve["bins"]
    )
    return format_html(
        '<svg class="agreement preference" viewBox="0 0 480 240" role="img" aria-label="{}">{}'
        '<path class="isotonic" d="M{}"/>{}'
        '<text x="254" y="236" text-anchor="middle">W of the one minus W of the other</text></svg>',
        f"People prefer the candidate with the higher W. {words}", _joined(grid), steps, _joined(dots),
    )  # fmt: skip


def _bin(one: dict, at: float, y) -> SafeString:
    found = one["found"]
    parts = []
    if found.low is not None:
        parts.append(_line("whisker grader", at, y(found.low), at, y(found.high)))
    left, top = f"{at - 3.5:.1f}", f"{y(found.value) - 3.5:.1f}"
    parts.append(
        format_html(
            '<rect class="grader-dot" x="{}" y="{}" width="7" height="7">'
            "<title>{} of {} pairs, {} groups</title></rect>",
            left, top, percent(found.value), found.n, found.groups,
        )
    )  # fmt: skip
    return _joined(parts)
