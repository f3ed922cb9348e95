"""Two candidates' files in one order, file beside file; of many files the first ones, the rest as they are reached."""

import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse

from grading.models import Trajectory
from grading.review.diffs import paired_files
from grading.review.pages.compare import Seen, Side, count_words, file_of
from grading.review.pages.look import Look
from grading.review.pages.sitting import Sitting

PAIRS_AT_ONCE = 30  # drawn in less than 50 ms, and more than a screen
FILE_ID = re.compile(r"([A-Z]+)-f(\d{1,6})")


class _Pair(NamedTuple):
    """One file of both; None where a side does not have it."""

    left: Seen | None
    right: Seen | None

    @property
    def seen(self) -> list[Seen]:
        return [one for one in self if one]

    @property
    def is_folded(self) -> bool:
        return all(one.is_folded for one in self.seen)


@dataclass
class Aligned:
    """Files with unusual changes first; where there are many files, those that are cited before all."""

    sitting: Sitting
    candidates: tuple[Trajectory | None, Trajectory | None]
    look: Look

    def __post_init__(self):
        self.sides = [t and Side(self.sitting, t, self.look) for t in self.candidates]
        pairs = [_Pair(*self._seen(places)) for places in self._places()]
        is_long = len(pairs) > PAIRS_AT_ONCE
        self.pairs = sorted(
            pairs, key=lambda pair: (is_long and not any(one.cited for one in pair.seen), pair.is_folded)
        )

    def _places(self):
        left, right = self.sides
        if left and right:
            return paired_files(left.patch, right.patch)
        one = left or right
        return [(n, None) for n in range(len(one.patch.files))] if one else []

    def _seen(self, places):
        sides = self.sides if all(self.sides) else [next((s for s in self.sides if s), None)] * 2
        return (None if n is None else side.see(n) for side, n in zip(sides, places, strict=True))

    def part(self, first: int = 0, *, to: str = "") -> dict:
        """The files from one on, and where the rest is asked for; as many as it takes to `to`, which stands open."""
        wanted = FILE_ID.fullmatch(to)
        wanted = wanted and (wanted[1], int(wanted[2]))
        at = next((n for n, pair in enumerate(self.pairs) if wanted in [one.place for one in pair.seen]), first)
        end = max(first, at) + PAIRS_AT_ONCE
        found = {"pairs": [self._drawn(pair, wanted) for pair in self.pairs[first:end]], "rest": None}
        if end < len(self.pairs):
            letters = [t.letter if t else "-" for t in self.candidates]
            address = reverse("group-pairs", args=[self.sitting.group.pk, *letters])
            left = len(self.pairs) - end
            more = f"Show {count_words(min(left, PAIRS_AT_ONCE), 'more file')}"
            url = f"{address}?{urlencode({'first': end} | self.look.fields)}"
            found["rest"] = {"url": url, "words": f"{more} of {left:,}" if left > PAIRS_AT_ONCE else more}
        return found

    def whole(self) -> dict:
        """What the page says of all files, with the first of them."""
        found = self.part()
        if not all(self.sides):
            return found
        seen = [one for pair in self.pairs for one in pair.seen]
        both = sum(len(pair.seen) == 2 for pair in self.pairs)
        return found | {
            "pair_words": _pair_words(len(self.pairs), both),
            "blanks": sum(one.hidden for one in seen),
            "all_shared": bool(seen) and all(one.is_folded for one in seen),
            "shared_of": self.sides[0].shares.of,
        }

    def _drawn(self, pair: _Pair, wanted: tuple[str, int] | None) -> list[dict | None]:
        drawn = [one and file_of(one, is_wanted=one.place == wanted) for one in pair]
        if not all(self.sides):
            return drawn
        for here, there in ((0, 1), (1, 0)):
            if drawn[here] is None:
                words = self.sides[here].blank_words(self.sides[there], pair[there].file)
                drawn[here] = {"blank": words, "path": pair[there].file.path}
        return drawn


def _pair_words(many: int, both: int) -> str:
    if not many:
        return "no file changed"
    return f"{count_words(many, 'file')}, " + (
        "both touch all" if both == many else f"{both or 'none'} touched by both"
    )
