"""One grading of a probe: a real workspace, the real grader, the real check; nothing of it is kept as a verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from grading.errors import GraderFailed
from grading.grader import gather
from grading.grader.graders import GRADERS
from grading.grader.options import GradingOptions
from grading.grader.parse import check
from grading.grader.probes.rows import change, save
from grading.grader.probes.trials import Trial
from grading.grader.record import Record
from grading.grader.shape import GraderReply
from grading.grader.workspace import Workspace
from grading.models import RolloutGroup
from grading.scoring.criteria import Candidate, Rubric
from grading.scoring.ranks import Ranking, rank
from grading.scoring.tiers import TIERS


@dataclass(frozen=True)
class Seen:
    """What came of a grading. `order` are tied groups of ids, best first, empty where the verdict did not count.

    `leaning` is the order by the scores that were given, also where the verdict does not count for another reason.
    """

    order: tuple[tuple[str, ...], ...]
    shown: tuple[str, ...]  # ids in the order of presentation
    notes: str = ""
    sent: str = ""  # all that the model was told
    cost_usd: float | None = None
    leaning: tuple[tuple[str, ...], ...] = ()

    def place(self, id: str) -> int | None:
        return next((n for n, tied in enumerate(self.order) if id in tied), None)

    def compare(self, one: str, other: str) -> float | None:
        """1 if the first stands above the second, 0.5 tied, 0 below; None where one of them is not ranked."""
        a, b = self.place(one), self.place(other)
        return None if a is None or b is None else 0.5 if a == b else float(a < b)

    @property
    def winner(self) -> str | None:
        """The one at the top, None where several share it."""
        return self.order[0][0] if self.order and len(self.order[0]) == 1 else None


Grade = Callable[[RolloutGroup, int], Seen]


def grade_with(grader: str, options: GradingOptions) -> Grade:
    """A function of a saved group and a seed of its order."""

    def grade(group: RolloutGroup, seed: int) -> Seen:
        record = Record()
        with Workspace.open(group, seed=seed) as ws:
            ids = {letter: one.raw.id for letter, one in ws.passing.items()}
            shown = tuple(ids[letter] for letter in ws.order)
            try:
                answer = GRADERS[grader](ws, options, record)
            except GraderFailed:
                return Seen((), shown, sent=_sent(record), cost_usd=record.cost_usd)
        checked = check(answer.reply, gather.material_of(group), group.rubric.rubric, answer.unread)
        order = _flat(checked.grades.ranking) if checked.valid else ()
        leaning = _leaning(answer.reply, shown, group.rubric.rubric)
        return Seen(order, shown, answer.reply.notes, _sent(record), record.cost_usd, leaning)

    return grade


def _flat(ranking: Ranking) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, chain.from_iterable(ranking[tier] for tier in TIERS)))


def _leaning(reply: GraderReply, shown: Sequence[str], rubric: Rubric) -> tuple[tuple[str, ...], ...]:
    """The order by scores; empty unless everybody who was shown has whole scores once."""
    try:
        scored = [
            Candidate(one.id, one.scores, frozenset(f for f, up in one.flags.items() if up)) for one in reply.candidates
        ]
        ranking = rank(scored, rubric)
    except ValueError:
        return ()
    return _flat(ranking) if {one.id for one in scored} == set(shown) else ()


def _sent(record: Record) -> str:
    return "\n".join(str(e.get("text", "")) for e in record.events if e.get("role") not in ("assistant", "system"))


def graded(grade: Grade, *trials: Trial, seed: int = 0) -> list[Seen]:
    """Grade trials of as many tries one after the other, shown in the same order: what differs is what they hold."""
    group = save(trials[0])
    return [grade(change(group, trial), seed) for trial in trials]
