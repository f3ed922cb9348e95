"""Rows inserted many at a time are the rows that `bulk_create` and `save` would have written."""

import pytest
from django.utils import timezone

from grading.models import GroupEvent
from grading.models.rows import insert_all
from tests.factories import make_group
from training_bridge.models import Payout

pytestmark = pytest.mark.django_db


def payout(group, **fields) -> Payout:
    now = timezone.now()
    told = {"run": group.run, "step": 3, "version": 1, "regime": "exact", "valid": 4, "passes": 2, "tokens": 7.5}
    told |= {"credit_due": 1.0, "credit_paid": 0.5, "penalty_due": -1.0, "penalty_paid": -1.0, "advantage_tokens": 0.0}
    return Payout(group=group, declared_at=now, decided_at=now, **(told | fields))


def test_inserted_rows_read_back_as_created_ones():
    group = make_group(outcomes="PF")
    said = {
        "group": group,
        "old": "graded",
        "new": "decided",
        "by": "é",
        "reason": "50 % 'sure'",
        "details": {"n": [1]},
    }
    insert_all([GroupEvent(**said), GroupEvent(**said | {"details": {}})])
    GroupEvent.objects.create(**said)
    first, empty, created = group.events.order_by("-pk")[:3][::-1]
    for name in ("old", "new", "by", "reason", "details"):
        assert getattr(first, name) == getattr(created, name)
    assert empty.details == {} and first.pk != empty.pk
    assert abs((created.at - first.at).total_seconds()) < 60


def test_a_row_that_is_there_gets_the_named_fields_and_keeps_the_others():
    one, other = make_group(outcomes="PF"), make_group(outcomes="PF")
    insert_all([payout(one, lambda_used=None, is_inverted=True)])
    insert_all(
        [payout(one, step=9, regime="bounded", lambda_used=1.5), payout(other)],
        unique="group",
        replaced=["regime", "lambda_used", "is_inverted"],
    )
    kept = Payout.objects.get(group=one)
    assert (kept.step, kept.regime, kept.lambda_used, kept.is_inverted) == (3, "bounded", 1.5, False)
    assert Payout.objects.count() == 2


def test_nothing_to_insert_is_no_statement(django_assert_num_queries):
    with django_assert_num_queries(0):
        insert_all([])
