"""What happened to a group since its page was opened: a claim, a newer verdict, a decision, another review."""

from grading.review import decisions
from grading.review.pages.sitting import Sitting

SEEN = ("verdict", "version", "claim", "in")


def seen_now(sitting: Sitting) -> dict:
    """What the page shows now, as its address asks for news later. Nothing of a hidden verdict is in it."""
    claim = sitting.claim
    return {
        "verdict": sitting.verdict.pk if sitting.verdict else 0,
        "version": sitting.group.version,
        "claim": claim.name if claim and not claim.is_you else "",
        "in": len(sitting.round.submitted),
    }


def news_of(sitting: Sitting, query: dict) -> dict:
    """What differs from what the page has seen, in words for an alert; falsy where nothing does."""
    now, group = seen_now(sitting), sitting.group
    changed = {name for name in SEEN if name in query and query[name] != str(now[name])}
    decision = sitting.decision if "version" in changed else None
    return {
        "verdict": sitting.verdict if "verdict" in changed and sitting.verdict else None,
        "is_correction": bool(sitting.verdict and sitting.verdict.grader == decisions.PERSON),
        "decision": decision,
        "is_own": bool(decision and decision.user_id == sitting.user.pk),
        "claim": now["claim"] if "claim" in changed else None,
        "is_free": "claim" in changed and not now["claim"] and group.is_open,
        "reviews": f"{now['in']} of {group.reviews_wanted}" if "in" in changed and sitting.round.is_shared else "",
    }
