"""What receipts add to the sums of their groups' steps: too late, used how late, the job's own numbers."""

from grading.models import RolloutGroup
from training_bridge.models import Delivery, Receipt
from training_bridge.monitor import step_sums
from training_bridge.monitor.sums import Sums, added
from training_bridge.protocol import messages

Placed = list[tuple[RolloutGroup, messages.Receipt]]
APPLIED = Receipt.Status.APPLIED


def count(run: int, placed: Placed) -> None:
    """Count receipts that are not stored yet, each at the step of its own group."""
    if not placed:
        return
    sent = _sent_after(placed)
    own = {group.pk for group, said in placed if said.version == 0 and said.status == APPLIED}
    known = Receipt.objects.filter(group__in=own, version=0, status=APPLIED)
    own -= set(known.values_list("group", flat=True))  # said again by a later life
    changes: dict[int, Sums] = {group.step: {} for group, _ in placed}
    for group, said in placed:
        changes[group.step] = added(changes[group.step], _one(group, said, sent.get((group.pk, said.version))))
    for group in {group.pk: group for group, _ in placed if group.pk in own}.values():
        changes[group.step] = added(changes[group.step], {"own": 1})
    step_sums.tell(run, changes.items())


def _one(group: RolloutGroup, said: messages.Receipt, sent_after_s: float | None) -> Sums:
    if said.version == 0:
        return {}
    found: Sums = {f"told_{said.status}": 1}
    if said.status == APPLIED:
        found |= {"used": 1, "used_after_steps": max(0, said.step - group.step)}
        if sent_after_s is not None:
            found |= {"sent": 1, "sent_after_s": sent_after_s, "max_sent_after_s": sent_after_s}
    return found


def _sent_after(placed: Placed) -> dict[tuple[int, int], float]:
    """Seconds from decision to socket, by group and version; nothing where the job fetched the row by REST."""
    applied = {(group.pk, said.version) for group, said in placed if said.version and said.status == APPLIED}
    rows = Delivery.objects.filter(group__in={group for group, _ in applied}, sent_at__isnull=False)
    found: dict[tuple[int, int], float] = {}
    for group, version, sent_at, decided_at in rows.values_list("group", "version", "sent_at", "decision__at"):
        lag_s = max(0.0, (sent_at - decided_at).total_seconds())
        found[group, version] = min(lag_s, found.get((group, version), lag_s))  # another epoch sends it again
    return {place: lag for place, lag in found.items() if place in applied}
