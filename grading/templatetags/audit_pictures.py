"""Pictures of an audit: dots with whiskers, and lines over checkpoints. SVG geometry; arms differ by shape, too."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()
WIDE, ROW, EDGE = 240, 14, 8
LINE_WIDE, LINE_HIGH, LEFT, BELOW = 460, 180, 44, 24
BESIDE = 28  # half a label's width
MARKS = ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "M-4-4h8v8h-8z", "M0-5 5 4H-5z", "M0-5 5 0 0 5-5 0z")


@register.simple_tag
def arm_mark(number: int) -> SafeString:
    """The sign of an arm in every picture."""
    return format_html(
        '<svg class="arm-mark" width="12" height="12" viewBox="-6 -6 12 12" aria-hidden="true">'
        '<path class="arm-{} arm-dot" d="{}"/></svg>',
        number % 4,
        MARKS[number % 4],
    )


@register.simple_tag
def whiskers(picture: dict) -> SafeString:
    """A row for each arm: its value and its interval between the ends of the scale."""
    low, span, cells = picture["low"], picture["high"] - picture["low"], picture["cells"]

    def x(value: float) -> str:
        return f"{EDGE + (min(max(value, low), low + span) - low) / span * (WIDE - 2 * EDGE):.1f}"

    rows = format_html_join("", "{}", ((_whisker(cell, ROW * n + ROW // 2, x),) for n, cell in enumerate(cells)))
    said = "; ".join(f"{cell['arm']} {cell['words']}, {cell['interval'] or cell['why']}" for cell in cells)
    return format_html(
        '<svg class="whiskers" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" aria-label="{2}">'
        '<line class="axis" x1="{3}" x2="{3}" y1="0" y2="{1}"/><line class="axis" x1="{4}" x2="{4}" y1="0" y2="{1}"/>'
        "{5}</svg>",
        WIDE,
        ROW * max(1, len(cells)),
        said,
        EDGE,
        WIDE - EDGE,
        rows,
    )


def _whisker(cell: dict, y: int, x) -> SafeString:
    if cell["value"] is None:
        return format_html('<text class="none" x="{}" y="{}">-</text>', EDGE + 4, y + 4)
    bar = ""
    if cell["low"] is not None:
        bar = format_html(
            '<line class="arm-{} arm-bar" x1="{}" x2="{}" y1="{}" y2="{}"/>',
            cell["number"] % 4, x(cell["low"]), x(cell["high"]), y, y,
        )  # fmt: skip
    dot = format_html(
        '<path class="arm-{} arm-dot" transform="translate({} {})" d="{}"/>',
        cell["number"] % 4, x(cell["value"]), y, MARKS[cell["number"] % 4],
    )  # fmt: skip
    return format_html("{}{}", bar, dot)


@register.simple_tag
def checkpoint_lines(chart: dict) -> SafeString:
    """A line for each arm over the checkpoints, with its intervals; a checkpoint without a value is a gap."""
    known = [
        v for s in chart["series"] for p in s["points"] for v in (p["value"], p["low"], p["high"]) if v is not None
    ]
    if not known:
        return SafeString("")
    low, high = min(known), max(known)
    pad = 0.08 * (high - low) or 0.1
    low, high = low - pad, high + pad
    steps = max(1, len(chart["labels"]) - 1)

    def x(n: int, shift: float = 0.0) -> float:
        return LEFT + BESIDE + n * (LINE_WIDE - LEFT - 2 * BESIDE) / steps + shift

    def y(value: float) -> float:
        return 6 + (high - value) / (high - low) * (LINE_HIGH - BELOW - 12)

    drawn = format_html_join("", "{}", ((_series(s, x, y, len(chart["series"])),) for s in chart["series"]))
    return format_html(
        '<svg class="checkpoint-lines" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}{}</svg>',
        LINE_WIDE, LINE_HIGH, f"{chart['label']} by checkpoint; the table below holds the numbers",
        _grid(low, high, y, chart["unit"]), _labels(chart["labels"], x), drawn,
    )  # fmt: skip


def _series(series: dict, x, y, arms: int) -> SafeString:
    """Points of arms stand a little apart, so that their whiskers do not hide each other."""
    n_arm, shift = series["number"] % 4, 5.0 * (series["number"] - (arms - 1) / 2)
    parts, path, pen = [], [], "M"
    for n, point in enumerate(series["points"]):
        if point["value"] is None:
            pen = "M"
            continue
        path.append(f"{pen}{x(n, shift):.1f} {y(point['value']):.1f}")
        pen = "L"
        if point["low"] is not None:
            ends = (f"{y(point['low']):.1f}", f"{y(point['high']):.1f}")
            bar = '<line class="arm-{} arm-bar" x1="{x}" x2="{x}" y1="{}" y2="{}"/>'
            parts.append(format_html(bar, n_arm, *ends, x=f"{x(n, shift):.1f}"))
        parts.append(
            format_html(
                '<path class="arm-{} arm-dot" transform="translate({} {})" d="{}"><title>{}: {} ({})</title></path>',
                n_arm,
                f"{x(n, shift):.1f}",
                f"{y(point['value']):.1f}",
                MARKS[n_arm],
                series["name"],
                point["words"],
                point["interval"] or point["why"],
            )  # fmt: skip
        )
    line = format_html('<path class="arm-{} arm-line" d="{}"/>', n_arm, "".join(path))
    return format_html("{}{}", line, format_html_join("", "{}", ((part,) for part in parts)))


def _grid(low: float, high: float, y, unit: str) -> SafeString:
    values = [low + (high - low) * part for part in (0.1, 0.5, 0.9)]
    words = [f"{100 * v:.0f} %" if unit == "share" else f"{v:.2f}" for v in values]
    return format_html_join(
        "",
        '<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/><text class="tick" x="{}" y="{}">{}</text>',
        (
            (LEFT, LINE_WIDE, f"{y(v):.1f}", f"{y(v):.1f}", LEFT - 6, f"{y(v) + 4:.1f}", text)
            for v, text in zip(values, words, strict=True)
        ),
    )


def _labels(labels, x) -> SafeString:
    return format_html_join(
        "",
        '<text class="step" x="{}" y="{}">{}</text>',
        ((f"{x(n):.1f}", LINE_HIGH - 6, label) for n, label in enumerate(labels)),
    )
