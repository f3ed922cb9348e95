"""The groups behind a figure, each with what it adds to it, a page at a time."""

from collections.abc import Mapping

import numpy as np
from django.core.paginator import Paginator

from grading.models import RolloutGroup

LISTED = 50
Adds = Mapping[int, tuple[float | None, float]]  # group -> (value, n); None or NaN: undefined there


def behind(user, adds: Adds, query: Mapping[str, str], *, words: str, highest: bool = False, shown="number") -> dict:
    """Context of grading/_groups_behind.html: the lowest first, or the `highest`; undefined ones come last."""

    def place(group: int) -> tuple:
        value = adds[group][0]
        is_known = value is not None and not np.isnan(value)
        return (not is_known, (-value if highest else value) if is_known else 0, -group)

    page = Paginator(sorted(adds, key=place), LISTED).get_page(query.get("page"))
    groups = RolloutGroup.objects.visible_to(user).select_related("run", "task").in_bulk(list(page))
    rows = [{"group": groups[pk], "value": _known(adds[pk][0]), "n": round(adds[pk][1])} for pk in page if pk in groups]
    has_values = any(n for _, n in adds.values())
    first = "newest" if not has_values else "highest" if highest else "lowest"
    found = {"words": words, "rows": rows, "page": page, "of": len(adds), "first": first, "shown": shown}
    return found | {"has_values": has_values}


def _known(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else float(value)
