"""What happened to a group, in order: moves and notes, verdicts, decisions, findings. And one verdict as it was."""

from collections import Counter

from django.urls import reverse

from grading.grader.wire import read
from grading.models import Finding, Grading, Verdict
from grading.review import decisions
from grading.review.pages import comments, evidence
from grading.review.pages.group_page import problem_words
from grading.review.pages.ranking import CRITERION_CHOICES, Lane
from grading.review.pages.sitting import Sitting
from grading.review.pages.versions import Version, order_words, table
from grading.scoring.criteria import CRITERIA
from grading.scoring.tiers import TIERS
from grading.templatetags.figures import words

MOST_ROWS = 2_000
MOST_CHANGES = 20


def history_page(sitting: Sitting) -> dict:
    rows = [*_events(sitting), *_verdicts(sitting), *_reviews(sitting), *_findings(sitting), *_comments(sitting)]
    letters = sorted(sitting.by_letter)
    return {"group": sitting.group, "letters": letters, "rows": sorted(rows, key=lambda row: row["at"])}


def verdict_url(sitting: Sitting, pk: int) -> str:
    return reverse("verdict", args=[sitting.group.pk, pk])


def _events(sitting: Sitting) -> list[dict]:
    """Moves of the group. A decision is the move it makes; verdicts and findings have rows of their own."""
    rows = []
    for event in sitting.group.events.order_by("pk")[:MOST_ROWS]:
        if event.old == event.new and (event.details.get("verdict") or event.details.get("finding")):
            continue
        decided = event.details.get("decision")
        kind = event.details.get("kind")
        verdict = event.details.get("verdict") if decided else None
        rows.append(
            {
                "at": event.at,
                "what": f"decision {decided}: {kind}" if decided else "moved" if event.old != event.new else "noted",
                "by": event.by,
                "old": event.old if event.old != event.new or decided else "",
                "new": f"{event.new}, version {decided}" if decided else event.new if event.old != event.new else "",
                "why": sitting.lettered(event.reason),
                "url": verdict_url(sitting, verdict) if verdict else "",
            }
        )
    return rows


def _verdicts(sitting: Sitting) -> list[dict]:
    if sitting.is_hidden:
        return []
    rows, last, versions = [], {}, {}
    for verdict in sitting.group.verdicts.select_related("author").order_by("pk")[:MOST_ROWS]:
        order = order_words(verdict.ranking, sitting.letter_of)
        what = "correction" if verdict.grader == decisions.PERSON else "recount" if verdict.parent_id else "verdict"
        why = verdict.reason or ("" if verdict.is_valid else f"not valid: {len(verdict.problems)} problems")
        rows.append(
            {
                "at": verdict.created_at,
                "what": what if verdict.purpose == "training" else f"{verdict.purpose} verdict",
                "by": verdict.said_by,
                "changes": changes(sitting, versions.get(verdict.parent_id), verdict),
                "old": last.get(verdict.parent_id, ""),
                "new": order,
                "why": sitting.lettered(why),
                "url": verdict_url(sitting, verdict.pk),
            }
        )
        last[verdict.pk], versions[verdict.pk] = order, verdict
    return rows


def changes(sitting: Sitting, parent: Verdict | None, verdict: Verdict) -> list[str]:
    """Which scores, flags and places differ from the verdict that it corrects, from what to what."""
    if parent is None:
        return []
    pair = [Version("", "", entries_of(v), v.ranking) for v in (parent, verdict)]
    rows = [row for row in table(sitting, pair)[:-1] if row["differs"]]
    said = [f"{row['label']}: {row['cells'][0]['text']} → {row['cells'][1]['text']}" for row in rows]
    return said if len(said) <= MOST_CHANGES else [*said[:MOST_CHANGES], f"and {len(said) - MOST_CHANGES} more"]


def entries_of(verdict: Verdict) -> dict:
    return {entry.id: entry for entry in read(verdict.reply)[0].candidates}


def _reviews(sitting: Sitting) -> list[dict]:
    """Orders given blind and answers given alone; others' only where they are not hidden from this person."""
    rows = []
    for row in sitting.round.rows:
        if sitting.hides_others and row.reviewer_id != sitting.user.pk:
            continue
        told = {"by": row.reviewer.name, "url": "", "old": ""}
        if row.blind:
            new = blind_words(row.blind["order"], sitting.letter_of)
            why = sitting.lettered(row.blind["notes"])
            rows.append({"at": row.ranked_at, "what": "order before the verdict", "new": new, "why": why, **told})
        if row.submitted_at and row.answer and sitting.round.is_shared:
            new = order_words(row.answer["ranking"], sitting.letter_of)
            what = "review: changed" if row.answer["is_changed"] else "review: right"
            rows.append({"at": row.submitted_at, "what": what, "new": new, "why": sitting.lettered(row.notes), **told})
    return rows


def blind_words(order, letters) -> str:
    return " > ".join("=".join(letters.get(id, "?") for id in tied) for tied in order)


def _comments(sitting: Sitting) -> list[dict]:
    return [
        {"at": c.at, "what": "comment", "by": c.author.name, "old": "", "new": "", "why": c.text, "url": ""}
        for c in comments.visible(sitting)[:MOST_ROWS]
    ]


def _findings(sitting: Sitting) -> list[dict]:
    rows = Finding.objects.filter(trajectory__in=list(sitting.by_pk)).order_by("pk")[:MOST_ROWS]
    return [
        {
            "at": finding.at,
            "what": f"{finding.kind or 'finding withdrawn'} {sitting.by_pk[finding.trajectory_id].letter}",
            "by": finding.by,
            "old": "",
            "new": f"confirmed {finding.kind}" if finding.kind else "counts as its tests say",
            "why": sitting.lettered(finding.reason),
            "url": verdict_url(sitting, finding.verdict_id) if finding.verdict_id else "",
        }
        for finding in rows
    ]


def verdict_page(sitting: Sitting, verdict: Verdict) -> dict:
    """One verdict as it was, also where a newer one stands."""
    verdict.number = next((v.number for v in sitting.verdicts if v.pk == verdict.pk), verdict.pk)
    then = Sitting(sitting.group, sitting.user)
    then.verdicts, then.trajectories = [verdict], sitting.trajectories
    shown = {
        "pk": verdict.pk,
        "number": verdict.number,
        "said_by": verdict.said_by,
        "created_at": verdict.created_at,
        "purpose": verdict.purpose,
        "grading": Grading.objects.filter(verdict=verdict).values_list("pk", flat=True).first(),
        "rubric": verdict.rubric,
        "reason": sitting.lettered(verdict.reason),
        "is_valid": verdict.is_valid,
        "problems": [sitting.lettered(problem_words(problem)) for problem in verdict.problems],
    }
    parts = evidence.parts(then, [t.letter for t in sitting.trajectories])
    for part in parts:
        for item in part["items"]:
            item["title"] = f"{part['letter']} {item['title']}"
    return {
        "group": sitting.group,
        "verdict": shown,
        "criteria": CRITERION_CHOICES,
        "lanes": _lanes(then),
        "evidence": [part for part in parts if part["items"]],
    }


def _lanes(then: Sitting) -> list[Lane]:
    """Tiers as the verdict stored them, whatever the rollouts count as by now."""
    lanes = {tier: Lane(tier) for tier in TIERS}
    ties = Counter((placed.tier, placed.rank) for placed in then.placements)
    for placed in then.placements:
        if placed.trajectory_id in then.by_pk:
            letter = then.by_pk[placed.trajectory_id].letter
            card = {
                "letter": letter,
                "is_tied": ties[placed.tier, placed.rank] > 1,
                "scores": [{"value": placed.scores.get(c)} for c in CRITERIA],
                "w": placed.weighted_score,
                "factor": placed.factor,
                "flags": [{"label": words(flag)} for flag in placed.flags],
            }
            lanes[placed.tier].cards.append(card)
    return list(lanes.values())
