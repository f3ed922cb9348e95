"""The left column of the review page: tiers with their cards, whom nobody ranks, and the failed ones as context."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from grading.grader.shape import CandidateReply
from grading.models import Trajectory
from grading.review.correction_form import Posted
from grading.review.drafts import Draft, as_candidate, is_ranked, is_scored
from grading.review.pages.sitting import Sitting
from grading.review.twins import ORDER
from grading.scoring.criteria import CRITERIA, FLAGS
from grading.scoring.grades import Grades, grade
from grading.scoring.tiers import TIERS
from grading.templatetags.figures import factor as factor_words
from grading.templatetags.figures import words as plain

UNSCORED = 0  # the lane of those whom the verdict gives no scores
LETTERS = {"approach": "A", "precision": "P", "minimality": "M", "side_effects": "S", "consistency": "C"}
CRITERION_CHOICES = [{"key": c, "label": plain(c), "initial": LETTERS[c]} for c in CRITERIA]
ABOUT_CHOICES = [*({"key": k, "label": plain(k)} for k in (*CRITERIA, *FLAGS)), {"key": "revision", "label": "order"}]


@dataclass
class Card:
    """One ranked candidate; `value` and `place` are the draft's, `was` and `was_place` those of the verdict."""

    letter: str
    scores: list[dict]
    w: float | None
    factor: float | None
    flags: list[dict]
    flag_choices: list[dict]
    place: int | str
    was_place: int | str
    is_tied: bool = False
    tie_first: bool = False
    tie_last: bool = False
    twins: str = ""  # letters of those who submitted the identical patch
    moved: str = ""  # letters of the twins that a move of this one takes along; scores and flags have theirs


@dataclass
class Lane:
    tier: int
    note: str = ""
    cards: list[Card] = field(default_factory=list)


def ranking(sitting: Sitting, draft: Draft | None = None, posted: Posted | None = None) -> dict:
    """Context of the ranking. With a draft the cards stand where its scores put them."""
    ranked = [t for t in sitting.trajectories if is_ranked(t, sitting.group)]
    lanes = _lanes(sitting, ranked, draft, posted) if sitting.standing else []
    carded = {card.letter for lane in lanes for card in lane.cards}
    passes = [t for t in ranked if t.letter not in carded]
    others = [t for t in sitting.trajectories if not is_ranked(t, sitting.group)]
    return {
        "is_draft": bool(draft and (draft.is_edited or posted.is_unread)),
        "criteria": CRITERION_CHOICES,
        "lanes": lanes,
        "unranked": [{"letter": t.letter, "words": "passed", "twins": twins_words(t, sitting)} for t in passes],
        "context_cards": [
            {"letter": t.letter, "words": sitting.words_of(t), "twins": twins_words(t, sitting)} for t in others
        ],
    }


def _lanes(sitting: Sitting, ranked: list[Trajectory], draft: Draft | None, posted: Posted | None) -> list[Lane]:
    standing = sitting.standing
    entries = draft.entries if draft else standing.entries
    grades = _grades(sitting, entries, draft)
    in_order = [t.external_id for t in ranked]
    lanes = [Lane(tier) for tier in TIERS]
    for lane in lanes:
        for place, tied in enumerate(grades.ranking[lane.tier], 1):
            members = sorted(tied, key=in_order.index)
            for n, id in enumerate(members):
                card = _card(entries[id], sitting, grades, place, posted=posted, draft=draft)
                if draft and id in draft.unmoved:
                    card.place = draft.typed.get(id, place)
                    card.was_place = draft.unmoved[id]  # pushed by a score is not moved by hand
                card.is_tied, card.tie_first, card.tie_last = len(tied) > 1, n == 0, n == len(members) - 1
                lane.cards.append(card)
        lane.note = _note(lane)
    unscored = Lane(UNSCORED, "give every score to rank it")
    unscored.cards = [
        _card(entries[id], sitting, grades, "", posted=posted, draft=draft) for id in in_order if id not in grades.tier
    ]
    return [*lanes, unscored] if unscored.cards else lanes


def _grades(sitting: Sitting, entries: Mapping[str, CandidateReply], draft: Draft | None) -> Grades:
    """What the draft or the valid verdict says; else what follows from the scores that are whole."""
    if draft and draft.grades:
        return draft.grades
    candidates = [as_candidate(entry) for entry in entries.values() if is_scored(entry)]
    ids = {c.id for c in candidates}
    order = sitting.verdict.ranking if not draft and sitting.verdict.is_valid else None
    if order and {id for groups in order.values() for tied in groups for id in tied} != ids:
        order = None
    return grade(candidates, sitting.standing.rubric, order)


def _card(
    entry: CandidateReply, sitting: Sitting, grades: Grades, place, *, posted: Posted | None, draft: Draft | None
) -> Card:
    id, letter = entry.id, sitting.letter_of[entry.id]
    was = sitting.standing.entries[id]
    raised = [flag for flag in FLAGS if entry.flags.get(flag)]
    ticked = posted.flags.get(letter, raised) if posted else raised  # as typed: what a twin takes over can be undone
    weighted = grades.weighted_score.get(id)
    followers = draft.followers.get(id, {}) if draft else {}
    moved = {about: ", ".join(sorted(sitting.letter_of[twin] for twin in twins)) for about, twins in followers.items()}
    typed = posted.scores.get(letter, {}) if posted else {}
    scores = _scores(entry, was, typed, draft.taken.get(id, {}) if draft else {})
    return Card(
        letter=letter,
        scores=[
            score | {"reason": sitting.lettered(entry.reasons.get(c, "")), "moved": moved.get(c, "")}
            for c, score in scores.items()
        ],
        w=None if weighted is None else float(weighted),
        factor=None if weighted is None else float(grades.factor[id]),
        flags=[{"label": plain(flag)} for flag in raised],
        flag_choices=[
            {
                "key": flag,
                "label": plain(flag),
                "is_set": flag in ticked,
                "was": bool(was.flags.get(flag)),
                "moved": moved.get(flag, ""),
            }
            for flag in FLAGS
        ],
        place=place,
        was_place=sitting.standing.seats.get(id, (0, ""))[1],
        moved=moved.get(ORDER, ""),
        twins=twins_words(sitting.by_letter[letter], sitting),
    )


def _scores(entry: CandidateReply, was: CandidateReply, typed: Mapping, taken: Mapping[str, int]) -> dict[str, dict]:
    """By criterion: as typed, or as a twin has it, which is then where an edit of one's own starts from."""
    return {
        c: {
            "key": c,
            "label": plain(c),
            "value": taken.get(c, typed.get(c, entry.scores.get(c, ""))),
            "was": taken.get(c, was.scores.get(c, "")),
            "is_taken": c in taken,
        }
        for c in CRITERIA
    }


def twins_words(trajectory: Trajectory, sitting: Sitting) -> str:
    """Letters of those with byte for byte the same patch; a patch's key is the digest of its content."""
    same = [t.letter for t in sitting.trajectories if t.patch and t.patch == trajectory.patch and t != trajectory]
    return ", ".join(sorted(same))


def _note(lane: Lane) -> str:
    factors = list(dict.fromkeys(card.factor for card in lane.cards))
    if not factors:
        return ""
    if lane.tier == 1:
        return "full" if len(factors) == 1 else f"first full, next {factor_words(factors[1])}"
    if lane.tier == 2 and len(factors) > 1:
        return f"{factor_words(factors[0])} down to {factor_words(factors[-1])}"
    return f"all {factor_words(factors[0])}" if len(lane.cards) > 1 else factor_words(factors[0])
