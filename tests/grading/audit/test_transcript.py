"""What an audit's grader did is a page: letters alone before the reveal, in every part, header and address of it."""

import pytest
from asgiref.sync import async_to_sync

from grading.audit import job, sessions
from grading.models import AuditVerdict
from tests.factories import make_team, make_user
from tests.grading.audit.rooms import SECRETS, make_audit, make_runs
from tests.grading.audit.test_views import forbidden_words
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def audit(settings):
    """One judged by a model with tools: it lists, reads, compares, and submits."""
    with ModelServer("good") as server:
        settings.GAGAR_GRADER_MODEL, settings.GAGAR_GRADER_URL = "openai:another", server.url
        settings.GAGAR_GRADER_KEY = "secret"
        made = make_audit(runs=make_runs(tasks=1, method="outcome"), grader="single_pass")
        job.drain()
    return made


@pytest.fixture
def ann(audit, client):
    user = make_user(username="ann", role="viewer", team=audit.team)
    client.force_login(user)
    return user


def where(audit) -> str:
    return f"/audits/{audit.pk}/groups/{audit.groups.get().code}/transcripts/1/"


def read(answer) -> str:
    """The body, also of an answer that is sent in pieces."""

    async def pieces() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    return (async_to_sync(pieces)() if answer.streaming else answer.content).decode()


def test_the_page_reads_like_a_trajectory_and_says_what_came_of_it(client, ann, audit):
    page = client.get(where(audit))
    verdict = AuditVerdict.objects.get()
    assert len(page.context["events"]) == verdict.event_count > 1
    assert [row["letter"] for row in page.context["candidates"]] and "blind: letters stand" in page.content.decode()
    assert where(audit) in client.get(f"/audits/{audit.pk}/").content.decode()
    assert "answer" in client.get(where(audit), {"q": "answer"}).content.decode()
    assert client.get(where(audit) + "events/0").status_code == 200
    assert client.get(where(audit) + "events/9999").status_code == 404
    assert client.get(where(audit).replace("/1/", "/2/")).status_code == 404
    assert client.get(where(audit).replace("/1/", "/0/")).status_code == 404


def test_no_part_of_it_tells_an_arm_before_the_reveal(client, ann, audit):
    parts = ["", "?part=events", "?part=map", "?map=1", "?q=the", "events/0", "events/0?part=body"]
    parts += ["events/1?part=whole", "events/1?part=stored", "events.txt", "events.ndjson", "print"]
    forbidden = forbidden_words(audit) | {word.upper() for word in SECRETS} | {AuditVerdict.objects.get().transcript}
    for part in parts:
        answer = client.get(where(audit) + part)
        assert answer.status_code == 200, part
        text = read(answer) + str(dict(answer.headers)) + str(answer.cookies)
        assert not [word for word in forbidden if word and word in text], part
    assert "openai:another" not in client.get(where(audit)).content.decode()


def test_arms_and_model_are_named_once_it_is_revealed(client, ann, audit):
    sessions.reveal(audit, by="ann")
    page = client.get(where(audit)).content.decode()
    assert "ironwood run" in page and "openai:another" in page and "blind: letters stand" not in page
    assert "how it was judged" in client.get(f"/audits/{audit.pk}/").content.decode()


def test_another_team_finds_no_transcript(client, ann, audit):
    client.force_login(make_user(role="admin", team=make_team()))
    for part in ("", "events/0", "events.txt", "print"):
        assert client.get(where(audit) + part).status_code == 404


def test_what_a_person_judged_has_no_transcript(client, ann, audit):
    by_person = make_audit(runs=make_runs(team=audit.team, tasks=1))
    group = by_person.groups.get()
    rita = make_user(role="reviewer", team=audit.team)
    sessions.next_group(by_person, rita)
    assert client.get(f"/audits/{by_person.pk}/groups/{group.code}/transcripts/1/").status_code == 404
