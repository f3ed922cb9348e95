"""The trajectory page: a page of events, one opened body, a bounded search, jumps, facts."""

import time
from functools import lru_cache
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.safestring import mark_safe

from grading import bodies
from grading.integrity.events import event_text
from grading.models import Signal, Trajectory
from grading.review.pages import evidence
from grading.review.pages.ansi import to_html
from grading.review.pages.columns import no_events_words
from grading.review.pages.event_words import exit_code_of, kind_of, line_of, parts_of, time_of
from grading.review.pages.sitting import Sitting
from grading.templatetags.figures import words as plain_words

EVENTS_AT_ONCE = 100
CHARS_AT_ONCE = 4_000_000
BEFORE = 10  # events shown above the one asked for
SHOWN_CHARS = 64_000
HITS = 200
SEARCHED_CHARS = 60_000_000
SEARCH_S = 4.0
JUMPS = (("edit", "first edit"), ("test", "first test run"), ("submit", "submit"))
JUMP_EVENTS, JUMP_CHARS = 5_000, 20_000_000


def trajectory_page(sitting: Sitting, trajectory: Trajectory, query: dict) -> dict:
    """The whole context of grading/trajectory.html, or of its part with events."""
    words, search_in = query.get("q", "").strip()[:200], query.get("in", "this")
    signals = Signal.objects.filter(trajectory=trajectory).order_by("-is_strong", "pk")
    current = [e for e in evidence.split(sitting, trajectory)[0]]
    cited = [evidence.item(sitting, e, trajectory, e.number, ()) for e in current]
    context = {
        "group": sitting.group,
        "letter": trajectory.letter,
        "outcome": trajectory.outcome,
        "integrity": trajectory.integrity,
        "event_count": trajectory.event_count,
        "dropped": 0,
        "letters": [{"letter": letter} for letter in sorted(sitting.by_letter, key=lambda one: (len(one), one))],
        "query": words,
        "search_in": search_in,
        "hits": None,
        "no_events_words": no_events_words(trajectory),
        "jumps": jumps(trajectory.event_body) if trajectory.event_body else [],
        "cited": [item for item in cited if item["href"].startswith(event_url(sitting, trajectory))],
        "facts": facts(sitting, trajectory),
        "signals": evidence.signal_rows(sitting, trajectory, signals, ()),
        "log_url": reverse("trajectory-log", args=[sitting.group.pk, trajectory.letter]) if trajectory.log else "",
        "log_bytes": trajectory.log_bytes,
    }
    if words:
        searched = sitting.trajectories if search_in == "all" else [trajectory]
        return context | search(searched, words)
    return context | event_page(sitting, trajectory, query)


def event_url(sitting: Sitting, trajectory: Trajectory) -> str:
    return reverse("trajectory", args=[sitting.group.pk, trajectory.letter])


def event_page(sitting: Sitting, trajectory: Trajectory, query: dict) -> dict:
    """Events from where the reader is; reading stops at 100 or 4 million characters."""
    base, count = event_url(sitting, trajectory), trajectory.event_count or 0
    at, after = _number(query.get("at")), _number(query.get("after"))
    side = query.get("side", "") if query.get("side") in ("L", "R") else ""
    start = max(0, at - BEFORE) if at is not None else 0 if after is None else after + 1
    cited = evidence.cited_events(sitting, trajectory)
    events, chars = [], 0
    for index, event in enumerate(_read(trajectory, start, start + EVENTS_AT_ONCE), start):
        text = event_text(event)
        chars += len(text)
        opened = body_of(sitting, trajectory, index, event) if index == at else None
        events.append(_row(sitting, trajectory, index, event, size=len(text), cited=cited.get(index, ()), body=opened))
        if chars > CHARS_AT_ONCE and (at is None or index >= at):
            break
    last = start + len(events)
    more = {"side": side} if side else {}
    before = {"after": max(start - EVENTS_AT_ONCE, 0) - 1, **more}
    return {
        "events": events,
        "letter": trajectory.letter,
        "side": side,
        "before_url": f"{base}?{urlencode(before)}" if start and start <= count else "",
        "after_url": f"{base}?{urlencode({'after': last - 1, **more})}" if events and last < count else "",
    }


def _number(text: str | None) -> int | None:
    """A number of the address; -1 is before the first event."""
    digits = (text or "").removeprefix("-")
    return max(int(text), -1) if digits.isdecimal() and len(digits) < 10 else None


def _read(trajectory: Trajectory, start: int, stop: int):
    return bodies.iter_events(trajectory.event_body, start, stop) if trajectory.event_body else iter(())


def _row(sitting: Sitting, trajectory: Trajectory, index: int, event: dict, **known) -> dict:
    return {
        "index": index,
        "at": time_of(event),
        "kind": kind_of(event),
        "url": reverse("event", args=[sitting.group.pk, trajectory.letter, index]),
        "line": line_of(event),
        "exit_code": exit_code_of(event),
        **known,
    }


def find_event(trajectory: Trajectory, index: int) -> dict | None:
    return next(iter(_read(trajectory, index, index + 1)), None)


def body_of(sitting: Sitting, trajectory: Trajectory, index: int, event: dict) -> dict:
    """One opened event, at most 64,000 characters of it."""
    url = reverse("event", args=[sitting.group.pk, trajectory.letter, index])
    parts, left, size = [], SHOWN_CHARS, 0
    for part in parts_of(event):
        size += len(part.text)
        if left > 0:
            html = to_html(part.text[:left])
            parts.append({"title": part.title, "html": mark_safe(html)})  # noqa: S308  (ansi escapes)
            left -= len(part.text)
    code = exit_code_of(event)
    cite = {"right": trajectory.letter, "cite_letter": trajectory.letter, "cite_kind": "event", "cite_place": index}
    return {
        "index": index,
        "words": kind_of(event) + (f" · exit {code}" if code is not None else ""),
        "size": size,
        "cut": size > SHOWN_CHARS,
        "shown": min(size, SHOWN_CHARS),
        "whole_url": f"{url}?part=whole",
        "url": f"{event_url(sitting, trajectory)}?at={index}#e{index}",
        "cite_url": f"{reverse('group', args=[sitting.group.pk])}?{urlencode(cite)}" if sitting.is_reviewer else "",
        "parts": parts,
    }


def search(trajectories: list[Trajectory], words: str) -> dict:
    """Events that hold these words, upper and lower case alike. It ends at 200 hits, 60 million characters or 4 s."""
    wanted, hits, chars, until = words.casefold(), [], 0, time.monotonic() + SEARCH_S
    for trajectory in trajectories:
        for index, event in enumerate(_read(trajectory, 0, trajectory.event_count or 0)):
            text = event_text(event)
            chars += len(text)
            if wanted in text.casefold():
                hit = {
                    "letter": trajectory.letter,
                    "index": index,
                    "kind": kind_of(event),
                    "line": _around(text, words),
                }
                hits.append(hit)
            if len(hits) >= HITS or chars > SEARCHED_CHARS or time.monotonic() > until:
                return {"hits": hits, "hits_cut": True}
    return {"hits": hits, "hits_cut": False}


def _around(text: str, words: str) -> str:
    """The line with the first hit."""
    line = next((line for line in text.split("\n") if words.casefold() in line.casefold()), text)
    at = max(line.casefold().find(words.casefold()) - 60, 0)
    return ("…" if at else "") + line_of({"text": line[at:]})


@lru_cache(maxsize=512)
def jumps(event_body: str) -> list[dict]:
    """The first edit, the first test run, the submission; looked for in the first 5,000 events."""
    found, chars = {}, 0
    for index, event in enumerate(bodies.iter_events(event_body, 0, JUMP_EVENTS)):
        found.setdefault(kind_of(event), index)
        chars += len(event_text(event))
        if chars > JUMP_CHARS or all(kind in found for kind, _ in JUMPS):
            break
    return [{"words": words, "index": found[kind]} for kind, words in JUMPS if kind in found]


def _count_words(value) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else value


def facts(sitting: Sitting, trajectory: Trajectory) -> list[dict]:
    """Counts of the rollout; who it is and which model made it only once the group is decided."""
    found = {"patch": f"{trajectory.patch_bytes:,} bytes" if trajectory.patch else "none"}
    found |= {name: _count_words(value) for name, value in trajectory.counts.items()}
    if trajectory.is_truncated:
        found["truncated"] = "yes"
    if trajectory.reward:
        found["reward"] = trajectory.reward
    if trajectory.problem:
        found["problem"] = plain_words(trajectory.problem)
    if sitting.is_revealed:
        found |= {"rollout": trajectory.external_id, **trajectory.extra}
    return [{"name": plain_words(name), "value": value} for name, value in found.items()]
