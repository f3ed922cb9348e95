"""Drawings of calibration: what changed its rank, and a number with its interval."""

from collections.abc import Sequence

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from grading.templatetags.figures import factor, fixed, signed

register = template.Library()
ROW, TOP = 20, 30
LEFT, RIGHT = 178, 302
SAME = 1e-9


@register.simple_tag
def rank_change(rows: Sequence[dict]) -> SafeString:
    """Candidates before and after, tier by tier; a line's colour follows the factor, not the place."""
    before, after = _heights(rows, "before"), _heights(rows, "after")
    bottom = max([*before.values(), *after.values(), TOP])
    ends = [(_way(row), before[row["letter"]], after[row["letter"]]) for row in rows]
    lines = format_html_join("", '<path class="{}" d="M{} {} C240 {} 240 {} {} {}"/>', (
        (way, LEFT, here, here, there, RIGHT, there) for way, here, there in ends
    ))  # fmt: skip
    words = format_html_join("", "{}{}", (
        (_side(row, before[row["letter"]], is_before=True), _side(row, after[row["letter"]], is_before=False))
        for row in rows
    ))  # fmt: skip
    return format_html(
        '<svg class="rank-change" viewBox="10 0 466 {}" role="img" aria-label="{}">'
        '<text class="small" x="160" y="12" text-anchor="middle">now</text>'
        '<text class="small" x="320" y="12" text-anchor="middle">then</text>{}{}</svg>',
        bottom + 14,
        "; ".join(_said(row) for row in rows),
        lines,
        words,
    )


def _heights(rows: Sequence[dict], side: str) -> dict[str, int]:
    """Letter -> height; a tier apart from the next one by half a row."""
    ordered = sorted(rows, key=lambda row: (row[side], row["letter"]))
    tiers = sorted({row[side][0] for row in rows})
    return {row["letter"]: TOP + n * ROW + 10 * tiers.index(row[side][0]) for n, row in enumerate(ordered)}


def _way(row: dict) -> str:
    change = row["f_after"] - row["f_before"]
    return "stay" if abs(change) < SAME else "rise" if change > 0 else "fall"


def _side(row: dict, y: int, *, is_before: bool) -> SafeString:
    tier, weighted, given = (row[f"{name}_{'before' if is_before else 'after'}"] for name in ("t", "w", "f"))
    xs = (26, 76, 116, 160) if is_before else (348, 396, 436, 320)
    change = "" if is_before else format_html(
        '<text class="small" x="476" y="{}" text-anchor="end"><tspan class="{}">{}</tspan></text>',
        y + 4, {"rise": "up", "fall": "down"}.get(_way(row), "quiet"), signed(row["f_after"] - row["f_before"], 2),
    )  # fmt: skip
    return format_html(
        '<text class="small" x="{}" y="{y}" text-anchor="middle">T{}</text>'
        '<text class="small" x="{}" y="{y}" text-anchor="end">{}</text>'
        '<text class="small" x="{}" y="{y}" text-anchor="end">{}</text>'
        '<text x="{}" y="{y}" text-anchor="middle">{}</text>{}',
        xs[0], tier, xs[1], fixed(weighted), xs[2], factor(given), xs[3], row["letter"], change, y=y + 4,
    )  # fmt: skip


def _said(row: dict) -> str:
    return (
        f"{row['letter']}: tier {row['t_before']} factor {factor(row['f_before'])}, "
        f"then tier {row['t_after']} factor {factor(row['f_after'])}"
    )
