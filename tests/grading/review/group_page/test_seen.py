"""The review page for whoever looks: viewers, strangers, before and after a verdict, with hostile text."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from grading.models import Role
from grading.review import decisions
from grading.scoring.criteria import CRITERIA
from grading.states import GroupState
from tests.factories import PATCH, make_group, make_run, make_user
from tests.grading.review.group_page.forms import form, url
from tests.verdicts import held_group

pytestmark = pytest.mark.django_db


def test_a_viewer_sees_all_and_can_do_nothing(client, group):
    client.force_login(make_user(role=Role.VIEWER, team=group.run.team))
    html = client.get(url("group", group)).content.decode()
    assert "Tier 1" in html and "reviewer" in html
    for action in ("approve", "correct", "leak", "broken", "fall-back", "claim", "release", "draft"):
        assert url(f"group-{action}", group) not in html
        assert client.post(url(f"group-{action}", group)).status_code == 403


def test_a_post_from_another_site_is_refused(group, reviewer):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(reviewer)
    answer = strict.post(url("group-fall-back", group), {"reason": "x"})
    assert answer.status_code == 403 and "Nothing was saved" in answer.content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', strict.get(url("group", group)).content.decode())
    fields = {"reason": "x", "csrfmiddlewaretoken": token[1]}
    assert strict.post(url("group-fall-back", group), fields).status_code == 302


def test_real_ids_are_shown_once_the_group_is_decided(page, group):
    page.post(url("group-fall-back", group), {"reason": "x"})
    assert group.trajectories.get(letter="A").external_id in page.get(url("group", group)).content.decode()


def test_an_invalid_verdict_is_mended_by_a_person(page, group):
    # No score of B: its card waits for scores, and the form gives all of them.
    from grading.grader import gather, verdicts
    from grading.grader.parse import check
    from grading.grader.shape import GraderReply

    reply, material = GraderReply(()), gather.material_of(group)
    verdicts.store(group, reply, check(reply, material, group.run.rubric.rubric), material, grader="scripted")
    html = page.get(url("group", group)).content.decode()
    assert "No scores yet" in html and "Fallback." in html
    fields = {f"score-{letter}-{criterion}": "5" for letter in "AB" for criterion in CRITERIA}
    assert page.post(url("group-correct", group), form(group) | fields).status_code == 302
    assert decisions.newest_verdict(group).is_valid


@pytest.mark.parametrize("state", [GroupState.COLLECTING, GroupState.COMPLETE, GroupState.GRADING])
def test_a_group_without_a_verdict_has_a_page_too(page, group, state):
    early = make_group(run=group.run, state=state, outcomes="PF")
    answer = page.get(url("group", early))
    assert answer.status_code == 200 and "nothing to decide yet" in answer.content.decode()
    assert page.post(url("group-correct", early), {"reason": "x"}).status_code == 409


HOSTILE = "<img src=x onerror=alert(1)>\"'\u202e</script>"


def test_hostile_text_is_inert_on_every_page_of_a_group(page, reviewer):
    patch = PATCH.replace(b"return 42", f"return '{HOSTILE}'".encode()).replace(b"app.py", b"<img src=x>.py")
    run = make_run(team=reviewer.memberships.get().team, policy="manual")
    group = held_group(
        run=run, outcomes="PPF", patches=[patch, PATCH, patch], key=HOSTILE, hold_reason=HOSTILE,
        events=[{"kind": "action", "text": HOSTILE, "tool": HOSTILE, "args": {"c": HOSTILE}, "role": HOSTILE}],
    )  # fmt: skip
    group.task.statement = HOSTILE
    group.task.save()
    for trajectory in group.trajectories.all():
        trajectory.tests = [{"name": HOSTILE, "status": "failed", "message": HOSTILE}]
        trajectory.counts, trajectory.problem = {HOSTILE: HOSTILE}, HOSTILE
        trajectory.save()
    addresses = [url("group", group), url("history", group), reverse("queue"), reverse("groups"), reverse("tasks")]
    addresses += [f"{url('group', group)}?tab={tab}" for tab in ("events", "tests", "checks")]
    addresses += [f"{url('group', group)}?cite_letter=A&cite_kind=event&cite_place=0&cite_quote={HOSTILE}"]
    addresses += [url("trajectory", group, "A") + query for query in ("", "?at=0", f"?q={HOSTILE[:4]}&in=all")]
    addresses += [url("event", group, "A", 0), url("group-file", group, "A", 0)]
    for address in addresses:
        answer = page.get(address)
        assert answer.status_code == 200, address
        assert "<img" not in answer.content.decode(), address
    fields = form(group, reason=HOSTILE, **{"cite-1-quote": HOSTILE, "cite-1-place": HOSTILE})
    assert "<img" not in page.post(url("group-correct", group), fields).content.decode()
