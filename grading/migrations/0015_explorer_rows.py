"""Hints learn their group, and groups the tiers of what stands."""

from django.db import migrations
from django.db.models import F, OuterRef, Q, Subquery

CHUNK = 2_000
ENDED = ("decided", "delivered")


def tell_groups(apps, schema_editor) -> None:
    trajectory = apps.get_model("grading", "Trajectory").objects.filter(pk=OuterRef("trajectory"))
    signals = apps.get_model("grading", "Signal").objects.filter(group=None)
    signals.update(group=Subquery(trajectory.values("group")[:1]))


def count_tiers(apps, schema_editor) -> None:
    groups = apps.get_model("grading", "RolloutGroup").objects
    verdicts = apps.get_model("grading", "Verdict").objects
    last = 0
    while pks := list(groups.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:CHUNK]):
        last = pks[-1]
        counts = Q(decisions__version=F("group__version")) | (~Q(group__state__in=ENDED) & Q(purpose="training"))
        rows = verdicts.filter(group__in=pks).filter(counts).order_by("pk").values_list("group", "ranking")
        by_sum = {}
        for group, ranking in dict(rows).items():
            tiers = sum(1 << n for n, tier in enumerate(("T1", "T2", "T3")) if ranking.get(tier))
            by_sum.setdefault(tiers, []).append(group)
        for tiers, found in by_sum.items():
            groups.filter(pk__in=found).update(tiers=tiers)


class Migration(migrations.Migration):
    dependencies = [("grading", "0014_explorer")]

    operations = [
        migrations.RunPython(tell_groups, migrations.RunPython.noop),
        migrations.RunPython(count_tiers, migrations.RunPython.noop),
    ]
