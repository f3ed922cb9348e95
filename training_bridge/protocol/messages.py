"""Every message of the socket `gagar.v1` and the one table of close codes; `wire.py` reads and writes them."""

from enum import IntEnum
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

SUBPROTOCOL = "gagar.v1"
LIMIT_BYTES = 256 * 1024  # a message is smaller than this
WINDOW = 256  # rows in flight that the job has not acknowledged
MAX_INT = 2**63 - 1
METRIC_CHARS = 80


class CloseCode(IntEnum):
    """Why a socket is closed. The client stops for good on a code in `FATAL`, and reconnects on any other."""

    BAD_MESSAGE = 4400, "a message that is not JSON, too large, of the wrong shape, or in the wrong state"
    TOKEN = 4401, "the machine token is unknown or revoked"
    REFUSED = 4403, "an Origin header, or a token without the purpose `train`"
    NO_RUN = 4404, "no such run for this token"
    FENCED = 4409, "a newer life of the job, or a newer socket of the same life, holds the stream"
    ESTIMATOR = 4410, "the trainer's estimator would change the numbers"
    GAP = 4411, "a sequence number that does not follow, or an acknowledgement of a row never sent"
    UNKNOWN_LIFE = 4412, "a life that this server never issued: its database was restored; get another and come back"
    WINDOW = 4429, "more rows in flight than the credit window allows"
    RESTART = 1012, "the server restarts; come back"

    def __new__(cls, code: int, meaning: str) -> "CloseCode":
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member


FATAL = frozenset({CloseCode.TOKEN, CloseCode.REFUSED, CloseCode.NO_RUN, CloseCode.FENCED, CloseCode.ESTIMATOR})


class ProtocolError(Exception):
    """The other side broke the protocol: what, got, expected, and the close code that ends the socket."""

    def __init__(self, what: str, *, got: object, expected: object, code: CloseCode = CloseCode.BAD_MESSAGE):
        super().__init__(f"{what}: got {got}, expected {expected}")
        self.what, self.got, self.expected, self.code = what, str(got), str(expected), code

    @property
    def reason(self) -> str:
        """The text for the close frame, cut to the 123 bytes RFC 6455 leaves for it."""
        return str(self).encode("utf-8", "replace")[:123].decode("utf-8", "ignore")


Count = Annotated[int, Meta(ge=0, le=MAX_INT)]
Ordinal = Annotated[int, Meta(ge=1, le=MAX_INT)]
Small = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # what a database's integer holds: steps and versions
Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\A[^\x00]+\Z")]
Unit = Annotated[str, Meta(max_length=20, pattern=r"\A[^\x00]*\Z")]
MetricName = Annotated[str, Meta(min_length=1, max_length=METRIC_CHARS, pattern=r"\A[^\x00]+\Z")]
Text = Annotated[str, Meta(max_length=4000, pattern=r"\A[^\x00]*\Z")]
Digest = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Mode = Literal["normal", "outcome_only"]
Outcome = Literal["passed", "failed", "infra_invalid"]
Regime = Literal["exact", "bounded", "clipped", "fallback", "baseline", "ineligible", "filtered", "excluded"]
ReceiptStatus = Literal["applied", "superseded", "too_late", "expired", "not_used"]
NonFinite = Literal["NaN", "Infinity", "-Infinity"]


class Estimator(msgspec.Struct, frozen=True, kw_only=True):
    """How the trainer centres and normalises. Free words: a value we do not know is refused by name, not unread.

    `std`: none, ddof0, ddof1; `eps`: added to a divisor; `clip`: bound of rewards or advantages; `cap`: the lambda_max
    the trainer counts on, null for whatever the run has; `shaped`: rewards beside the binary outcome are sent.
    """

    name: Text = "gagar"
    baseline: Text = "mean"
    std: Text = "none"
    eps: float | None = None
    clip: float | None = None
    cap: float | None = None
    shaped: bool = False
    space: Text = "advantage"
    loss: Text = ""


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """One JSON object on the socket; the field `type` names it."""


class Resume(Message, frozen=True, kw_only=True, tag="resume"):
    """Job: where I stand. `after_seq` 0 is the start; `digest` is the sha256 of the text of row `after_seq`."""

    life: Ordinal
    epoch: Count
    after_seq: Count
    digest: Digest | None = None
    estimator: Estimator


class Welcome(Message, frozen=True, kw_only=True, tag="welcome"):
    """Server: every row after the cursor follows; from row 1 when `epoch` is not the one of the resume.

    `estimator` is that of the resume with the run's own `cap`. `noted` as in `Noted`, null from an older server: less
    than was noted before means that the database was restored, and the job numbers on from there.
    """

    epoch: Ordinal
    head_seq: Count
    estimator: Estimator
    window: Ordinal
    mode: Mode
    mask_truncated: bool = False  # the run leaves truncated rollouts out of its statistics
    noted: Count | None = None


class AdvantageRow(msgspec.Struct, frozen=True, kw_only=True):
    """One rollout in both spaces. `reward` and `equivalent_reward` are null on invalid rows, `factor` without rank."""

    trajectory: Name
    outcome: Outcome
    integrity: Literal["leak", "hack"] | None = None
    reward: float | None
    equivalent_reward: float | None
    advantage: float
    factor: float | None


class Advantages(Message, frozen=True, kw_only=True, tag="advantages"):
    """Server, a stream row: one decision of one group. `version` counts the group's decisions from 1."""

    seq: Ordinal
    group: Name
    life: Ordinal
    version: Ordinal
    step: Count
    policy_version: int | Text | None = None
    regime: Regime
    reason: Text | None = None
    train: bool
    lambda_: float | None = msgspec.field(name="lambda", default=None)
    capped: bool = False
    inverted_by_reward: bool = False
    rows: tuple[AdvantageRow, ...]
    verdict: int | Text | None = None
    rubric: int | Text | None = None
    method: Text | None = None
    neutral_when_equal: bool = False
    decided_by: Text | None = None
    history_head: Text | None = None


class Control(Message, frozen=True, kw_only=True, tag="control"):
    """Server, a stream row: the pause button."""

    seq: Ordinal
    mode: Mode
    reason: Text | None = None


class Want(Message, frozen=True, kw_only=True, tag="want"):
    """Job: I freeze a batch with these groups in `within_s` seconds; decide them before."""

    life: Ordinal
    groups: tuple[Name, ...]
    within_s: Annotated[float, Meta(ge=0, le=1e9)]


class Received(Message, frozen=True, kw_only=True, tag="received"):
    """Job: every row up to `seq` is in my buffer. Opens the credit window."""

    seq: Count


class Durable(Message, frozen=True, kw_only=True, tag="durable"):
    """Job: every row up to `seq` is covered by a checkpoint on disk."""

    seq: Count


class Receipt(Message, frozen=True, kw_only=True, tag="receipt"):
    """Job: what became of one version of one group. `life` is the group's, `n` counts within the life of the job."""

    n: Ordinal
    life: Ordinal
    group: Name
    version: Small
    status: ReceiptStatus
    step: Small


class Metrics(Message, frozen=True, kw_only=True, tag="metrics"):
    """Job: the numbers of one step; non-finite ones travel as words. `units` of those that have one, when new."""

    n: Ordinal
    step: Small
    values: dict[MetricName, float | NonFinite]
    units: dict[MetricName, Unit] | None = None


class Noted(Message, frozen=True, kw_only=True, tag="noted"):
    """Server: every receipt and metrics message up to `n` of this life is stored."""

    n: Count


class Error(Message, frozen=True, kw_only=True, tag="error"):
    """Either side, before it closes the socket."""

    code: int
    message: str


Row = Advantages | Control
Numbered = Receipt | Metrics
JobMessage = Resume | Want | Received | Durable | Receipt | Metrics | Error
ServerMessage = Welcome | Advantages | Control | Noted | Error
