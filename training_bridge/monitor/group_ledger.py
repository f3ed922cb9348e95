"""Where each group of a run stands on its way into an optimiser step: one place a group, so that they add up."""

from django.db.models import Case, Count, Exists, F, IntegerField, Max, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Mod

from grading.models import RolloutGroup, Run
from training_bridge.intake import rolled_back
from training_bridge.models import Delivery, Receipt, Stream
from training_bridge.monitor.ledger import ON_THE_WAY, acknowledged, count_by_status, reached, status_of

UNDECIDED, OWN = "undecided", "own_numbers"
PLACES = (UNDECIDED, *ON_THE_WAY, *Receipt.Status.values, OWN)
APPLIED = Receipt.Status.APPLIED
CODES = {status: code for code, status in enumerate((*ON_THE_WAY, *Receipt.Status.values))}
CURRENT, VERSION = 100, 1000  # weights: of two rows of a group the higher version counts, then the epoch of now


def places(run: Run, stream: Stream | None) -> list[dict]:
    """How many groups stand where; they sum to the groups of the run. Empty places are left out.

    A group with one row stands where its row does: those are counted over a narrow index. Groups with more to say are
    few (corrected ones, uses of the job's own numbers, rows of an older epoch) and are looked at one by one.
    """
    total = RolloutGroup.objects.filter(run=run).count()
    counts = dict.fromkeys(PLACES, 0)
    if stream is not None:
        reach = acknowledged(stream)
        several = _of_several(stream)
        of_now = Delivery.objects.filter(stream=stream, epoch=stream.epoch).order_by()
        apart = of_now.filter(Q(group__in=several) | Q(group=None))  # a pause has no group
        for name, n in count_by_status(of_now, *reach).items():
            counts[name] += n
        for name, n in count_by_status(apart, *reach).items():
            counts[name] -= n
        for name, n in _placed(stream, several).items():
            counts[name] += n
        undelivered = _own(run).exclude(Exists(_rows(stream).filter(group=OuterRef("group"))))
        counts[OWN] += undelivered.aggregate(n=Count("group", distinct=True))["n"]
    counts[UNDECIDED] = total - sum(counts.values())
    return [{"words": name.replace("_", " "), "n": counts[name]} for name in PLACES if counts[name]]


def _of_several(stream: Stream) -> QuerySet:
    """Groups whose place is not that of a single row of the current epoch. A union: an OR would read every row."""
    corrected, own = _rows(stream).filter(version__gt=1), _own(stream.run_id)
    older = _rows(stream).filter(epoch__lt=stream.epoch)
    return corrected.values("group").union(own.values("group"), *([older.values("group")] if stream.epoch > 1 else ()))


def _placed(stream: Stream, few: QuerySet) -> dict[str, int]:
    """Of these groups with a row: what was applied at all, else what the job did on its own, else the newest row."""
    received, durable = acknowledged(stream)
    current = Q(epoch=stream.epoch)
    way = [When(current & reached(name, received, durable), then=Value(CODES[name])) for name in ON_THE_WAY]
    told = [When(receipt=status, then=Value(CODES[status])) for status in Receipt.Status.values]
    older = When(~current & Q(sent_at__isnull=False), then=Value(CODES["sent"]))
    code = Case(*told, *way, older, default=Value(0), output_field=IntegerField())
    of_now = Case(When(current, then=Value(CURRENT)), default=Value(0), output_field=IntegerField())
    newest = Max(F("version") * VERSION + of_now + code, output_field=IntegerField())
    used = Max(Case(When(receipt=APPLIED, then=Value(1)), default=Value(0), output_field=IntegerField()))
    groups = _rows(stream).filter(group__in=few).values("group").annotate(newest=newest, used=used)
    groups = groups.annotate(
        place=Case(
            When(used=1, then=Value(CODES[APPLIED])),
            default=Mod("newest", CURRENT, output_field=IntegerField()),
            output_field=IntegerField(),
        )
    )
    mine = Q(group__in=_own(stream.run).values("group")) & ~Q(place=CODES[APPLIED])
    named = {name: Count("group", filter=Q(place=code) & ~mine) for name, code in CODES.items()}
    return groups.aggregate(**named, own_numbers=Count("group", filter=mine))


def _rows(stream: Stream) -> QuerySet:
    return Delivery.objects.filter(stream=stream, group__isnull=False).order_by()


def _own(run: Run | int) -> QuerySet:
    """Uses of the job's own numbers that no later life has taken back, see `intake.rolled_back`."""
    later = Receipt.objects.filter(
        group=OuterRef("group"), status=Receipt.Status.NOT_USED, life__gt=OuterRef("life"), pk__gt=OuterRef("pk")
    )
    return Receipt.objects.filter(run=run, version=0, status=APPLIED).exclude(Exists(later)).order_by()


def versions(group: RolloutGroup) -> dict:
    """Every row of one group with its receipts and how far it came, the newest first, and where the group stands.

    `own`: receipts for numbers of the job's own; `is_rolled_back`: their use went with the parameters of its life;
    `several_lives`: more than one spoke of the group.
    """
    found = list(group.deliveries.select_related("stream").defer("text").order_by("-epoch", "-seq"))
    newest = max((row.version for row in found), default=0)
    receipts: dict[int, list[Receipt]] = {}
    for receipt in group.receipts.select_related("life"):
        receipts.setdefault(receipt.version, []).append(receipt)
    reach = acknowledged(found[0].stream) if found else (0, 0)
    for row in found:
        row.superseded = row.version < newest
        is_current = row.epoch == row.stream.epoch
        row.place = status_of(row, *(reach if is_current else (0, 0)))
    shown = [{"delivery": row, "receipts": receipts.get(row.version, [])} for row in found]
    own, undone = receipts.get(0, []), rolled_back(r for said in receipts.values() for r in said)
    lives = {receipt.life_id for said in receipts.values() for receipt in said}
    place = _place(found, own, undone=undone)
    return {"rows": shown, "own": own, "several_lives": len(lives) > 1, "is_rolled_back": undone, "place": place}


def _place(rows: list[Delivery], own: list[Receipt], *, undone: bool) -> str:
    """In words, with the step of its use."""
    if used := next((row for row in rows if row.receipt == APPLIED), None):
        return f"version {used.version} applied at step {used.used_at}"
    mine = [receipt for receipt in own if receipt.status == APPLIED]
    if mine and not undone:
        return f"the job's own numbers applied at step {mine[-1].step}"
    return rows[0].place.replace("_", " ") if rows else UNDECIDED
