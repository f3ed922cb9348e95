"""One place a group: counted by hand, and the counts are the groups of the run."""

from collections import Counter
from random import Random

import pytest
from django.utils import timezone

from grading.ingest import lives
from grading.review import decisions
from grading.states import GroupState
from tests.factories import make_group, make_life, make_run, make_user
from tests.training_bridge.monitor.rows import Job, deliver_group
from training_bridge import delivery, intake, pausing
from training_bridge.models import Delivery, Receipt
from training_bridge.monitor.group_ledger import places, versions

pytestmark = pytest.mark.django_db


def placed(run) -> dict[str, int]:
    return {place["words"]: place["n"] for place in places(run, getattr(run, "stream", None))}


def test_each_group_stands_at_one_place_and_the_places_sum_to_the_groups():
    run = make_run()
    life = make_life(run=run)
    groups = [deliver_group(run, step=step, life=life) for step in range(1, 11)]
    open_, alone = (make_group(run=run, life=life, state=GroupState.UNGRADED, outcomes="PF") for _ in range(2))
    Delivery.objects.filter(seq__lte=8).update(sent_at=timezone.now())
    intake.acknowledge(life, epoch=1, received=7, durable=6)
    job = Job(life)
    for group, status in zip(groups, ("applied", "superseded", "too_late", "expired", "not_used"), strict=False):
        job.receipt(group, status, step=11)
    job.receipt(alone, "applied", step=3, version=0)
    expected = dict.fromkeys(("sent", "received", "durable", "applied", "superseded", "too late", "expired"), 1)
    assert placed(run) == expected | {"waiting": 2, "undecided": 1, "not used": 1, "own numbers": 1}
    assert sum(placed(run).values()) == run.groups.count() == 12
    assert versions(open_)["place"] == "undecided"
    assert versions(alone)["place"] == "the job's own numbers applied at step 3"
    words = [versions(group)["place"] for group in groups]
    assert words[0] == "version 1 applied at step 11"
    assert words[1:5] == ["superseded", "too late", "expired", "not used"]
    assert words[5:] == ["durable", "received", "sent", "waiting", "waiting"]


def test_a_group_that_was_used_stays_used_whatever_version_comes_after_it():
    run = make_run()
    group = deliver_group(run, step=1)
    job = Job(group.life)
    job.receipt(group, "applied", step=3)
    decisions.fall_back(group, user=make_user(), reason="skipped")
    delivery.deliver(run)
    job.receipt(group, "too_late", step=3, version=2)
    assert placed(run) == {"applied": 1} and versions(group)["place"] == "version 1 applied at step 3"


def test_own_numbers_count_before_the_row_that_came_too_late():
    run = make_run()
    group = deliver_group(run, step=1)
    job = Job(group.life)
    job.receipt(group, "applied", step=2, version=0)
    job.receipt(group, "too_late", step=2)
    assert placed(run) == {"own numbers": 1}


def test_own_numbers_that_were_rolled_back_are_not_counted_as_used():
    run = make_run()
    group = deliver_group(run, step=1, life=lives.issue_life(run))
    Job(group.life).receipt(group, "applied", step=2, version=0)
    assert placed(run) == {"own numbers": 1} and not versions(group)["is_rolled_back"]
    later = Job(lives.issue_life(run))
    later.receipt(group, "not_used", step=1)  # its parameters do not hold the group at all
    assert placed(run) == {"not used": 1}
    assert versions(group)["is_rolled_back"] and versions(group)["place"] == "not used"
    again = deliver_group(run, step=1, life=later.life)
    later.receipt(again, "applied", step=2, version=0)
    assert placed(run) == {"not used": 1, "own numbers": 1}


def test_a_use_that_a_later_life_tells_again_says_whose_word_each_is(client):
    run = make_run()
    group = deliver_group(run, step=1, life=lives.issue_life(run))
    Job(group.life).receipt(group, "applied", step=2)
    client.force_login(make_user(role="viewer", team=run.team))
    page = f"/groups/{group.pk}/deliveries"
    assert "applied at step 2<" in client.get(page).content.decode()
    Job(lives.issue_life(run)).receipt(group, "applied", step=2)
    text = client.get(page).content.decode()
    assert "applied at step 2, life 1<" in text and "applied at step 2, life 2<" in text and "in them once" in text


def test_the_words_of_an_older_epoch_still_count():
    run = make_run()
    life = make_life(run=run)
    used, waiting = deliver_group(run, step=1, life=life), deliver_group(run, step=1, life=life)
    Job(life).receipt(used, "applied", step=2)
    Delivery.objects.update(sent_at=timezone.now())
    run.stream = delivery.open_epoch(run, reason="test")
    assert placed(run) == {"applied": 1, "waiting": 1}
    assert versions(waiting)["place"] == "waiting"


def test_many_groups_need_as_many_queries_as_few(django_assert_num_queries):
    run = make_run()
    life = make_life(run=run)
    for step in range(12):
        deliver_group(run, step=step, life=life)
    with django_assert_num_queries(9):
        places(run, run.stream)


def test_the_places_of_a_run_are_those_of_its_groups_whatever_happened_to_them():
    run, user, draw = make_run(), make_user(), Random(5)
    life = make_life(run=run)
    groups = [deliver_group(run, step=1, life=life) for _ in range(12)]
    job = Job(life)
    for group in draw.sample(groups, 4):
        decisions.fall_back(group, user=user, reason="skipped")
    pausing.switch(run, paused=True, by="test", reason="a row of the stream that is of no group")
    delivery.deliver(run)
    for _ in range(20):
        job.receipt(draw.choice(groups), draw.choice(Receipt.Status.values), step=2, version=draw.choice((0, 1, 2)))
    Delivery.objects.filter(seq__lte=9).update(sent_at=timezone.now())
    intake.acknowledge(life, epoch=1, received=6, durable=3)
    assert placed(run) == one_by_one(run)
    run.stream = delivery.open_epoch(run, reason="test")
    job.receipt(groups[0], "expired", step=3)
    assert placed(run) == one_by_one(run)


def one_by_one(run) -> dict[str, int]:
    """The same counts out of what each group's own page says."""
    words = [versions(group)["place"] for group in run.groups.all()]
    short = ["applied" if " applied at " in place and "own" not in place else place for place in words]
    return Counter("own numbers" if "own numbers" in place else place for place in short)


def test_an_imported_run_has_undecided_groups_only():
    run = make_run(kind="imported")
    make_group(run=run, outcomes="PF")
    assert placed(run) == {"undecided": 1}
