"""One rollout as the server's ingest reads it. Pure: from the job's values to JSON bytes, whatever text they hold."""

import base64
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from training_bridge.client.errors import GagarError, check_name

Event = Mapping[str, Any]
Events = Iterable[Event] | Callable[[], Iterable[Event]]
OUTCOMES = ("passed", "failed", "infra_invalid")


def trajectory_fields(
    group: str,
    external_id: str,
    *,
    outcome: str,
    reward: float | None,
    patch: bytes | str | None,
    tests: Iterable[Mapping[str, Any]] | None,
    counts: Mapping[str, float] | None,
    truncated: bool,
    policy_version: int | str | None,
) -> dict[str, Any]:
    """Write one rollout without its body.

    Args:
        group: key of the group.
        external_id: the rollout's id, unique in the run and life.
        outcome: `passed`, `failed` or `infra_invalid`.
        reward: shaped reward, any float, non-finite ones too; None where the outcome is all.
        patch: the unified diff; bytes that are no UTF-8 text travel as base64.
        tests: `{name, status, message?}` each.
        counts: turns, tokens, seconds, dollars; non-finite ones are left out.
        truncated: whether the rollout hit a limit.
        policy_version: of the policy that wrote it, if it differs from the group's.
    Returns:
        The JSON-able trajectory of the ingest API.
    Raises:
        GagarError: another outcome, or an id no message could carry.
    """
    _check(external_id, outcome)
    fields: dict[str, Any] = {"group": group, "external_id": external_id, "outcome": outcome, "truncated": truncated}
    if patch is not None:
        fields |= text_or_base64("patch", patch)
    said = {
        "reward": None if reward is None else _reward(float(reward)),
        "tests": None if tests is None else [dict(test) for test in tests],
        "counts": None if counts is None else {name: n for name, n in counts.items() if math.isfinite(n)},
        "policy_version": policy_version,
    }
    return fields | {name: value for name, value in said.items() if value is not None}


def amendment_fields(external_id: str, outcome: str, reward: float | None, reason: str) -> dict[str, Any]:
    """Write one amendment.

    Args:
        external_id: of the rollout.
        outcome: as it counts from now on.
        reward: shaped reward, any float; None leaves it as it is.
        reason: for the group's history.
    Returns:
        The JSON-able body, without the life.
    Raises:
        GagarError: another outcome, no reason, or an id no message could carry.
    """
    _check(external_id, outcome)
    if not reason.strip() or len(reason) > 2000:
        expected = "1 to 2000 characters that say why"
        raise GagarError("reason of an amendment", got=f"{len(reason)} characters", expected=expected)
    said = {"external_id": external_id, "outcome": outcome, "reason": reason}
    return said if reward is None else said | {"reward": _reward(float(reward))}


def task_fields(
    statement: str, repository: str | bytes | None, base_commit: str | None, reference_patch: bytes | str | None
) -> dict[str, Any]:
    """Write one task.

    Args:
        statement: the problem as the policy reads it.
        repository: a git URL, a sha256, or the archive itself, which is named by its sha256.
        base_commit: what the patches apply to.
        reference_patch: a known solution.
    Returns:
        The JSON-able task of the ingest API, without what is None.
    """
    fields: dict[str, Any] = {"statement": statement}
    if repository is not None:
        is_archive = isinstance(repository, bytes)
        fields["repository"] = hashlib.sha256(repository).hexdigest() if is_archive else repository
    if base_commit is not None:
        fields["base_commit"] = base_commit
    if reference_patch is not None:
        fields |= text_or_base64("reference_patch", reference_patch)
    return fields


def _check(external_id: str, outcome: str) -> None:
    if outcome not in OUTCOMES:
        raise GagarError(f"outcome of rollout {external_id!r}", got=repr(outcome), expected=" | ".join(OUTCOMES))
    check_name("external_id", external_id)


def text_or_base64(name: str, value: bytes | str) -> dict[str, str]:
    """Name a text so that JSON can carry it.

    Args:
        name: of the field.
        value: text or bytes.
    Returns:
        `{name: text}`, or `{name_base64: …}` where it is not UTF-8, or holds a NUL that no database text takes.
    """
    raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)
    if b"\0" not in raw:
        try:
            return {name: raw.decode()}
        except UnicodeDecodeError:
            pass
    return {f"{name}_base64": base64.b64encode(raw).decode()}


def to_json(value: Any) -> bytes:
    """Write JSON that every reader takes: no NaN, no lone surrogate, no NUL.

    Args:
        value: JSON-able; numpy scalars and unknown objects become numbers or their `str`.
    Returns:
        UTF-8 bytes without a line break.
    """
    try:
        text = msgspec.json.encode(value, enc_hook=_plain)
    except UnicodeEncodeError:
        text = msgspec.json.encode(_clean(value), enc_hook=_plain)
    return msgspec.json.encode(_clean(value), enc_hook=_plain) if rb"\u0000" in text else text


def body_lines(fields: Mapping[str, Any], events: Iterable[bytes], log: bytes | None) -> Iterator[bytes]:
    """Write the second post of a rollout: the same canonical fields, then its events.

    Args:
        fields: from `trajectory_fields`.
        events: one JSON object each, from `event_json`.
        log: the evaluation's output.
    Yields:
        NDJSON lines.
    """
    head = {"type": "trajectory", **fields, **(text_or_base64("log", log) if log is not None else {})}
    events = iter(events)
    if (first := next(events, None)) is None:
        yield to_json({**head, "events": []}) + b"\n"  # said, or the server would wait for them until its deadline
    else:
        yield to_json(head) + b"\n" + first + b"\n"
    for event in events:
        yield event + b"\n"
    yield b'{"type":"end"}\n'


def event_json(event: Event) -> bytes:
    """Write one event as a line of `body_lines`. Args: event, as the job has it."""
    return to_json({"type": "event", **{key: value for key, value in event.items() if key != "type"}})


def _reward(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _plain(value: Any) -> Any:
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return value.item()
    return str(value)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    if isinstance(value, Mapping):
        return {_clean(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
