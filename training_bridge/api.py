"""REST twins of the job's socket: the same rows and numbered messages, for jobs behind a proxy and for observers."""

import msgspec
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from grading.errors import WrongShape
from grading.ingest.api import REFUSALS, whole_parameter
from grading.ingest.machine_view import MachineView
from grading.ingest.reading import read_json
from training_bridge import delivery, intake
from training_bridge.protocol import messages

PAGE = 256
AFTER = OpenApiParameter("after", int, description="Rows after this seq; 0 from the start.")
EPOCH = OpenApiParameter("epoch", int, description="The cursor's epoch; another one than the stream's starts anew.")


def read_message(request, shape):
    """The body in one of the protocol's own shapes, or WrongShape naming the field."""
    try:
        return msgspec.convert(read_json(request), shape)
    except msgspec.ValidationError as wrong:
        raise WrongShape("the body has another shape", got=str(wrong), expected=shape.__doc__) from None


class Acks(msgspec.Struct, forbid_unknown_fields=False):
    """{life, epoch, received?, durable?}"""

    life: messages.Ordinal
    epoch: messages.Ordinal
    received: messages.Count | None = None
    durable: messages.Count | None = None


class NumberedReceipt(msgspec.Struct):
    """{n, life, group, version, status, step}"""

    n: messages.Ordinal
    life: messages.Ordinal
    group: messages.Name
    version: messages.Small
    status: messages.ReceiptStatus
    step: messages.Small


class Receipts(msgspec.Struct):
    """{life, receipts: [{n, life, group, version, status, step}]}"""

    life: messages.Ordinal
    receipts: list[NumberedReceipt]


class NumberedMetrics(msgspec.Struct):
    """{n, step, values}"""

    n: messages.Ordinal
    step: messages.Small
    values: dict[messages.MetricName, float | messages.NonFinite]


class Metrics(msgspec.Struct):
    """{life, metrics: [{n, step, values}]}"""

    life: messages.Ordinal
    metrics: list[NumberedMetrics]


class AdvantagesTwin(MachineView):
    access = "token:train"

    @extend_schema(parameters=[AFTER, EPOCH], responses={200: OpenApiTypes.OBJECT} | REFUSALS)
    def get(self, request, run):
        """Stored rows in order, each as the JSON text that the socket sends, byte for byte. Gates nothing."""
        run = self.run_of(run)
        stream = delivery.stream_of(run)
        after = whole_parameter(request, "after", least=0, default=0)
        epoch = whole_parameter(request, "epoch", least=1, default=stream.epoch)
        found = delivery.peek(run, stream.epoch, after if epoch == stream.epoch else 0, PAGE)
        return Response(
            {
                "epoch": stream.epoch,
                "head_seq": stream.head_seq,
                "mode": stream.mode,
                "rows": [text for _, text in found],
            }
        )


class AcksTwin(MachineView):
    access = "token:train"

    @extend_schema(request=OpenApiTypes.OBJECT, responses={200: OpenApiTypes.OBJECT} | REFUSALS)
    def post(self, request, run):
        """Where the job stands: received, and durable once a checkpoint on disk covers it."""
        run, said = self.run_of(run), read_message(request, Acks)
        stream = intake.acknowledge_within(
            run, said.life, epoch=said.epoch, received=said.received, durable=said.durable
        )
        return Response({"epoch": stream.epoch, "head_seq": stream.head_seq})


class ReceiptsTwin(MachineView):
    access = "token:train"

    @extend_schema(request=OpenApiTypes.OBJECT, responses={200: OpenApiTypes.OBJECT} | REFUSALS)
    def post(self, request, run):
        """What the job did with versions of groups; numbered with the metrics, each stored once."""
        run, said = self.run_of(run), read_message(request, Receipts)
        sent = [messages.Receipt(**msgspec.structs.asdict(receipt)) for receipt in said.receipts]
        return Response({"noted": intake.note(intake.live(run, said.life), sent)})


class MetricsTwin(MachineView):
    access = "token:train"

    @extend_schema(request=OpenApiTypes.OBJECT, responses={200: OpenApiTypes.OBJECT} | REFUSALS)
    def post(self, request, run):
        """Scalars by step; non-finite ones as the words NaN, Infinity, -Infinity."""
        run, said = self.run_of(run), read_message(request, Metrics)
        sent = [messages.Metrics(**msgspec.structs.asdict(numbers)) for numbers in said.metrics]
        return Response({"noted": intake.note(intake.live(run, said.life), sent)})
