"""What stored rows pay, counted after they can be sent: no row waits for the sums of the monitor."""

from django.db import transaction
from django.db.models import F

from grading import wake
from grading.models import Run
from grading.states import ENDED
from training_bridge import due, payouts
from training_bridge.due import Made
from training_bridge.models import Delivery, Stream

BATCH = 128


def pay(run: Run, made: Made | None = None) -> None:
    """Count the rows of the run that are not counted yet.

    made: from `delivery.store`; what other rows pay is made again from their decisions, as for a new epoch.
    """
    if not Stream.objects.filter(run=run, owes=True).exists():
        return
    while _pay_batch(run, made or {}):
        pass
    wake.ring(wake.pages_of(run.pk), "page.changed")


@transaction.atomic
def _pay_batch(run: Run, made: Made) -> bool:
    """Count the next rows, in the order in which they were stored. Returns whether more may wait.

    A row that has to be made again, and whose group was decided anew or reopened meanwhile, pays nothing: what it would
    pay now was never sent. That group's next row pays.
    """
    stream = Stream.objects.select_for_update(no_key=True).get(run=run)
    waiting = Delivery.objects.filter(stream=stream, pk__gt=stream.paid_to).order_by("pk")
    rows = list(waiting.values_list("pk", "decision", "group")[:BATCH])
    unmade = {group for _, decision, group in rows if decision is not None and decision not in made}
    if unmade:
        made = made | due.made(run, list(due.locked(run).filter(pk__in=unmade, state__in=ENDED)))
    newest = {group: made[decision] for _, decision, group in rows if decision in made}
    if newest:
        payouts.store(payouts.payouts(*zip(*newest.values(), strict=True)))
    stream.paid_to, stream.owes = rows[-1][0] if rows else stream.paid_to, len(rows) == BATCH
    stream.save(update_fields=["paid_to", "owes"])
    return stream.owes


def uncounted(run: Run):
    """The rows of the run, of groups, that wait to be counted."""
    after = Stream.objects.filter(run=run, owes=True)
    return Delivery.objects.filter(stream__in=after, pk__gt=F("stream__paid_to"), group__isnull=False)
