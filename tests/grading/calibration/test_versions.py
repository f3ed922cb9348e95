"""A rubric version is published once, then frozen; every verdict and group names the one it was made with."""

import hashlib
import json
from threading import Barrier, Thread

import pytest
from django.db import connection

from grading.calibration import publish
from grading.errors import BadInput, Conflict, FrozenRow, NotAllowed
from grading.models import Role, RubricVersion
from grading.scoring.criteria import FLASH
from tests.factories import FLASH as PUBLISHED
from tests.factories import flash, make_run, make_user

# Version 1 is in use: whoever changes a number of it changes what stored verdicts mean. Publish the next one instead.
DIGEST = "0e80edc6e2eba4df5f51c8e91dbfc06806d4bece77ea61194f5f9c106ed0f6be"
pytestmark = pytest.mark.django_db


def numbers(**constants) -> dict:
    definition = FLASH.to_json()
    return definition | {"constants": definition["constants"] | constants}


@pytest.fixture
def admin():
    return make_user(role=Role.ADMIN)


def said(user, **fields) -> dict:
    return {"name": "Lean", "reason": "a trial", "parent": flash(), "user": user} | fields


def test_version_1_is_what_it_was_when_it_was_published():
    assert hashlib.sha256(json.dumps(PUBLISHED, sort_keys=True).encode()).hexdigest() == DIGEST
    assert flash().definition == PUBLISHED == FLASH.to_json()


def test_a_published_version_is_never_edited_nor_deleted(admin):
    made = publish.publish(numbers(min="0.3"), **said(admin))
    made.name = "Other"
    for change in (made.save, made.delete, lambda: RubricVersion.objects.update(name="x")):
        with pytest.raises(FrozenRow):
            change()


@pytest.mark.parametrize(
    ("constants", "words"),
    [
        ({"min": "0.9"}, "expected 0 < low <= min <= max <= runner <= 1"),
        ({"low": "0"}, "expected 0 < low"),
        ({"runner": "1.1"}, "runner <= 1"),
        ({"lambda_max": "0.9"}, "has lambda_max 0.9, expected >= 1, or null for the exact form"),
        ({"max": 0.85}, "expected a decimal string"),
    ],
)
def test_a_broken_rule_is_refused_in_words_and_nothing_is_published(admin, constants, words):
    with pytest.raises(BadInput, match=words):
        publish.publish(numbers(**constants), **said(admin))
    assert RubricVersion.objects.count() == 1


def test_weights_below_0_or_off_1_are_refused(admin):
    weights = dict.fromkeys(FLASH.to_json()["weights"], "0.3")
    with pytest.raises(BadInput, match="weights sum to 1.5, expected 1"):
        publish.publish(FLASH.to_json() | {"weights": weights}, **said(admin))


def test_the_same_numbers_are_one_version_however_they_are_written(admin):
    with pytest.raises(Conflict, match="Flash v1 has these numbers already"):
        publish.publish(numbers(runner="0.90"), **said(admin))


def test_a_version_needs_a_name_and_a_reason_and_an_admin(admin):
    for fields in ({"name": ""}, {"reason": ""}, {"reason": "x" * 501}):
        with pytest.raises(BadInput, match="a rubric version needs a"):
            publish.publish(numbers(min="0.3"), **said(admin, **fields))
    with pytest.raises(NotAllowed):
        publish.publish(numbers(min="0.3"), **said(make_user(role=Role.REVIEWER)))


def test_choosing_a_version_is_a_row_of_the_runs_history_and_the_same_again_is_none(admin):
    run = make_run()
    made = publish.publish(numbers(min="0.3"), **said(admin))
    event = publish.choose(run, made, user=admin)
    assert event.changes == {"rubric": [1, 2]} and event.by == admin.username
    assert publish.choose(run, made, user=admin) is None
    run.refresh_from_db()
    assert run.rubric == made


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("constants", "published"), [(("0.3", "0.35"), [1, 2, 3]), (("0.3", "0.30"), [1, 2])])
def test_two_who_publish_at_once_get_two_numbers_and_of_the_same_numbers_one_version(admin, constants, published):
    told, start, refused = [said(admin), said(admin)], Barrier(2), []

    def work(least, fields):
        start.wait()
        try:
            publish.publish(numbers(min=least), **fields)
        except Conflict as why:
            refused.append(str(why))
        finally:
            connection.close()

    threads = [Thread(target=work, args=pair) for pair in zip(constants, told, strict=True)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(RubricVersion.objects.values_list("number", flat=True)) == published
    assert len(refused) == 3 - len(published) and all("has these numbers already" in why for why in refused)
