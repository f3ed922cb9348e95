"""Pages read from the nearer end are the pages that one reads from the beginning."""

import pytest
from django.core.paginator import Paginator

from grading.models import RolloutGroup
from grading.review.pages.bounded import PagesFromBothEnds
from tests.factories import make_group, make_run


@pytest.mark.parametrize("count", [0, 1, 4, 7])
@pytest.mark.parametrize("order", [("pk",), ("-step", "-pk")])
def test_every_page_has_the_same_rows_in_the_same_order(db, count, order):
    run = make_run()
    for n in range(count):
        make_group(run=run, step=n % 2)
    rows = RolloutGroup.objects.order_by(*order)
    plain, ours = Paginator(rows, 2), PagesFromBothEnds(rows, 2)
    for number in plain.page_range:
        assert list(ours.get_page(number)) == list(plain.get_page(number))
        assert ours.get_page(number).has_next() == plain.get_page(number).has_next()
