"""Probes of order and identity: L1 permutation, L2 identical candidates, L6 names, L11 a family's own work."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from grading.grader.probes.gradings import Grade, Seen, graded
from grading.grader.probes.measures import Figure, mean, share, tail
from grading.grader.probes.rows import save
from grading.grader.probes.trials import Trial
from grading.review.agreement import pairs

ORDERS = 10
TWINS = 4
SURPRISE = 0.01  # a p-value below it means: not by chance
TAU_LEAST = 0.8
NAMES = (
    ("claude-opus-4-5", "Claude", "claude@anthropic.com"),
    ("gpt-5-codex", "GPT-5", "codex@openai.com"),
    ("qwen3-coder-480b", "Qwen3-Coder", "qwen@alibaba-inc.com"),
    ("gemini-3-pro", "Gemini", "gemini@google.com"),
)


def permutation(trials: Sequence[Trial], grade: Grade, *, orders: int = ORDERS) -> list[Figure]:
    """L1: the same group in shuffled orders; a fair grader says the same each time."""
    taus, changes, seen = [], [], []
    for trial in trials:
        group = save(trial)
        here = [grade(group, seed) for seed in range(orders)]
        seen += here
        for one, other in combinations([s for s in here if s.order], 2):
            changes.append(set(one.order[0]) != set(other.order[0]))
            tau = pairs(one.order, other.order).tau_b
            if tau is not None:
                taus.append(tau)
    middle, interval = mean(taus)
    kept = None if middle is None else middle >= TAU_LEAST
    rule = f"mean >= {TAU_LEAST}"
    return [
        Figure("L1", "tau-b between orders", middle, len(taus), interval, rule=rule, kept=kept),
        share("L1", "pairs of orders with another top", sum(changes), len(changes)),
        first_slot("L1", seen),
        share("L1", "invalid verdicts", sum(not s.order for s in seen), len(seen)),
    ]


def first_slot(probe: str, seen: Sequence[Seen]) -> Figure:
    """How often the sole winner stood first in the prompt, against the chance of one in n."""
    decided = [s for s in seen if s.winner]
    hits = sum(s.winner == s.shown[0] for s in decided)
    p = tail(hits, [1 / len(s.shown) for s in decided]) if decided else None
    kept = None if p is None else p >= SURPRISE
    rule = f"p >= {SURPRISE}"
    return share(probe, "sole winners that stood first", hits, len(decided), p=p, rule=rule, kept=kept)


def identical(trials: Sequence[Trial], grade: Grade) -> list[Figure]:
    """L2: copies of one candidate; a fair grader ties them. Untied copies are no valid verdict: the scores tell."""
    seen = []
    for number, trial in enumerate(trials):
        one = trial.passing[0]
        copies = [replace(one, id=f"copy-{n}") for n in range(TWINS)]
        seen += graded(grade, trial.only(*copies), seed=number)
    scored = [replace(s, order=s.leaning) for s in seen if s.leaning]
    tied = sum(len(s.order) == 1 for s in scored)
    kept = tied == len(scored) if scored else None
    return [
        share("L2", "groups of copies that are all tied", tied, len(scored), rule="all", kept=kept),
        first_slot("L2", scored),
        share("L2", "invalid verdicts", sum(not s.order for s in seen), len(seen)),
    ]


def names(trials: Sequence[Trial], grade: Grade) -> list[Figure]:
    """L6: candidates that say whose they are, then with the names swapped; no name is sent, no verdict moves."""
    moved = leaks = compared = gradings = 0
    for trial in trials:
        seen = graded(grade, _named(trial, 0), _named(trial, 1))
        gradings += len(seen)
        words = [word for name in NAMES for word in (name[0], name[2])]
        leaks += sum(any(word in s.sent for word in words) for s in seen)
        if all(s.order for s in seen):
            compared += 1
            moved += list(map(set, seen[0].order)) != list(map(set, seen[1].order))
    return [
        share("L6", "gradings in which a name was sent", leaks, gradings, rule="none", kept=not leaks),
        share("L6", "verdicts that moved with the names", moved, compared, rule="none", kept=not moved),
    ]


def _named(trial: Trial, shift: int) -> Trial:
    found = trial
    for number, one in enumerate(trial.passing):
        model, name, mail = NAMES[(number + shift) % len(NAMES)]
        said = {"kind": "message", "text": f"I am {name} ({model}). Signed-off-by: {name} <{mail}>"}
        head = f"From 0000000\nFrom: {name} <{mail}>\nSubject: fix, written by {model}\n\n---\n".encode()
        extra = {**one.extra, "model": model, "author": f"{name} <{mail}>"}
        found = found.swapped(replace(one, patch=head + one.patch, events=(*one.events, said), extra=extra))
    return found


def own_family(trials: Sequence[Trial], grade: Grade, *, own: str) -> list[Figure]:
    """L11: pairs of a candidate of the grader's own family with another's; people's wins are what is fair."""
    by_grader, by_people, gaps = [], [], []
    for trial in trials:
        (seen,) = graded(grade, trial)
        ours = [one for one in trial.passing if own.lower() in one.family.lower()]
        others = [one for one in trial.passing if one.family and one not in ours]
        people = Seen(trial.human, ())
        for one, other in ((a, b) for a in ours for b in others):
            wins, fair = seen.compare(one.id, other.id), people.compare(one.id, other.id)
            by_grader += [wins] if wins is not None else []
            by_people += [fair] if fair is not None else []
            gaps += [wins - fair] if wins is not None and fair is not None else []
    gap, interval = mean(gaps)
    kept = None if interval is None else interval[0] <= 0
    return [
        share("L11", f"wins of {own} by the grader", sum(by_grader), len(by_grader)),
        share("L11", f"wins of {own} by people", sum(by_people), len(by_people)),
        Figure("L11", "preference for its own", gap, len(gaps), interval, rule="interval reaches 0", kept=kept),
    ]
