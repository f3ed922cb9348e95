"""A few plain alerts, told anew from the rows at each look."""

from collections.abc import Iterator
from urllib.parse import urlencode

from django.urls import reverse

from training_bridge.models import Receipt
from training_bridge.monitor import derived, standing
from training_bridge.monitor.standing import LAST_STEPS, Standing

ENOUGH = 8  # groups, before a share says anything
HIGH_FALLBACK = 0.25
HIGH_CAP = 0.75
LATE_SHARE = 0.1
UNWANTED = (Receipt.Status.TOO_LATE, Receipt.Status.EXPIRED)


def alerts_of(here: Standing) -> list[dict]:
    """All that needs a look, the gravest first."""
    found = [*_silence(here), *_numbers(here), *_fallbacks(here), *_cap(here), *_lateness(here)]
    return sorted(found, key=lambda alert: not alert["is_danger"])


def _alert(here: Standing, title: str, words: str, detail: str, *, is_danger=False, groups: dict | None = None) -> dict:
    url = f"{reverse('groups')}?{urlencode({'run': here.run.public_id} | groups)}" if groups is not None else ""
    return {
        "title": title, "words": words, "detail": detail, "at": None, "url": url, "is_done": False,
        "is_danger": is_danger,
    }  # fmt: skip


def _silence(here: Standing) -> Iterator[dict]:
    if here.state == standing.SILENT:
        groups = f"{here.undecided} group{' is' if here.undecided == 1 else 's are'} undecided"
        detail = f"It ended, it hangs, or it cannot reach this server; {groups}."
        minutes = int((here.now - here.heard_at).total_seconds() // 60)
        alert = _alert(here, "The job is silent", f"for {minutes} min", detail, is_danger=True)
        yield alert | {"at": here.heard_at}
    if here.unsent:
        detail = "The job is connected and takes none: its credit window may be full, or it hangs."
        yield _alert(here, "Deliveries wait", f"{here.unsent} rows are stored and not sent", detail)


def _numbers(here: Standing) -> Iterator[dict]:
    for name, word in here.broken_metrics:
        detail = "The curve has a gap there; the row is kept."
        yield _alert(here, f"{name} is {word}", f"at step {here.step}", detail, is_danger=True)
    if here.sums.get("refused"):
        words = f"in {here.sums['refused']} groups"
        detail = "The factors could not be used; outcome advantages went out. The server's log names the rows."
        yield _alert(here, "Numbers refused", words, detail, is_danger=True, groups={})
    if here.sums.get("inverted"):
        words = f"in {here.sums['inverted']} groups of the last {LAST_STEPS} steps"
        detail = "A failure stands above a pass by its own shaped reward, before anything was redistributed."
        yield _alert(here, "Inverted rewards", words, detail, groups={})


def _fallbacks(here: Standing) -> Iterator[dict]:
    sums = here.sums
    if sums.get("trained", 0) < ENOUGH or sums["by_shadow"] or sums["by_pause"]:
        return  # outcome advantages are what was asked for
    if here.fallback_share > HIGH_FALLBACK:
        words = f"{here.fallback_share:.0%} of the last {LAST_STEPS} steps"
        detail = f"Most often: {derived.common_reason(sums)}. These groups train on outcome advantages."
        yield _alert(here, "Fallback share is high", words, detail, groups={})


def _cap(here: Standing) -> Iterator[dict]:
    redistributed = here.sums.get("redistributed", 0)
    if redistributed < ENOUGH or here.sums["bounded"] / redistributed <= HIGH_CAP:
        return
    kept = here.sums["paid"] / here.sums["due"] if here.sums["due"] else 1.0
    words = f"in {here.sums['bounded'] / redistributed:.0%} of the redistributed groups"
    detail = f"Credit kept is {kept:.0%} over the last {LAST_STEPS} steps."
    yield _alert(here, "The cap on lambda binds often", words, detail)


def _lateness(here: Standing) -> Iterator[dict]:
    late, total = sum(here.receipts.get(status, 0) for status in UNWANTED), sum(here.receipts.values())
    if total >= ENOUGH and late / total >= LATE_SHARE:
        detail = "The job had trained without them. Shorter deadlines, or a job that holds groups longer, would help."
        words = f"{late} of {total} in the last {LAST_STEPS} steps"
        yield _alert(here, "Deliveries come late", words, detail, groups={})
