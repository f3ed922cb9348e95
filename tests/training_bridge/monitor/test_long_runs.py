"""Runs of many points: what a page reads does not grow with them, and a late point finds its place at every level."""

from random import Random

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import make_run
from training_bridge.models import MetricPoint, MetricSegment, MetricSeries
from training_bridge.monitor import curves, store
from training_bridge.monitor.packing import CHILDREN, SIZE, from_bytes

pytestmark = pytest.mark.django_db
NAN = float("nan")


def put(run, values: dict[int, float], name: str = "loss") -> None:
    store.add(run.pk, [store.point(name, step, value, run=run.pk) for step, value in values.items()])


def read(run, first=0, last=None, most=10**6, name="loss") -> dict[int, float]:
    found, _ = curves.read(run, [name], first=first, last=last, most=most)
    return dict(zip(*(part.tolist() for part in found[name]), strict=True))


def noisy(steps: int, seed: int = 1) -> dict[int, float]:
    values_N = np.random.default_rng(seed).normal(size=steps)
    return dict(enumerate(values_N.tolist()))


def test_a_long_series_is_packed_in_levels_that_hold_its_extremes():
    run, values = make_run(), noisy(9 * SIZE * CHILDREN)
    values[777], values[7_001], values[5_000] = 1e6, -1e6, NAN
    put(run, values)
    series = MetricSeries.objects.get()
    assert len(series.packed) == 3 and series.tail < 2 * SIZE and series.points == len(values)
    for level in range(3):
        rows = MetricSegment.objects.filter(level=level).values_list("packed", flat=True)
        found = np.concatenate([from_bytes(packed)[1] for packed in rows])
        assert (np.nanmax(found), np.nanmin(found), np.isnan(found).any()) == (1e6, -1e6, True)
    assert len(read(run, most=500)) < 800 and {777, 7_001} <= set(read(run, most=500))


def test_a_zoom_gives_every_point_as_it_came():
    run, values = make_run(), noisy(4 * SIZE * CHILDREN)
    put(run, values)
    assert read(run, first=1_000, last=1_300) == {step: values[step] for step in range(1_000, 1_301)}
    newest = max(values)
    assert read(run, first=newest - 99) == {step: values[step] for step in range(newest - 99, newest + 1)}


def test_points_in_any_order_read_as_if_they_had_come_in_order():
    random, run, wanted = Random(4), make_run(), {}
    steps = [step * 7 for step in range(3_000)]
    for part in range(12):
        some = steps[part * 250 : (part + 1) * 250] + random.sample(steps[: (part + 1) * 250], 20)
        random.shuffle(some)
        values = {step: random.random() if random.random() > 0.01 else NAN for step in some}
        put(run, values)
        wanted |= values
    for first, last in ((0, 30_000), (700, 900), (5_000, 20_000)):
        found = read(run, first=first, last=last)
        fine = {step: value for step, value in wanted.items() if first <= step <= last}
        assert set(found) <= set(fine)
        assert all(found[step] == fine[step] or np.isnan([found[step], fine[step]]).all() for step in found)
        assert np.nanmax(list(found.values())) == np.nanmax(list(fine.values()))
    series = MetricSeries.objects.get()
    assert series.points == len(wanted) == MetricPoint.objects.filter(is_newest=True).count()
    finest = MetricSegment.objects.filter(level=0).order_by("last_step").values_list("packed", flat=True)
    packed = np.concatenate([from_bytes(one)[0] for one in finest])
    assert packed.tolist() == [step for step in steps if step <= series.packed[0]]


def test_a_late_point_is_seen_from_afar():
    run = make_run()
    put(run, dict.fromkeys(range(3 * SIZE * CHILDREN), 1.0))
    put(run, {1_000: 50.0})
    assert max(read(run, most=300).values()) == 50.0
    assert MetricPoint.objects.filter(step=1_000).count() == 2


def test_the_work_of_a_page_is_the_same_however_long_the_run(django_assert_max_num_queries):
    short, long = make_run(), make_run()
    for name in ("loss", "entropy"):
        put(short, noisy(300), name)
        put(long, noisy(5 * SIZE * CHILDREN), name)
    with CaptureQueriesContext(connection) as few:
        curves.read(short, ["loss", "entropy"], most=600)
    with django_assert_max_num_queries(len(few) + 2):
        found, thinned = curves.read(long, ["loss", "entropy"], most=600)
    assert thinned and sum(len(steps) for steps, _ in found.values()) < 2_000


def test_steps_that_lie_far_apart_cost_no_more():
    run = make_run()
    put(run, {step * 1_000_000: float(step) for step in range(2_000)})
    assert MetricSegment.objects.count() < 20 and read(run, first=500_000_000, last=502_000_000) == {
        500_000_000: 500.0, 501_000_000: 501.0, 502_000_000: 502.0
    }  # fmt: skip
