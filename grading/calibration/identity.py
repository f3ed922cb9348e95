"""Which grader said it: name, model and prompt together. With another model or prompt it is another grader."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Max, Q

from grading.models import Verdict
from grading.review.decisions import PERSON
from grading.states import Purpose

POOLED = "all"
BY = ("grader", "grading__model", "grading__prompt")  # of a verdict


@dataclass(frozen=True)
class Identity:
    """A grader. Model and prompt are "" where it has none, or where nothing was written down about them."""

    grader: str
    model: str = ""
    prompt: str = ""

    @classmethod
    def of(cls, grader: str, model: str | None, prompt: str | None) -> "Identity":
        """From the columns of `BY`; a verdict without a grading has None."""
        return cls(grader, model or "", prompt or "")

    @property
    def words(self) -> str:
        """How people and addresses call it."""
        return " · ".join(filter(None, (self.grader, self.model, self.prompt)))

    @property
    def said(self) -> Q:
        """The verdicts it gave."""
        how = Q(grading__model=self.model, grading__prompt=self.prompt)
        if not self.model and not self.prompt:
            how |= Q(grading=None)
        return Q(grader=self.grader) & how


@dataclass(frozen=True)
class Choice:
    """Whose verdicts a page reads: one grader's, or (`one` None) those of all that are known, pooled."""

    known: Sequence[tuple[Identity, int]] = ()  # with groups of each; the one that spoke last comes first
    one: Identity | None = None

    def takes(self, identity: Identity) -> bool:
        return self.one is None or identity == self.one

    @property
    def groups(self) -> int:
        return sum(n for identity, n in self.known if self.takes(identity))

    @property
    def left_out(self) -> int:
        return sum(n for _, n in self.known) - self.groups

    @property
    def value(self) -> str:
        """As an address says it."""
        return self.one.words if self.one else POOLED


EVERYBODY = Choice()


def graders_of(verdicts) -> list[tuple[Identity, int]]:
    """Who gave the valid training verdicts among these, and in how many groups; the one that spoke last first."""
    rows = verdicts.filter(purpose=Purpose.TRAINING, is_valid=True).exclude(grader=PERSON).order_by().values_list(*BY)
    found: dict[Identity, tuple[int, int]] = {}
    for *by, groups, last in rows.annotate(groups=Count("group", distinct=True), last=Max("pk")):
        known = found.get(Identity.of(*by), (0, 0))
        found[Identity.of(*by)] = (max(last, known[0]), groups + known[1])
    return [(identity, groups) for identity, (_, groups) in sorted(found.items(), key=lambda row: -row[1][0])]


def chosen(known: Sequence[tuple[Identity, int]], asked: str) -> Choice:
    """The one that was asked for, all of them for "all", else the one that spoke last."""
    names = {identity.words: identity for identity, _ in known}
    if len(known) < 2 or asked == POOLED:
        return Choice(known)
    return Choice(known, names.get(asked, known[0][0]))


def choice_of(user, query: Mapping[str, str], *, run=None, team=None) -> Choice:
    """Whose verdicts a page over a run or a team reads."""
    rows = Verdict.objects.visible_to(user)
    rows = rows.filter(group__run=run) if run else rows.filter(group__run__team=team) if team else rows.none()
    return chosen(graders_of(rows), query.get("grader", ""))
