"""What comes over the wire, field by field. Each serializer is the wire shape: it validates, the step decides."""

from typing import Any

from rest_framework import serializers

from grading.errors import WrongShape
from grading.ingest.fields import Base64, Name, Numbers, OneOf, Reward, Text, Truth, Version, Whole, Wire, WireText
from grading.ingest.rollout import Rollout
from grading.states import Outcome

EVENT_KINDS = ("message", "action", "observation", "edit", "test", "submit", "system")
ATIF_SOURCES = ("system", "user", "agent")
TESTS_AT_MOST = 50_000
DECLARED_AT_MOST = 1_000  # groups of one request: a life waits while they are written
ROLLOUTS_AT_MOST = 512  # their advantages travel in one message of less than 256 KiB
NUMBER = (int, float)
EVENT_FIELDS = {  # of our smaller shape; null is "not said"
    "role": (str, "text"),
    "tool": (str, "text"),
    "exit_code": (int, "a whole number"),
    "duration_s": (NUMBER, "a number of seconds"),
    "at": ((str, *NUMBER), "a time as text or seconds"),
}


class LifeWire(Wire):
    job = Text(max_length=200, default="")


class TaskWire(Wire):
    statement = Text(max_length=1_000_000)
    repository = Text(max_length=500, default="")
    base_commit = Name(max_length=80, default="", allow_blank=True)
    reference_patch = WireText(required=False, allow_null=True)
    reference_patch_base64 = Base64(required=False, allow_null=True)


class GroupWire(Wire):
    life = Whole(min_value=1)
    task = Name()
    step = Whole()
    policy_version = Version(max_length=100, default="", allow_blank=True)
    group_size = Whole(
        min_value=1,
        max_value=ROLLOUTS_AT_MOST,
        error_messages={"max_value": "{max_value} rollouts at most: their advantages travel in one message"},
    )
    eligible = Truth(default=True)


class DeclarationWire(GroupWire):
    """One of several groups: the key stands in the body, the life beside them."""

    life = None
    key = Name()


class DeclarationsWire(Wire):
    life = Whole(min_value=1)
    groups = serializers.ListField(
        child=serializers.JSONField(),
        allow_empty=False,
        max_length=DECLARED_AT_MOST,
        error_messages={"max_length": "{max_length} groups at most"},
    )


class DeclarationsSchema(DeclarationsWire):
    """The same for the API's schema: each item is checked on its own."""

    groups = DeclarationWire(many=True)


class TestWire(Wire):
    name = Text(max_length=2000)
    status = Text(max_length=40)
    message = Text(max_length=100_000, required=False, allow_null=True)

    def to_internal_value(self, data):
        return {name: value for name, value in super().to_internal_value(data).items() if value is not None}


class TrajectoryWire(Wire):
    """One rollout. A second post of the same `external_id` may bring `events` and `log` alone."""

    group = Name()
    external_id = Name()
    outcome = OneOf(Outcome.choices, required=False, help_text="required in the first post of a rollout")
    reward = Reward(required=False, allow_null=True)
    truncated = Truth(required=False, allow_null=True)
    patch = WireText(required=False, allow_null=True)
    patch_base64 = Base64(required=False, allow_null=True)
    tests = TestWire(many=True, required=False, allow_null=True, max_length=TESTS_AT_MOST)
    counts = Numbers(required=False, allow_null=True)
    policy_version = Version(max_length=100, required=False, allow_blank=True)
    events = serializers.ListField(child=serializers.JSONField(), required=False, allow_null=True)
    log = Text(required=False, allow_null=True)
    log_base64 = Base64(required=False, allow_null=True)

    def validate(self, said):
        for name in ("patch", "log"):
            if said.get(name) is not None and said.get(f"{name}_base64") is not None:
                raise serializers.ValidationError({name: f"{name} or {name}_base64, not both"})
        return said


def rollout_of(said: dict[str, Any], *, events=None) -> Rollout:
    """The step's argument out of the validated fields; `events` where they come from a stream."""
    log = said.get("log_base64")
    if said.get("log") is not None:
        log = said["log"].encode()
    given = said.get("events")
    if events is not None and given is not None:
        raise WrongShape("events twice", expected="event lines, or the field `events`", where="events")
    if given is not None:
        events = [event_of(event, number) for number, event in enumerate(given)]
    patch = said.get("patch")
    return Rollout(
        external_id=said["external_id"],
        outcome=said.get("outcome"),
        reward=said.get("reward"),
        is_truncated=said.get("truncated"),
        patch=said.get("patch_base64") if patch is None else patch,
        tests=said.get("tests"),
        counts=said.get("counts"),
        policy_version=said.get("policy_version"),
        events=events,
        log=log,
    )


def event_of(event: Any, number: int, where: str = "") -> dict:
    """An event as it is kept: an ATIF step, or our smaller shape with its fields of the right type."""
    place = where or f"events[{number}]"
    if not isinstance(event, dict):
        raise _wrong_event(place, event, "a JSON object")
    if "kind" not in event:
        if event.get("source") not in ATIF_SOURCES:
            raise _wrong_event(f"{place}.kind", None, f"one of {', '.join(EVENT_KINDS)}; or an ATIF step with a source")
        return event
    if event["kind"] not in EVENT_KINDS:
        raise _wrong_event(f"{place}.kind", event["kind"], f"one of {', '.join(EVENT_KINDS)}")
    if not isinstance(event.get("text"), str):
        raise _wrong_event(f"{place}.text", event.get("text"), "text")
    if event.get("index") not in (None, number):
        raise _wrong_event(f"{place}.index", event["index"], f"{number}, its place counted from 0; or none")
    for name, (kind, expected) in EVENT_FIELDS.items():
        value = event.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise _wrong_event(f"{place}.{name}", value, expected)
    return event


def _wrong_event(place: str, got: Any, expected: str) -> WrongShape:
    return WrongShape("this is no event", got=got, expected=expected, where=place)


class BatchWire(Wire):
    life = Whole(min_value=1)
    trajectories = serializers.ListField(child=serializers.JSONField(), allow_empty=False)


class BatchSchema(BatchWire):
    """The same for the API's schema: each item is checked on its own."""

    trajectories = TrajectoryWire(many=True)


class SealWire(Wire):
    life = Whole(min_value=1, required=False, allow_null=True)


class AmendWire(Wire):
    life = Whole(min_value=1, required=False, allow_null=True)
    external_id = Name()
    outcome = OneOf(Outcome.choices)
    reward = Reward(required=False, allow_null=True)
    reason = Text(max_length=2000, allow_blank=False)
