"""Held groups near their deadline: said once, on pages and to the run's webhook, from the sweep."""

import logging
from collections import defaultdict
from datetime import timedelta

from django.db.models import Q

from grading import clock, wake
from grading.models import Notice, RolloutGroup, Run
from grading.review import webhook

log = logging.getLogger(__name__)
NEAR_S = 300.0  # a review deadline is near when this is left, or a quarter of the time where that is less
NEAR_SHARE = 0.25
AT_ONCE = 200  # groups named in one message; the count says how many there are


def near_s(total_s: float | None) -> float:
    """How many seconds before a deadline it is near, given how long the review may take in all."""
    return NEAR_S if total_s is None else min(NEAR_S, NEAR_SHARE * total_s)


def near(now, groups=None):
    """The held groups (among `groups`) whose deadline comes soon and has not passed, the nearest first."""
    soon = now + timedelta(seconds=NEAR_S)
    held = (RolloutGroup.objects.all() if groups is None else groups).awaiting_review().order_by("review_by", "pk")
    return held.filter(Q(review_by__gt=now, review_by__lte=soon) | Q(wanted_by__gt=now, wanted_by__lte=soon))


def is_near(group: RolloutGroup, now) -> bool:
    """Whether the time left is short against the time that the review had."""
    if group.deadline is None:
        return False
    total = (group.deadline - group.graded_at).total_seconds() if group.graded_at else None
    return 0 < (group.deadline - now).total_seconds() <= near_s(total)


def send_due() -> int:
    """Mark the groups that came near their deadline, ring their pages and call their webhooks. Returns how many."""
    now, by_run = clock.now(), defaultdict(list)
    for group in near(now).filter(noticed_at=None).select_related("run", "task"):
        if is_near(group, now) and RolloutGroup.objects.filter(pk=group.pk, noticed_at=None).update(noticed_at=now):
            by_run[group.run].append(group)
    for run, groups in by_run.items():
        wake.pages(run.pk)
        if run.webhook_url:
            _tell(run, groups)
    return sum(map(len, by_run.values()))


def _tell(run: Run, groups: list[RolloutGroup]) -> None:
    """One message, whatever becomes of it: a second one would be as likely to come twice as the first to be lost."""
    id = f"deadline-{groups[0].pk}-{int(groups[0].deadline.timestamp())}"
    is_sent, words = webhook.call(run, message(run, groups), id=id)
    if not is_sent:
        log.warning("the webhook of run %s did not hear of %d groups: %s", run.public_id, len(groups), words)
    Notice.objects.create(run=run, url=run.webhook_url, groups=len(groups), is_sent=is_sent, words=words[:300])


def message(run: Run, groups: list[RolloutGroup]) -> dict:
    """What a webhook is sent."""
    return {
        "type": "deadline_near",
        "run": run.public_id,
        "count": len(groups),
        "groups": [
            {"id": g.pk, "key": g.key, "task": g.task.key, "step": g.step, "deadline": g.deadline.isoformat()}
            for g in groups[:AT_ONCE]
        ],
    }
