"""Small signs and drawings. What is data is SVG geometry: the CSP allows no style attribute."""

from collections.abc import Sequence

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from grading.templatetags.figures import fixed, signed

register = template.Library()

REGIMES = {  # regime -> class, glyph, title
    "exact": ("", "M3 6h6M3 9h6", "sums kept"),
    "bounded": ("is-bounded", "M2.5 3h7M6 10V5M4 6.8 6 4.8l2 2", "the cap on lambda was needed"),
    "clipped": ("is-bounded", "M2.5 3h7M3 9h6", "a pass lay below the mean"),
    "fallback": ("is-fallback", "M4.5 3 2 5.5 4.5 8M2 5.5h5a2.2 2.2 0 0 1 0 4.5H5", "outcome advantages"),
    "baseline": ("is-ineligible", "M2.5 9h7M6 9V3", "the run's method is another"),
    "ineligible": ("is-ineligible", "M2.5 6h7", "passed through"),
    "filtered": ("is-ineligible", "M2.5 3h7L7 6.5V10H5V6.5z", "all passed or all failed: does not train"),
    "excluded": ("is-ineligible", "M3 3l6 6M9 3l-6 6", "does not train"),
}


@register.simple_tag
def regime_badge(regime: str) -> SafeString:
    """The regime as a glyph and a word; nothing for a group that has none yet."""
    if not regime:
        return SafeString("")
    css, glyph, title = REGIMES.get(regime, ("is-ineligible", "M2.5 6h7", ""))
    return format_html(
        '<span class="regime-badge {}" title="{}"><svg viewBox="0 0 12 12" aria-hidden="true"><path d="{}"/></svg>'
        "{}</span>",
        css,
        title,
        glyph,
        regime,
    )


@register.simple_tag
def tier_mark(tier: int) -> SafeString:
    """Three bars for tier 1, two for tier 2, one for tier 3."""
    bars = format_html_join(
        "",
        '<rect class="{}" x="{}" y="{}" width="3" height="{}"/>',
        (("" if i < 4 - int(tier) else "off", i * 4, 6 - i * 3, 4 + i * 3) for i in range(3)),
    )
    return format_html(
        '<svg class="tier-mark" width="11" height="10" viewBox="0 0 11 10" aria-hidden="true">{}</svg>', bars
    )


@register.simple_tag
def deadline_clock(left_s, total_s=None, words: str = "") -> SafeString:
    """Ring, mm:ss, and what happens then. The page's clock counts on from `left_s`."""
    if left_s is None:
        return SafeString("")
    left, total = max(0.0, float(left_s)), float(total_s or 0)
    state = "is-over" if left == 0 else "is-near" if left < 90 else ""
    ring = 37.7 * min(1.0, left / total) if total else 0.0
    return format_html(
        '<span class="deadline-clock {}" data-deadline="{}" data-total="{}" role="timer">'
        '<svg viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6"/>'
        '<circle class="left" cx="8" cy="8" r="6" stroke-dasharray="{} 37.7"/></svg>'
        '<span class="time">{}:{}</span>{}</span>',
        state,
        f"{left:.0f}",
        f"{total:.0f}",
        f"{ring:.1f}",
        f"{int(left) // 60:02d}",
        f"{int(left) % 60:02d}",
        format_html(" <small>{}</small>", words) if words else "",
    )


@register.simple_tag
def sparkline(values: Sequence[float | None], width: int = 88, height: int = 22) -> SafeString:
    """A line without axes; gaps are skipped, and one point is no line."""
    known = [(i, float(v)) for i, v in enumerate(values or ()) if v is not None]
    if len(known) < 2:
        return SafeString("")
    low, high = min(v for _, v in known), max(v for _, v in known)
    span, last = (high - low) or 1.0, max(len(values) - 1, 1)
    points = [(1 + i * (width - 4) / last, height - 3 - (v - low) / span * (height - 6)) for i, v in known]
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return format_html(
        '<svg class="sparkline" width="{}" height="{}" aria-hidden="true"><path d="{}"/>'
        '<circle class="end" cx="{}" cy="{}" r="2"/></svg>',
        width,
        height,
        path,
        f"{points[-1][0]:.1f}",
        f"{points[-1][1]:.1f}",
    )


@register.simple_tag
def credit_bar(before, after, top) -> SafeString:
    """One candidate's advantage: before as a tick, after as a bar; gained solid, lost a dashed outline."""
    width, scale = 96, 96 / (float(top) or 1.0)
    b, a = (min(width, max(0.0, float(v) * scale)) for v in (before, after))
    changed = ("gained", b, a - b, 1, 7) if a >= b else ("lost", a, b - a, 1.5, 6)
    return format_html(
        '<svg class="credit-bar" viewBox="0 0 96 9" preserveAspectRatio="none" role="img" '
        'aria-label="advantage {} before, {} after"><rect class="track" x="0" y="3" width="96" height="3"/>'
        '<rect class="kept" x="0" y="1" width="{}" height="7"/>'
        '<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>'
        '<line class="before" x1="{}" x2="{}" y1="-1" y2="10"/></svg>',
        signed(before),
        signed(after),
        f"{min(a, b):.1f}",
        changed[0],
        f"{changed[1]:.1f}",
        changed[3],
        f"{changed[2]:.1f}",
        changed[4],
        f"{b:.1f}",
        f"{b:.1f}",
    )


@register.simple_tag
def lambda_gauge(lam, cap=None, wanted=None) -> SafeString:
    """Lambda between 1 and its cap; a dashed part shows what was needed beyond it."""
    lam, wanted = float(lam), float(wanted or lam)
    end = float(cap) if cap else max(wanted, 1.5)

    def x(v: float) -> float:
        return 4 + min(max((v - 1) / ((end - 1) or 1), 0), 1.25) * 120

    parts = [format_html('<rect class="fill" x="4" y="3" width="{}" height="4"/>', f"{max(x(lam) - 4, 0):.1f}")]
    if cap:
        if wanted > end:
            wide = f"{x(wanted) - x(end):.1f}"
            parts.append(
                format_html('<rect class="wanted" x="{}" y="3" width="{}" height="4"/>', f"{x(end):.1f}", wide)
            )
        parts.append(
            format_html(
                '<line class="cap" x1="{0}" x2="{0}" y1="0" y2="10"/><text x="{1}" y="14">cap {2}</text>',
                f"{x(end):.1f}",
                f"{x(end) + 4:.1f}",
                f"{end:g}",
            )
        )
    return format_html(
        '<svg class="lambda-gauge" viewBox="0 0 178 14" role="img" aria-label="lambda {}{}">'
        '<rect class="track" x="4" y="3" width="120" height="4"/>{}</svg>',
        fixed(lam, 3),
        f" of at most {end:g}" if cap else ", no cap",
        format_html_join("", "{}", ((part,) for part in parts)),
    )


@register.simple_tag
def credit_strip(rows: Sequence[dict]) -> SafeString:
    """All candidates side by side: `rows` of letter, before, after, passed; failures on a scale of their own."""
    passes = [row for row in rows if row["passed"]]
    failures = [row for row in rows if not row["passed"]]
    step, gap = 46, 24 if failures and passes else 0
    beside = max(step * len(failures), 92) if gap else step * len(failures)  # 92: the words of their scale
    width = step * len(passes) + gap + beside
    up = 26 / max([abs(float(v)) for row in passes for v in (row["before"], row["after"])] + [1e-9])
    down = 24 / max([abs(float(v)) for row in failures for v in (row["before"], row["after"])] + [1e-9])
    drawn = [_column(row, i * step, up) for i, row in enumerate(passes)]
    start = len(passes) * step + gap
    drawn += [_column(row, start + i * step, down) for i, row in enumerate(failures)]
    note = (
        format_html(
            '<line class="axis-break" x1="{0}" x2="{0}" y1="0" y2="78"/><text class="value" x="{1}" y="10">'
            "failed, own scale</text>",
            start - gap // 2,
            start + beside // 2,
        )
        if gap
        else ""
    )
    return format_html(
        '<svg class="credit-strip" viewBox="0 0 {0} 78" role="img" aria-label="Advantage of each candidate before '
        'and after"><line class="axis" x1="0" x2="{0}" y1="36" y2="36"/>{1}{2}</svg>',
        max(width, 120),
        note,
        format_html_join("", "{}", ((column,) for column in drawn)),
    )


def _column(row: dict, left: int, scale: float) -> SafeString:
    """One candidate of the strip: bar to `after`, tick at `before`, letter and numbers on the free side."""
    before, after = float(row["before"]), float(row["after"])
    y_before, y_after = 36 - before * scale, 36 - after * scale
    far, near = (min, max) if after >= 0 else (max, min)
    kept, end = near(y_before, y_after), far(y_before, y_after)
    changed = "shifted" if not row["passed"] else "gained" if after >= before else "lost"
    base = "after" if row["passed"] else "failed"
    letter_y, value_y, delta_y = (48, 60, 71) if after >= 0 else (31, 75, None)
    x = left + 11
    return format_html(
        '<g data-strip="{letter}"><rect class="hit" x="{hit}" y="0" width="42" height="78" rx="3"/>'
        '<rect class="{base}" x="{x}" y="{kept_y}" width="24" height="{kept_h}"/>'
        '<rect class="{changed}" x="{x}" y="{change_y}" width="24" height="{change_h}"/>'
        '<line class="before" x1="{tick_1}" x2="{tick_2}" y1="{y_before}" y2="{y_before}"/>'
        '<text x="{mid}" y="{letter_y}">{letter}</text><text class="value" x="{mid}" y="{value_y}">{after}</text>'
        "{delta}<title>{letter}: {long_before} → {long_after}</title></g>",
        letter=row["letter"],
        hit=left + 2,
        base=base,
        x=x,
        kept_y=f"{min(36, kept):.1f}",
        kept_h=f"{abs(36 - kept):.1f}",
        changed=changed,
        change_y=f"{min(kept, end):.1f}",
        change_h=f"{abs(kept - end):.1f}",
        tick_1=x - 4,
        tick_2=x + 28,
        y_before=f"{y_before:.1f}",
        mid=x + 12,
        letter_y=letter_y,
        value_y=value_y,
        after=signed(after, 2),
        delta=format_html('<text class="value" x="{}" y="{}">{}</text>', x + 12, delta_y, signed(after - before, 2))
        if delta_y
        else "",
        long_before=signed(before, 4),
        long_after=signed(after, 4),
    )
