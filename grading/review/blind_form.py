"""An order given before the verdict is shown, as a plain form posts it: equal places tie. Core."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grading.scoring.criteria import FLAGS

Fields = Mapping[str, Sequence[str]]
MOST_PLACES = 99
TIERS = (1, 2, 3)


@dataclass(frozen=True)
class PostedOrder:
    """A form by letter. `typed` holds the places as they were typed; `errors` are sentences."""

    typed: Mapping[str, str]
    places: Mapping[str, int]
    flags: Mapping[str, tuple[str, ...]]
    tiers: Mapping[str, int]
    notes: str
    errors: tuple[str, ...]

    @property
    def order(self) -> list[list[str]]:
        """Tied letters, best first."""
        return [[one for one in self.places if self.places[one] == n] for n in sorted(set(self.places.values()))]


def read_order(fields: Fields, letters: Sequence[str]) -> PostedOrder:
    """Read places, flags and tiers.

    Args:
        fields: name -> values, as `QueryDict.lists()` gives them: place-A, flag-A, tier-A, notes.
        letters: the candidates to place.
    Returns:
        The form. A candidate without a place is an error: what nobody touched is no order.
    """
    typed = {letter: _one(fields, f"place-{letter}")[:20] for letter in letters}
    places = {letter: int(text) for letter, text in typed.items() if _is_place(text)}
    unplaced = [letter for letter, text in typed.items() if not text]
    wrong = [f"{letter}: {text!r} is no place" for letter, text in typed.items() if text and letter not in places]
    errors = [f"Not placed yet: {', '.join(sorted(unplaced))}"] if unplaced else []
    errors += [f"{words}, expected a whole number from 1 to {MOST_PLACES}" for words in wrong]
    flags, tiers = {}, {}
    for letter in letters:
        raised = tuple(flag for flag in FLAGS if flag in fields.get(f"flag-{letter}", ()))
        flags |= {letter: raised} if raised else {}
        tier = _one(fields, f"tier-{letter}")
        tiers |= {letter: int(tier)} if tier in map(str, TIERS) else {}
    return PostedOrder(typed, places, flags, tiers, _one(fields, "notes")[:5000], tuple(errors))


def _is_place(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 3 and 1 <= int(text) <= MOST_PLACES


def _one(fields: Fields, name: str) -> str:
    values = fields.get(name) or ("",)
    return values[-1].strip()
