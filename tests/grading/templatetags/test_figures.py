"""Numbers and drawings of the pages."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from grading.templatetags import drawings, figures


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.3142, "+0.314"), (-0.7857, "−0.786"), (0, "0.000"), (-0.0001, "0.000"), (None, "–")],
)
def test_an_advantage_has_its_sign_and_a_real_minus(value, said):
    assert figures.signed(value) == said


def test_sums_that_floating_point_alone_parts_print_the_same_digits():
    before, after = 2.4375 + 1e-12, 2.4375 - 1e-12
    assert figures.signed(before) != figures.signed(after)
    assert figures.signed_as(after, before) == figures.signed(before)
    assert figures.signed_as(2.436, before) == "+2.436"


def test_a_factor_shows_its_third_decimal_only_where_it_says_something():
    assert [figures.factor(f) for f in (1, 0.85, 0.625, 0.2)] == ["1.00", "0.85", "0.625", "0.20"]


def test_durations_sizes_and_shares_read_at_a_glance():
    assert [figures.seconds(s) for s in (4.21, 59.6, 200, 7500)] == ["4.2 s", "60 s", "3 min 20 s", "2 h 05 min"]
    assert [figures.bytesize(b) for b in (812, 5200, 139_000, 5_200_000)] == ["812 B", "5.2 kB", "139 kB", "5.2 MB"]
    assert figures.percent(0.593, 1) == "59.3 %"
    assert figures.ago(timezone.now() - timedelta(minutes=3)) == "3 min ago"
    assert figures.initials("Mara Anna Novak") == "MN"


def test_a_drawing_carries_no_style_attribute_and_escapes_what_it_is_given():
    rows = [
        {"letter": "<A>", "before": 0.2, "after": 0.3, "passed": True},
        {"letter": "B", "before": 0.2, "after": -0.1, "passed": True},
        {"letter": "C", "before": -0.4, "after": -0.2, "passed": False},
    ]
    drawn = [
        drawings.credit_strip(rows),
        drawings.credit_strip([]),
        drawings.credit_bar(0.2, 0.1, 0.3),
        drawings.lambda_gauge(1.5, 1.5, 2.42),
        drawings.lambda_gauge(3.0),
        drawings.sparkline([0.1, None, 0.4]),
        drawings.regime_badge("bounded"),
        drawings.deadline_clock(71, 600, "then the verdict counts"),
    ]
    assert not any("style=" in svg for svg in drawn)
    assert "&lt;A&gt;" in drawn[0] and "<A>" not in drawn[0]


def test_no_bar_has_a_negative_size():
    for after in (-0.5, 0.0, 0.2, 0.9):
        row = {"letter": "A", "before": 0.3, "after": after, "passed": True}
        drawn = drawings.credit_strip([row]) + drawings.credit_bar(0.3, after, 0.9)
        sizes = re.findall(r'(?:width|height)="(-?[\d.]+)"', drawn)
        assert all(float(size) >= 0 for size in sizes)
