from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.db import connection

from grading import clock
from grading.models import ReviewClaim
from tests.factories import make_user
from tests.verdicts import held_group

pytestmark = pytest.mark.django_db


def test_one_person_holds_a_group_and_may_renew():
    group, alice, bob = held_group(outcomes="PPF"), make_user(), make_user()
    assert ReviewClaim.take(group, alice)
    first = ReviewClaim.objects.get().until
    assert not ReviewClaim.take(group, bob)
    assert ReviewClaim.take(group, alice)
    assert ReviewClaim.objects.get().reviewer == alice and ReviewClaim.objects.get().until >= first


def test_a_claim_that_ran_out_locks_nobody_out():
    group, alice, bob = held_group(outcomes="PPF"), make_user(), make_user()
    ReviewClaim.take(group, alice)
    ReviewClaim.objects.update(until=clock.now() - timedelta(seconds=1))
    assert ReviewClaim.take(group, bob)
    assert ReviewClaim.objects.get().reviewer == bob
    assert not ReviewClaim.take(group, alice)


def test_only_the_holder_can_release():
    group, alice, bob = held_group(outcomes="PPF"), make_user(), make_user()
    ReviewClaim.take(group, alice)
    ReviewClaim.release(group, bob)
    assert ReviewClaim.objects.count() == 1
    ReviewClaim.release(group, alice)
    assert ReviewClaim.take(group, bob)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("left_behind", [False, True])
def test_of_three_who_claim_at_once_one_holds_the_group(left_behind):
    group, users = held_group(outcomes="PPF"), [make_user() for _ in range(3)]
    if left_behind:
        ReviewClaim.objects.create(group=group, reviewer=make_user(), until=clock.now() - timedelta(seconds=1))
    start, took = Barrier(3), []

    def take(user):
        start.wait()
        try:
            if ReviewClaim.take(group, user):
                took.append(user)
        finally:
            connection.close()

    threads = [Thread(target=take, args=[user]) for user in users]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert took == [ReviewClaim.objects.get().reviewer]
