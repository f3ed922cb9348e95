"""Citations as links: to a line, an event or a result of the candidate that is shown, each with its state."""

from collections.abc import Iterable

from django.urls import reverse

from grading.models import Evidence, Trajectory
from grading.review.anchors import Citation, Place, Resolution
from grading.review.diffs import row_id
from grading.review.pages.bodies_read import patch_of, resolved
from grading.review.pages.sitting import Sitting
from grading.scoring.criteria import CRITERIA
from grading.templatetags.figures import words as plain

CHECK = "check:"  # begins the names of targeted checks among the results


def parts(sitting: Sitting, letters: Iterable[str]) -> list[dict]:
    """The evidence panel: for each letter the newest verdict's citations, and those only older verdicts have."""
    shown, found = tuple(letters), []
    tiers = {
        sitting.by_pk[p.trajectory_id].letter: p.tier for p in sitting.placements if p.trajectory_id in sitting.by_pk
    }
    for letter in dict.fromkeys(shown):
        trajectory = sitting.by_letter.get(letter)
        if trajectory is None:
            continue
        current, older = split(sitting, trajectory)
        found.append(
            {
                "letter": letter,
                "tier": tiers.get(letter),
                "items": _noted_once([item(sitting, e, trajectory, e.number, shown) for e in current]),
                "older": [item(sitting, e, trajectory, number_of(sitting, e), shown) for e in older],
            }
        )
    return found


def _noted_once(items: list[dict]) -> list[dict]:
    """Several citations of one score stand under its reason, once."""
    for before, here in zip(items[-2::-1], items[:0:-1], strict=True):
        if (before["title"], before["note"]) == (here["title"], here["note"]):
            here["note"] = ""
    return items


def split(sitting: Sitting, trajectory: Trajectory) -> tuple[list[Evidence], list[Evidence]]:
    """Evidence of the newest verdict, and what only superseded ones cite."""
    newest = sitting.verdict.pk if sitting.verdict else None
    mine = [e for e in sitting.evidence if e.trajectory_id == trajectory.pk]
    current = [e for e in mine if e.verdict_id == newest]
    seen = {(e.about, str(e.citation)) for e in current}
    older = {}
    for e in mine:
        if (key := (e.about, str(e.citation))) not in seen:
            older[key] = e
    return current, list(older.values())


def number_of(sitting: Sitting, evidence: Evidence) -> str:
    """A superseded citation is numbered with its verdict: 2.7 is the seventh of verdict 2."""
    numbers = {v.pk: v.number for v in sitting.verdicts}
    return f"{numbers[evidence.verdict_id]}.{evidence.number}"


def item(sitting: Sitting, evidence: Evidence, trajectory: Trajectory, number, shown: Iterable[str]) -> dict:
    """One citation: what it is about, where it stands, and the link there."""
    citation = Citation.from_json(evidence.citation)
    found = _resolved(sitting, citation, trajectory)
    place = found.place or _said(citation, trajectory)
    entry = sitting.standing.entries.get(trajectory.external_id) if sitting.standing else None
    title, note = plain(evidence.about), ""
    if evidence.about == "revision":
        title = "order"
    elif entry and evidence.about in CRITERIA:
        title = f"{title} {entry.scores.get(evidence.about, '')}"
        note = sitting.lettered(entry.reasons.get(evidence.about, ""))
    detail = ""
    if found.state != evidence.state and found.state in ("ambiguous", "lost"):
        detail = f"now, {evidence.state} when it was given"
    elif found.state == "moved":
        is_there = (citation.line, citation.event) == (place.line, place.event)
        detail = "white space differs" if is_there else f"from {citation.line}" if citation.line else ""
    return {
        "number": number,
        "title": title,
        "state": found.state,
        "detail": detail,
        "note": note,
        "quote": (citation.quote or "")[:600],
        **link(sitting, trajectory, place, shown),
    }


def _resolved(sitting: Sitting, citation: Citation, trajectory: Trajectory) -> Resolution:
    """Where it stands now: counted anew at each look, never taken from the row, which tells how it was given."""
    checks = sitting.checks.get(trajectory.patch, ()) if citation.kind == "result" else ()
    return resolved(citation, trajectory, checks)


def _said(citation: Citation, trajectory: Trajectory) -> Place:
    """Where a citation claims to stand, when nothing is there."""
    file = (
        next((n for n, _ in patch_of(trajectory).files_at(citation.path, citation.side)), None)
        if citation.path
        else None
    )
    return Place(
        citation.kind,
        citation.path,
        citation.side,
        citation.line,
        citation.line_end,
        file,
        citation.event,
        citation.result,
    )


def link(sitting: Sitting, trajectory: Trajectory, place: Place, shown: Iterable[str]) -> dict:
    """place in words, href, and the file that must open first."""
    letter, pk = trajectory.letter, sitting.group.pk
    others = [one for one in shown if one != letter]
    beside = f"left={others[0]}&right={letter}" if others else f"right={letter}"
    if place.kind == "event":
        return {
            "place": f"event {place.event}",
            "href": f"{reverse('trajectory', args=[pk, letter])}?at={place.event}#e{place.event}",
            "file_id": "",
        }
    if place.kind == "result":
        tab = "checks" if (place.result or "").startswith(CHECK) else "tests"
        href = f"{reverse('group', args=[pk])}?{beside}&tab={tab}"
        return {"place": f"result {place.result}", "href": href, "file_id": ""}
    words = f"{place.path}:{place.line}" + (f"-{place.line_end}" if place.line_end else "")
    words += " (removed)" if place.side == "old" else ""
    if place.file is None:
        return {"place": words, "href": f"{reverse('group', args=[pk])}?{beside}", "file_id": ""}
    anchor = f"#{row_id(letter, place.file, place.side, place.line)}"
    if letter in shown:
        return {"place": words, "href": anchor, "file_id": f"{letter}-f{place.file}"}
    return {"place": words, "href": f"{reverse('group', args=[pk])}?{beside}{anchor}", "file_id": ""}


def cited_lines(sitting: Sitting, trajectory: Trajectory) -> dict[int, dict]:
    """File index -> (side, line) -> numbers of the newest verdict's evidence that cites it."""
    files: dict[int, dict] = {}
    for evidence in split(sitting, trajectory)[0]:
        place = _resolved(sitting, Citation.from_json(evidence.citation), trajectory).place
        if place is None or place.kind != "patch_line" or place.file is None:
            continue
        lines = files.setdefault(place.file, {})
        for line in range(place.line, min(place.line_end or place.line, place.line + 500) + 1):
            lines.setdefault((place.side, line), []).append(evidence.number)
    return files


def cited_events(sitting: Sitting, trajectory: Trajectory) -> dict[int, list[int]]:
    """Event index -> numbers of the newest verdict's evidence that quotes it."""
    events: dict[int, list[int]] = {}
    for evidence in split(sitting, trajectory)[0]:
        citation = Citation.from_json(evidence.citation)
        if citation.kind == "event" and (place := resolved(citation, trajectory).place):
            events.setdefault(place.event, []).append(evidence.number)
    return events


def signal_rows(sitting: Sitting, trajectory: Trajectory, signals: Iterable, shown: Iterable[str]) -> list[dict]:
    """Detectors' hints with links to their places."""
    rows = []
    for signal in signals:
        where = {"place": "", "href": "", "file_id": ""}
        if signal.place:
            citation = Citation.from_json({**signal.place, "candidate": trajectory.external_id})
            where = link(
                sitting, trajectory, resolved(citation, trajectory).place or _said(citation, trajectory), shown
            )
        words = sitting.lettered(signal.words)
        rows.append(
            {
                "words": words,
                "detector": signal.detector,
                "is_strong": signal.is_strong,
                "is_wrong": signal.is_wrong,
                **where,
            }
        )
    return rows
