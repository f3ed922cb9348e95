"""What a checkpoint holds of the bridge, and how the next life reads it. Pure."""

from typing import Any

import msgspec

from training_bridge.client.errors import GagarError
from training_bridge.protocol.messages import Receipt


class Cursor(msgspec.Struct, kw_only=True):
    """What a checkpoint holds of the bridge, as JSON.

    Attributes:
        life: of the process that saved it; negative if no server had issued one.
        epoch, seq, digest: the last row held.
        step: the newest training step.
        mask_truncated: as the last welcome said.
        applied: [life, group, version, step] of every group used, oldest first; each (life, group) once.
        applied_dropped: how many older entries were left out to keep the checkpoint small.
        pending: [life, group, version] of rows held, and of numbers frozen, that are not used yet.
        unnoted: receipts and metrics the server has not confirmed.
    """

    format: int = 1
    run: str
    life: int
    epoch: int
    seq: int
    digest: str | None = None
    step: int = 0
    mask_truncated: bool = False
    applied: list[tuple[int, str, int, int]] = []
    applied_dropped: int = 0
    pending: list[tuple[int, str, int]] = []
    unnoted: list[dict[str, Any]] = []


def pending_receipts(saved: Cursor) -> list[Receipt]:
    """What an older life held and never used: nobody will.

    Args:
        saved: the checkpoint of that life.
    Returns:
        `not_used` receipts, still without a number.
    """
    return [
        Receipt(n=1, life=life, group=group, version=version, status="not_used", step=saved.step)
        for life, group, version in saved.pending
        if life > 0
    ]


def read_cursor(cursor: dict[str, Any]) -> Cursor:
    """Read what a checkpoint holds.

    Args:
        cursor: what `GagarClient.checkpoint` yielded, also after a trip through JSON or torch.
    Returns:
        The cursor.
    Raises:
        GagarError: it is something else, or of a format we do not know.
    """
    try:
        read = msgspec.convert(cursor, type=Cursor)
    except msgspec.ValidationError as error:
        raise GagarError("the cursor in the checkpoint", got=error, expected="what checkpoint() yielded") from error
    if read.format != 1:
        raise GagarError("the cursor in the checkpoint", got=f"format {read.format}", expected="format 1")
    return read
