"""Integrity hints of a group: every detector over every rollout, once, whoever grades it and whether or not."""

import logging

from django.db import transaction

from grading import clock
from grading.grader import gather
from grading.integrity.registry import detect
from grading.integrity.signals import Signal as Hint
from grading.models import RolloutGroup, Signal, Trajectory
from grading.storable import storable

log = logging.getLogger(__name__)


def inspect(group: RolloutGroup) -> None:
    """Run the integrity detectors over every rollout and keep their hints with their places."""
    found = []
    for trajectory in gather.counted(group):
        try:
            found += [_row(trajectory, signal) for signal in detect(*gather.inspected(trajectory))]
        except Exception as failure:  # a body that cannot be read must not stop every other group
            log.exception("rollout %s of group %s could not be inspected", trajectory, group.key)
            words = f"not inspected: {type(failure).__name__}: {failure}"
            found.append(_row(trajectory, Hint("", "weak", trajectory.external_id, None, words)))
    now = clock.now()
    with transaction.atomic():
        if RolloutGroup.objects.filter(pk=group.pk, inspected_at=None).update(inspected_at=now):
            Signal.objects.bulk_create(found)
    group.inspected_at = now


def _row(trajectory: Trajectory, signal: Hint) -> Signal:
    return Signal(
        trajectory=trajectory,
        group_id=trajectory.group_id,
        detector=signal.detector,
        is_strong=signal.strength == "strong",
        words=storable(signal.words)[:500],
        place=storable(signal.place.to_json()) if signal.place else {},
    )
