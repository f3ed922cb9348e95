"""A correction that is not saved yet: a form against the verdict that stands, and what follows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from grading.grader.shape import CandidateReply, Cited, Order
from grading.grader.wire import read
from grading.models import RolloutGroup, Trajectory, Verdict, VerdictCandidate
from grading.review import decisions
from grading.review.correction_form import Posted
from grading.review.twins import Followers, Said, twins_of, with_twins
from grading.scoring.criteria import CRITERIA, FLAGS, HIGHEST, LOWEST, Candidate, Rubric
from grading.scoring.grades import Grades, grade
from grading.scoring.ranks import Ranking, rank
from grading.scoring.tiers import TIER_NAMES, TIERS
from grading.states import Outcome

Seats = Mapping[str, tuple[int, int]]  # external id -> (tier, place counted from 1)


@dataclass(frozen=True)
class Standing:
    """The verdict that stands, read over the rollouts that are left to rank.

    `entries` has all of them, also those whose scores are missing or no scores; `seats` only those it ranked.
    """

    verdict: Verdict
    entries: Mapping[str, CandidateReply]
    seats: Seats
    letters: Mapping[str, str]  # letter -> external id
    rubric: Rubric
    twins: Mapping[str, tuple[str, ...]]  # external id -> the others with the same patch, byte for byte


@dataclass(frozen=True)
class Draft:
    """What a form changes, by external id, twins included. `grades` is None while a score is missing."""

    standing: Standing
    scores: Mapping[str, Mapping[str, int]]
    flags: Mapping[str, Mapping[str, bool]]
    order: Order | None
    citations: Mapping[str, tuple[Cited, ...]]
    reason: str
    entries: Mapping[str, CandidateReply]  # with the edits applied
    grades: Grades | None
    unmoved: Mapping[str, int]  # the place each one has if nobody moves a card; empty while there are no grades
    errors: tuple[str, ...]
    typed: Mapping[str, int]  # the places of a tier where a twin was taken along: fields keep what a person moved
    followers: Followers

    @property
    def is_edited(self) -> bool:
        """Whether it says anything else than the verdict that stands: a reason or a citation alone does not."""
        ranking = self.grades.ranking if self.grades else {}
        places = {id: n for groups in ranking.values() for n, tied in enumerate(groups, 1) for id in tied}
        return bool(self.scores or self.flags or places != self.unmoved)

    @property
    def taken(self) -> dict[str, dict[str, int]]:
        """The scores that candidates take over from a twin."""
        taken: dict[str, dict[str, int]] = {}
        for claims in self.followers.values():
            for about, twins in claims.items():
                for twin in twins if about in CRITERIA else ():
                    taken.setdefault(twin, {})[about] = self.scores[twin][about]
        return taken

    @property
    def factors(self) -> dict[str, float] | None:
        """Factor by external id, None while the draft cannot be graded."""
        return self.grades and {id: float(factor) for id, factor in self.grades.factor.items()}


def is_ranked(trajectory: Trajectory, group: RolloutGroup) -> bool:
    """Whether it is a valid pass without a confirmed finding: one to rank."""
    masked = trajectory.is_late or (group.run.mask_truncated and trajectory.is_truncated)
    return trajectory.outcome == Outcome.PASSED and not trajectory.integrity and not masked


def stand(
    group: RolloutGroup,
    *,
    verdict: Verdict | None = None,
    trajectories: list[Trajectory] | None = None,
    placements: list[VerdictCandidate] | None = None,
) -> Standing | None:
    """The newest training verdict and whom it may rank; None where there is no verdict."""
    verdict = verdict or decisions.newest_verdict(group)
    if verdict is None:
        return None
    ranked = [t for t in (trajectories or group.trajectories.counted()) if is_ranked(t, group)]
    replies = {entry.id: entry for entry in read(verdict.reply)[0].candidates}
    placements = list(verdict.candidates.select_related("trajectory")) if placements is None else placements
    ids = {t.pk: t.external_id for t in ranked}
    return Standing(
        verdict=verdict,
        entries={t.external_id: replies.get(t.external_id, CandidateReply(t.external_id, {})) for t in ranked},
        seats={ids[p.trajectory_id]: (p.tier, p.rank + 1) for p in placements if p.trajectory_id in ids},
        letters={t.letter: t.external_id for t in ranked},
        rubric=verdict.rubric.rubric,
        twins=twins_of({t.external_id: t.patch for t in ranked}),
    )


def draft_of(standing: Standing, posted: Posted) -> Draft:
    """Take the form against the verdict that stands: only what differs is an edit."""
    by_letter, errors = standing.letters, list(posted.errors)
    errors += [f"There is no candidate {letter} to rank here" for letter in posted.scores if letter not in by_letter]
    said = Said(
        scores=_score_edits(standing, posted),
        flags=_flag_edits(standing, posted),
        places={by_letter[letter]: place for letter, place in posted.places.items() if letter in by_letter},
        citations=_citations(standing, posted, errors),
        followers={},
    )
    typed = said.places
    drawn = {**standing.seats, **{by_letter[one]: seat for one, seat in posted.drawn.items() if one in by_letter}}
    said = with_twins(said, standing.entries, drawn, standing.twins)
    edited = {id: _edited(entry, said) for id, entry in standing.entries.items()}
    by_hand = {*said.scores, *said.flags}
    order, grades, unmoved, kept = None, None, {}, {}
    if all(map(is_scored, edited.values())):
        candidates = [as_candidate(entry) for entry in edited.values()]
        by_score = rank(candidates, standing.rubric)
        still = wanted_order(by_score, standing.seats, drawn, {}, edited=by_hand)
        unmoved = {
            id: place
            for tier in TIERS
            for place, tied in enumerate(still[TIER_NAMES[tier]] if still else by_score[tier], 1)
            for id in tied
        }
        kept = _kept_places(by_score, typed, said.places)
        order = wanted_order(by_score, standing.seats, drawn, said.places, edited=by_hand)
        grades = grade(candidates, standing.rubric, order)
    return Draft(
        standing, said.scores, said.flags, order, said.citations, posted.reason, edited, grades, unmoved,
        tuple(errors), kept, said.followers,
    )  # fmt: skip


def _kept_places(by_score: Ranking, typed: Mapping[str, int], carried: Mapping[str, int]) -> dict[str, int]:
    tiers = [[id for tied in groups for id in tied] for groups in by_score.values()]
    return {
        id: typed[id]
        for members in tiers
        if any(carried.get(id) != typed.get(id) for id in members) and all(id in typed for id in members)
        for id in members
    }


def _edited(entry: CandidateReply, said: Said) -> CandidateReply:
    scores, flags = said.scores.get(entry.id, {}), said.flags.get(entry.id, {})
    return replace(entry, scores={**entry.scores, **scores}, flags={**entry.flags, **flags})


def rebased(posted: Posted, *, seen: Standing, newest: Standing) -> Posted:
    """The form of somebody who was overtaken over the newer verdict: what they changed stays, the rest is the newer."""
    own_scores, own_flags = _score_edits(seen, posted), _flag_edits(seen, posted)
    scores, flags, places = {}, {}, {}
    for letter, id in newest.letters.items():
        entry = newest.entries[id]
        own = own_scores.get(id, {})
        scores[letter] = {c: own.get(c, entry.scores.get(c, "")) for c in CRITERIA}
        set_now = {flag: bool(entry.flags.get(flag)) for flag in FLAGS} | dict(own_flags.get(id, {}))
        flags[letter] = frozenset(flag for flag, raised in set_now.items() if raised)
        was, now = posted.drawn.get(letter) or seen.seats.get(id), newest.seats.get(id)
        typed = posted.places.get(letter)
        if typed is not None and was and typed != was[1]:
            places[letter] = typed
        elif now:
            places[letter] = now[1]
    return replace(posted, verdict=newest.verdict.pk, scores=scores, flags=flags, places=places, drawn={})


def _score_edits(standing: Standing, posted: Posted) -> dict[str, dict[str, int]]:
    edits: dict[str, dict[str, int]] = {}
    for letter, typed in posted.scores.items():
        if (id := standing.letters.get(letter)) is None:
            continue
        was = standing.entries[id].scores
        changed = {c: s for c, s in typed.items() if isinstance(s, int) and s != was.get(c)}
        if changed:
            edits[id] = changed
    return edits


def _flag_edits(standing: Standing, posted: Posted) -> dict[str, dict[str, bool]]:
    edits = {}
    for letter, raised in posted.flags.items():
        if (id := standing.letters.get(letter)) is None:
            continue
        was = standing.entries[id].flags
        changed = {flag: flag in raised for flag in FLAGS if (flag in raised) != bool(was.get(flag))}
        if changed:
            edits[id] = changed
    return edits


def _citations(standing: Standing, posted: Posted, errors: list[str]) -> dict[str, tuple[Cited, ...]]:
    found: dict[str, tuple[Cited, ...]] = {}
    for row in posted.citations:
        id = standing.letters.get(row.letter)
        if row.citation is None:
            continue
        if id is None:
            errors.append(f"Citation {row.n}: {row.letter or 'nobody'} is not ranked here")
            continue
        cited = Cited(row.about or "revision", replace(row.citation, candidate=id))
        found[id] = (*found.get(id, ()), cited)
    return found


def is_scored(entry: CandidateReply) -> bool:
    return all(type(entry.scores.get(c)) is int and LOWEST <= entry.scores[c] <= HIGHEST for c in CRITERIA)


def as_candidate(entry: CandidateReply) -> Candidate:
    scores = {c: entry.scores[c] for c in CRITERIA}
    return Candidate(entry.id, scores, frozenset(f for f, raised in entry.flags.items() if raised and f in FLAGS))


def wanted_order(
    by_score: Ranking, seats: Seats, drawn: Seats, places: Mapping[str, int], *, edited: set[str]
) -> Order | None:
    """The order that the places of a form ask for; None where it is the order by weighted score.

    A place counts only where it differs from the one that the page drew in the same tier: a card that changed its tier
    since, or was pushed by one that did, follows its score.
    """
    order = {tier: _tier_order(tier, by_score[tier], seats, drawn, places, edited=edited) for tier in TIERS}
    same = all(list(map(set, order[tier])) == list(map(set, by_score[tier])) for tier in TIERS)
    return None if same else {TIER_NAMES[tier]: groups for tier, groups in order.items()}


def _tier_order(tier: int, tied_groups, seats: Seats, drawn: Seats, places: Mapping[str, int], *, edited: set[str]):
    members = [id for tied in tied_groups for id in tied]
    stayed = {id: drawn[id][1] for id in members if drawn.get(id, (0, 0))[0] == tier}
    if any(places.get(id, place) != place for id, place in stayed.items()):
        return _joined(_grouped({id: places.get(id, place) for id, place in stayed.items()}), tied_groups)
    untouched = not edited & set(members) and {id for id, seat in seats.items() if seat[0] == tier} == set(members)
    return _grouped({id: seats[id][1] for id in members}) if untouched and members else tied_groups


def _grouped(place: Mapping[str, int]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(id for id in place if place[id] == here) for here in sorted(set(place.values())))


def _joined(moved, tied_groups) -> tuple[tuple[str, ...], ...]:
    """The order of those whom a person moved, and those who came to the tier since where their scores put them."""
    rank_of = {id: n for n, tied in enumerate(tied_groups) for id in tied}
    order = list(moved)
    for n, tied in enumerate(tied_groups):
        if not (came := tuple(id for id in tied if not any(id in group for group in moved))):
            continue
        equal = next((at for at, group in enumerate(order) if {rank_of[id] for id in group} == {n}), None)
        if equal is not None:
            order[equal] += came
        else:
            below = (at for at, group in enumerate(order) if min(rank_of[id] for id in group) > n)
            order.insert(next(below, len(order)), came)
    return tuple(order)
