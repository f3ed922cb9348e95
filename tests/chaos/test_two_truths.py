"""R6, R11: a database that is put back, a second job, and two jobs that begin from one checkpoint."""

import shutil
from collections import Counter

import pytest

from tests.chaos.backups import Backup
from tests.chaos.counts import reached, times
from tests.chaos.site import check_once, check_stream, parameters_and_lives
from tests.conftest import wait_for
from training_bridge.models import JobCursor, MetricPoint, Receipt

pytestmark = [pytest.mark.alone, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("round_", range(times(1, 5)))
def test_r6_a_restored_database_opens_a_new_epoch_and_the_job_trains_on(site, tmp_path, round_):
    steps, groups = 10, 3
    job = site.train(steps=steps, groups=groups, within_s=15)
    site.wire.wait_for("advantages", groups + 2 + round_)
    backup = Backup(tmp_path)
    site.wire.wait_for("advantages", 2 * groups + 1 + round_)
    site.web.kill()
    site.wire.cut()
    epoch = site.head[0]
    backup.restore()
    assert site.head[0] == epoch
    site.serve()
    job.ended(300)
    trained = parameters_and_lives(site.checkpoint)
    used = Counter(group for _, group, *_ in trained)
    assert set(used.values()) == {1} and len(used) == steps * groups
    assert site.head[0] > epoch, "never an empty success"
    after = [version for _, _, version, step, _ in trained if step == steps - 1]
    assert after == [1] * groups, "the last step has decided numbers again"
    check_stream(site, forgetful=True)
    local = sum(version == 0 for _, _, version, *_ in trained)
    reached(f"R6 round {round_}", trained=len(trained), local=local, epoch=site.head[0], lost=0, doubled=0)


def test_r11_a_second_job_closes_the_first_and_their_words_do_not_mix(site, tmp_path):
    many, before = times(4, 50), None
    for n in range(1, many + 1):
        job = site.listen(tmp_path / f"job{n}.json")
        mine = JobCursor.objects.filter(life__run=site.run, life__n=n)
        wait_for(lambda mine=mine, job=job: mine.filter(noted__gte=2).exists() or not job.alive)
        if before is not None:
            before.ended()
            assert "4409" in before.said, before.said
        before = job
    (tmp_path / f"job{many}.stay").unlink()
    before.ended()
    lives = list(MetricPoint.objects.filter(run=site.run).order_by("pk").values_list("life__n", flat=True))
    assert lives == sorted(lives) and set(lives) == set(range(1, many + 1))
    check_stream(site)
    reached("R11", second_jobs=many - 1, fenced=many - 1, mixed=0)


def test_two_jobs_from_one_checkpoint_leave_one_story(site, tmp_path):
    groups = 3
    site.train(steps=2, groups=groups).ended()
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    shutil.copy(site.checkpoint, first)
    shutil.copy(site.checkpoint, second)
    old = site.train(steps=200, groups=groups, checkpoint=first, within_s=0.5)
    wait_for(lambda: Receipt.objects.filter(life__run=site.run, life__n=2).count() >= groups or not old.alive)
    new = site.train(steps=6, groups=groups, checkpoint=second)
    new.ended()
    wait_for(lambda: not old.alive or "step 199" in old.said, within_s=300)
    old.ended(300)
    assert "4409" in old.said, "the older one was told, and trained on alone"
    words = list(Receipt.objects.filter(run=site.run).order_by("pk").values_list("life__n", flat=True))
    assert words == sorted(words)
    site.checkpoint = second
    reached("two jobs from one checkpoint", **check_once(site, steps=6, groups=groups))
