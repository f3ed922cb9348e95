"""REST twins of the job's socket: the same rows and numbered messages, for jobs behind a proxy and for observers."""

from typing import Annotated

import msgspec
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from grading.errors import Fenced, GradingError, NotFound, WrongShape
from grading.ingest.api import REFUSALS, whole_parameter
from grading.ingest.machine_view import MachineView
from grading.ingest.reading import read_json
from training_bridge import delivery, intake
from training_bridge.protocol import messages
from training_bridge.protocol.sessions import ServerSession
from training_bridge.protocol.wire import encode

PAGE = 256
AFTER = OpenApiParameter("after", int, description="Rows after this seq; 0 from the start.")
EPOCH = OpenApiParameter("epoch", int, description="The cursor's epoch; another one than the stream's starts anew.")


def read_message(request, shape):
    """The body in one of the protocol's own shapes, or WrongShape naming the field."""
    try:
        return msgspec.convert(read_json(request), shape)
    except msgspec.ValidationError as wrong:
        raise WrongShape("the body has another shape", got=str(wrong), expected=shape.__doc__) from None


def refusal_of(refused: messages.ProtocolError) -> GradingError:
    """What a socket would be closed with, as REST says it."""
    kinds = {messages.CloseCode.FENCED: Fenced, messages.CloseCode.UNKNOWN_LIFE: NotFound}
    kind = kinds.get(refused.code, WrongShape)
    where = "life" if refused.code in kinds else refused.what
    return kind(refused.what, got=refused.got, expected=refused.expected, where=where)


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


class Resume(msgspec.Struct):
    """{life, epoch, after_seq, digest?, estimator}"""

    life: messages.Ordinal
    epoch: messages.Count
    after_seq: messages.Count
    estimator: messages.Estimator
    digest: messages.Digest | None = None


class End(msgspec.Struct):
    """{why?}"""

    why: Annotated[str, msgspec.Meta(max_length=80, pattern=r"\A[^\x00]*\Z")] = ""


class Receipts(msgspec.Struct):
    """{life, receipts: [{n, life, group, version, status, step}]}"""

    life: messages.Ordinal
    receipts: list[NumberedReceipt]


class NumberedMetrics(msgspec.Struct):
    """{n, step, values, units?}"""

    n: messages.Ordinal
    step: messages.Small
    values: dict[messages.MetricName, float | messages.NonFinite]
    units: dict[messages.MetricName, messages.Unit] | None = None


class Metrics(msgspec.Struct):
    """{life, metrics: [{n, step, values, units?}]}"""

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


class ResumeTwin(MachineView):
    access = "token:train"

    @extend_schema(request=OpenApiTypes.OBJECT, responses={200: OpenApiTypes.OBJECT} | REFUSALS)
    def post(self, request, run):
        """Where a job without a socket stands, and how it centres; answered as on the socket, with a welcome."""
        run, said = self.run_of(run), read_message(request, Resume)
        session = ServerSession()
        try:
            resume = session.receive(encode(messages.Resume(**msgspec.structs.asdict(said))))
            intake.begin(run, session, resume)
        except messages.ProtocolError as refused:
            raise refusal_of(refused) from None
        [welcome] = session.replies()
        return Response(msgspec.json.decode(welcome) | {"after_seq": session.sent})


class LifeEnd(MachineView):
    access = "token:train"

    @extend_schema(request=OpenApiTypes.OBJECT, responses={204: None} | REFUSALS)
    def post(self, request, run, n):
        """The process ends by itself: the run counts as ended at once, not as silent. A second call changes nothing."""
        intake.end_life(self.run_of(run), n, why=read_message(request, End).why)
        return Response(status=204)


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
