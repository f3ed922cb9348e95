"""What the API says about rows: one serializer a kind of row."""

from rest_framework import serializers

from grading.ingest.fields import Reward, shape
from grading.models import Decision, RolloutGroup, Task, Trajectory, Verdict

BODIES = {None: "undecided", True: "wanted", False: "not_wanted"}


class RefusalOut(serializers.Serializer):
    """Every refusal."""

    what = serializers.CharField()
    got = serializers.JSONField(allow_null=True)
    expected = serializers.JSONField(allow_null=True)
    where = serializers.CharField(allow_null=True)


class LifeOut(serializers.Serializer):
    life = serializers.IntegerField(source="n")


class TaskOut(serializers.ModelSerializer):
    repository = serializers.CharField(source="repository.sha256", default=None)

    class Meta:
        model = Task
        fields = [
            "key", "statement", "repository", "repository_url", "base_commit", "reference_patch", "is_broken",
            "created_at",
        ]  # fmt: skip


class RepositoryOut(serializers.Serializer):
    sha256 = serializers.CharField()
    bytes = serializers.IntegerField()


class RolloutOut(serializers.Serializer):
    external_id = serializers.CharField()
    outcome = serializers.CharField()
    events = serializers.IntegerField(source="event_count", allow_null=True)
    has_log = serializers.SerializerMethodField()
    late = serializers.BooleanField(source="is_late")

    def get_has_log(self, trajectory) -> bool:
        return bool(trajectory.log)


class OfGroup(serializers.ModelSerializer):
    """Where a row belongs, in the words of the wire."""

    group = serializers.CharField(source="group.key")
    life = serializers.IntegerField(source="group.life.n")


class GroupRow(serializers.ModelSerializer):
    run = serializers.CharField(source="run.public_id")
    life = serializers.IntegerField(source="life.n")
    task = serializers.CharField(source="task.key")
    bodies = serializers.SerializerMethodField()

    class Meta:
        model = RolloutGroup
        fields = [
            "run", "key", "life", "task", "step", "policy_version", "group_size", "eligible", "state", "end_reason",
            "bodies", "version", "created_at", "completed_at",
        ]  # fmt: skip

    def get_bodies(self, group) -> str:
        return BODIES[group.bodies_wanted]


class GroupOut(GroupRow):
    """One group with its rollouts. `received` counts those inside the statistics."""

    received = serializers.SerializerMethodField()
    rollouts = serializers.SerializerMethodField()

    class Meta(GroupRow.Meta):
        fields = [*GroupRow.Meta.fields, "received", "rollouts"]

    def get_received(self, group) -> int:
        return group.trajectories.counted().count()

    def get_rollouts(self, group) -> RolloutOut(many=True):
        rows = group.trajectories.only("group", "external_id", "outcome", "event_count", "log", "is_late")
        return [shape(RolloutOut).to_representation(row) for row in rows]


class TrajectoryOut(OfGroup):
    reward = Reward()
    truncated = serializers.BooleanField(source="is_truncated")
    late = serializers.BooleanField(source="is_late")
    events = serializers.IntegerField(source="event_count", allow_null=True)

    class Meta:
        model = Trajectory
        fields = [
            "group", "life", "external_id", "outcome", "reward", "truncated", "late", "integrity", "patch",
            "patch_bytes", "events", "log_bytes", "tests", "counts", "created_at",
        ]  # fmt: skip


class VerdictOut(OfGroup):
    rubric = serializers.IntegerField(source="rubric.number")
    parent = serializers.IntegerField(source="parent_id", allow_null=True)
    author = serializers.CharField(source="author.username", default=None)

    class Meta:
        model = Verdict
        fields = [
            "id", "group", "life", "purpose", "parent", "grader", "author", "reason", "rubric", "formula", "is_valid",
            "problems", "reply", "ranking", "notes", "duration_s", "cost_usd", "created_at",
        ]  # fmt: skip


class DecisionOut(OfGroup):
    verdict = serializers.IntegerField(source="verdict_id", allow_null=True)

    class Meta:
        model = Decision
        fields = ["group", "life", "version", "kind", "verdict", "reason", "by", "at"]


class EventsOut(serializers.Serializer):
    """Events start..; `next` is the start of the following page, null at the end."""

    total = serializers.IntegerField()
    start = serializers.IntegerField()
    next = serializers.IntegerField(allow_null=True)
    events = serializers.ListField(child=serializers.DictField())


class ItemOut(serializers.Serializer):
    external_id = serializers.CharField(allow_null=True)
    status = serializers.ChoiceField(["created", "exists", "filled", "late", "conflict", "error"])
    error = RefusalOut(required=False)
    ignored = serializers.ListField(child=serializers.CharField(), required=False, help_text="fields we do not know")


class ItemsOut(serializers.Serializer):
    items = ItemOut(many=True)


class DeclaredItemOut(serializers.Serializer):
    key = serializers.CharField(allow_null=True)
    status = serializers.ChoiceField(["created", "exists", "conflict", "error"])
    error = RefusalOut(required=False)
    ignored = serializers.ListField(child=serializers.CharField(), required=False, help_text="fields we do not know")


class DeclaredOut(serializers.Serializer):
    items = DeclaredItemOut(many=True)
