"""Pages of lists that grow with the run: a count that stops, and a way to the end that skips nothing."""

from django.core.paginator import Paginator
from django.utils.functional import cached_property

COUNTED = 1_000  # rows that a list's count goes up to


class BoundedPages(Paginator):
    """Counts and turns over the first 1,000 rows; `is_cut` says that there are more."""

    @cached_property
    def count(self) -> int:
        return self.object_list.order_by()[: COUNTED + 1].count()

    @property
    def is_cut(self) -> bool:
        return self.count > COUNTED


class PagesFromBothEnds(Paginator):
    """A page of the second half is read from the end: what a database has to skip is half as much at most."""

    def page(self, number):
        number = self.validate_number(number)
        first = (number - 1) * self.per_page
        if first < self.count // 2:
            return super().page(number)
        last = min(first + self.per_page, self.count)
        rows = list(self.object_list.reverse()[self.count - last : self.count - first])
        return self._get_page(rows[::-1], number, self)
