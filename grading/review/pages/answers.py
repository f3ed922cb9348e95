"""The independent reviews of a group side by side, and a stale page's edits beside the newer verdict."""

from urllib.parse import urlencode

from django.urls import reverse

from grading.grader.wire import read
from grading.models import Verdict
from grading.review.blind_form import PostedOrder
from grading.review.drafts import Draft, is_ranked
from grading.review.pages.bodies_read import patch_of
from grading.review.pages.comments import comments_of
from grading.review.pages.news import seen_now
from grading.review.pages.ranking import twins_words
from grading.review.pages.sitting import Sitting
from grading.review.pages.versions import Version, table
from grading.review.rounds import DECIDING, Turn
from grading.scoring.criteria import FLAGS
from grading.scoring.tiers import TIER_NAMES, TIERS
from grading.templatetags.figures import words as plain


def round_words(sitting: Sitting) -> dict:
    """What the page says about the round, and whether this person may let one answer count."""
    found, turn = sitting.round, sitting.turn
    return {
        "turn": str(turn),
        "wanted": found.group.reviews_wanted,
        "is_shared": found.asks_several,
        "in": len(found.submitted),
        "why": found.why_not_decide(sitting.user) if sitting.is_reviewer else "",
        "may_count": found.asks_several and turn in DECIDING and not sitting.why_not_decide,
        "is_declined": bool(sitting.review and sitting.review.state == sitting.review.State.DECLINED),
        "comments": comments_of(sitting),
        "seen": urlencode(seen_now(sitting)),
        "blind": blind_fields(sitting) if sitting.is_hidden else None,
        "may_decline": sitting.is_reviewer and found.is_on and turn in (Turn.BLIND, Turn.REVIEW, Turn.DECIDE),
    }


def blind_fields(sitting: Sitting, posted: PostedOrder | None = None) -> dict:
    """The candidates to place, in the order drawn for this person; as typed where a form comes back."""
    ranked = [t for t in sitting.trajectories if is_ranked(t, sitting.group)]
    cards = [
        {
            "letter": t.letter,
            "place": posted.typed.get(t.letter, "") if posted else "",
            "tier": posted.tiers.get(t.letter) if posted else None,
            "flags": [
                {"key": flag, "label": plain(flag), "is_set": bool(posted and flag in posted.flags.get(t.letter, ()))}
                for flag in FLAGS
            ],
            "words": size_words_of(t),
            "twins": twins_words(t, sitting),
        }
        for t in ranked
    ]
    return {"cards": cards, "notes": posted.notes if posted else ""}


def size_words_of(trajectory) -> str:
    """What can be said of a candidate without judging it."""
    patch = patch_of(trajectory)
    files = len(patch.files)
    return f"{files} file{'s' * (files != 1)}, +{patch.added:,} −{patch.removed:,}"


def reviews_table(sitting: Sitting) -> dict | None:
    """The verdict and each answer that is in; None while others' answers are hidden from this person, or none is in."""
    if sitting.hides_others or not sitting.round.is_shared or not sitting.round.submitted:
        return None
    versions = [verdict_version(sitting, sitting.verdict)] if sitting.verdict else []
    for row in sitting.round.submitted:
        entries = {entry.id: entry for entry in read(row.answer["reply"])[0].candidates}
        version = Version(
            title="changed it" if row.answer["is_changed"] else "found it right",
            by=row.reviewer.name,
            entries=entries,
            ranking=row.answer["ranking"],
            words=sitting.lettered(row.notes),
            at=row.submitted_at,
            pk=row.pk,
            is_yours=row.reviewer_id == sitting.user.pk,
        )
        versions.append(version)
    return {"versions": versions, "rows": table(sitting, versions), "differs": sitting.round.differs}


def verdict_version(sitting: Sitting, verdict: Verdict) -> Version:
    entries = {entry.id: entry for entry in read(verdict.reply)[0].candidates if entry.id in sitting.letter_of}
    return Version(
        title=f"verdict {verdict.number}",
        by=verdict.said_by,
        entries=entries,
        ranking=verdict.ranking,
        words=sitting.lettered(verdict.reason),
        at=verdict.created_at,
        url=reverse("verdict", args=[sitting.group.pk, verdict.pk]),
    )


def conflict_table(sitting: Sitting, seen: Verdict | None, mine: Draft | None, reason: str) -> dict:
    """What this person saw, the newer verdict, and what they typed, as it would be saved on top of the newer one."""
    theirs = verdict_version(sitting, sitting.verdict)
    versions = [verdict_version(sitting, seen)] if seen and seen.pk != sitting.verdict.pk else []
    versions.append(theirs)
    if mine is not None:
        grades = mine.grades
        ranking = {TIER_NAMES[t]: grades.ranking[t] for t in TIERS} if grades else {}
        versions.append(Version("not saved", "you", mine.entries, ranking, words=reason, is_yours=True))
    return {
        "by": sitting.verdict.said_by,
        "at": sitting.verdict.created_at,
        "number": sitting.verdict.number,
        "is_only_stale": mine is None,
        "versions": versions,
        "rows": table(sitting, versions),
    }
