"""Of workers and people who want one audit group at once, one holds it."""

from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.db import connection

from grading import clock
from grading.models import AuditGroup
from tests.grading.audit.rooms import make_audit, make_runs


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_left", [False, True])
def test_of_three_workers_at_one_audit_group_one_judges_it(is_left):
    group = make_audit(runs=make_runs(method="outcome"), grader="static").groups.first()
    if is_left:
        gone = {"state": "grading", "claimed_by": "gone", "claimed_until": clock.now() - timedelta(seconds=1)}
        AuditGroup.objects.filter(pk=group.pk).update(**gone)
    start, took = Barrier(3), []

    def take(name):
        mine = AuditGroup.objects.get(pk=group.pk)
        start.wait()
        try:
            if mine.claim(by=name, lease_s=60):
                took.append(name)
        finally:
            connection.close()

    threads = [Thread(target=take, args=[name]) for name in ("one", "two", "three")]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    group.refresh_from_db()
    assert took == [group.claimed_by] and group.attempts == 1
