"""An estimate as pages print it: value, interval, n; undefined is a dash with its reason, never 0."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from grading.calibration.estimate import Estimate
from grading.templatetags.figures import NONE, fixed, percent, signed

register = template.Library()
SHOWN = {"number": lambda v: fixed(v, 2), "share": lambda v: percent(v, 1), "signed": lambda v: signed(v, 2),
         "points": lambda v: f"{signed(100 * v, 1)} points"}  # fmt: skip


@register.filter
def shown_as(value: float | None, kind: str) -> str:
    """One value as an estimate of this kind prints it; a dash where it is undefined."""
    return NONE if value is None else SHOWN[kind](value)


@register.simple_tag
def estimate(found: Estimate, kind: str = "number", of: str = "pairs", href: str = "") -> SafeString:
    """Value, interval, and how many of what in how many groups; with `href` the n leads to them."""
    groups = f"{found.groups} group{'' if found.groups == 1 else 's'}"
    made_of = groups if of == "groups" and found.n == found.groups else f"{found.n} {of} in {groups}"
    if href and found.groups:
        made_of = format_html('<a class="link" href="{}">{}</a>', href, made_of)
    if found.value is None:
        words = format_html("{}", found.why) if not found.groups else format_html("{}; {}", found.why, made_of)
        return format_html('<span class="estimate"><b class="quiet">–</b><small>{}</small></span>', words)
    shown = SHOWN[kind]
    if found.low is None:
        beside = format_html("no interval: {}", found.why)
    else:
        clipped = ", clipped" if found.is_clipped else ""
        beside = format_html("{} to {}{}", shown(found.low), shown(found.high), clipped)
    words = '<span class="estimate"><b>{}</b><span class="interval">{}</span><small>{}</small></span>'
    return format_html(words, shown(found.value), beside, made_of)
