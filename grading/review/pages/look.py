"""How a comparison is looked at, as it stands in the address: letters, tab, unified or split, white space, folds."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

# What differs from the usual look.
WORDS = {"view": "split", "ws": "ignore", "folds": "open", "beside": "results", "words": "off"}


@dataclass(frozen=True)
class Look:
    """`is_quiet` hides changes of white space only; `has_results` shows tests and checks beside the diff; `is_plain`
    leaves the changed words of a line unmarked."""

    left: str = ""
    right: str = ""
    tab: str = "diff"
    is_split: bool = False
    is_quiet: bool = False
    is_unfolded: bool = False
    has_results: bool = False
    is_plain: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str], *, left: str = "", right: str = "", tab: str = "diff") -> "Look":
        return cls(left, right, tab, *(query.get(name) == word for name, word in WORDS.items()))

    @property
    def view(self) -> str:
        return "split" if self.is_split else "unified"

    @property
    def fields(self) -> dict[str, str]:
        """What a form must carry along beside the two letters."""
        flags = (self.is_split, self.is_quiet, self.is_unfolded, self.has_results, self.is_plain)
        unusual = zip(WORDS.items(), flags, strict=True)
        return {"tab": self.tab} | {name: word for (name, word), is_on in unusual if is_on}

    @property
    def rows(self) -> str:
        """The part of the address that a file's rows depend on."""
        return urlencode({name: word for name, word in self.fields.items() if name in ("view", "ws", "folds")})

    def href(self, **changes) -> str:
        changed = dataclasses.replace(self, **changes)
        return "?" + urlencode({"left": changed.left, "right": changed.right} | changed.fields)

    def links(self) -> dict[str, str]:
        """Addresses of the same comparison, looked at otherwise."""
        return {
            "unified": self.href(is_split=False),
            "split": self.href(is_split=True),
            "blanks": self.href(is_quiet=not self.is_quiet),
            "folds": self.href(is_unfolded=not self.is_unfolded),
            "unfolded": self.href(is_unfolded=True),
            "results": self.href(has_results=not self.has_results),
            "words": self.href(is_plain=not self.is_plain),
            "swapped": self.href(left=self.right, right=self.left),
        }
