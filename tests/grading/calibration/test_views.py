"""The calibration pages: their rooms are one link apart, and nobody sees another team's run."""

from urllib.parse import parse_qsl

import pytest
from django.urls import reverse

from grading.calibration.rubric_form import typed_of
from grading.models import Role, RubricVersion
from grading.scoring.criteria import FLASH
from grading.states import GroupState
from tests.factories import flash, make_run, make_team, make_user
from tests.grading.calibration.test_packing import graded

pytestmark = pytest.mark.django_db
OTHER = typed_of(FLASH) | {"weight-approach": "0.10", "weight-minimality": "0.40"}


def signed_in(client, role):
    team = make_team()
    client.force_login(make_user(role=role, team=team))
    return client, team


@pytest.fixture
def viewer(client):
    return signed_in(client, Role.VIEWER)


@pytest.fixture
def admin(client):
    return signed_in(client, Role.ADMIN)


def text(response) -> str:
    return response.content.decode()


def test_calibration_is_a_link_of_every_page_and_says_where_there_is_no_run(viewer):
    client, _ = viewer
    page = text(client.get(reverse("calibration")))
    assert "No run here" in page and 'aria-current="page">Calibration' in page.replace("\n", "")


def test_calibration_looks_at_the_run_asked_for_and_at_none_of_another_team(viewer):
    client, team = viewer
    ours, theirs = make_run(team=team, name="Ours"), make_run(name="Theirs")
    assert "Ours</a>, rubric" in text(client.get(reverse("calibration"), {"run": ours.public_id}))
    page = text(client.get(reverse("calibration"), {"run": theirs.public_id}))
    assert "No run here" in page and "Theirs" not in page
    for name in ("what-if-knobs", "what-if-effects"):
        assert client.get(reverse(name, args=[theirs.public_id])).status_code == 404


def test_other_numbers_say_what_they_would_change_and_publish_nothing(viewer):
    client, team = viewer
    run = make_run(team=team)
    # W of A .30*5 + .70*4 = 4.3, of B .20*5 + .80*4 = 4.2; then 4.1 and 4.4: they change places
    group, _ = graded(run, {"A": 4, "B": 4, "C": 2})
    page = text(client.get(reverse("calibration"), {"run": run.public_id} | OTHER | {"low": "0.3"}))
    assert (
        "1 verdict under these numbers" in page and "Rank change" in page and reverse("group", args=[group.pk]) in page
    )
    assert "Publish these numbers" not in page and RubricVersion.objects.count() == 1


def test_numbers_that_break_a_rule_are_refused_in_words_and_kept_as_typed(viewer):
    client, team = viewer
    run = make_run(team=team)
    page = text(client.get(reverse("calibration"), {"run": run.public_id, "weight-approach": "0.9"}))
    assert "weights sum to 1.60, expected 1" in page and 'value="0.9"' in page


@pytest.mark.parametrize("number", [{"max": "NaN"}, {"weight-approach": "Infinity"}, {"lambda_max": "-1"}, {"low": ""}])
def test_what_is_no_number_is_said_on_every_page_that_reads_it(viewer, number):
    client, team = viewer
    run = make_run(team=team)
    group, _ = graded(run, {"A": 5, "B": 3, "C": 2})
    pages = [f"{reverse(name)}?run={run.public_id}" for name in ("calibration", "calibration-fit")]
    pages += [
        reverse("what-if-effects", args=[run.public_id]),
        reverse("what-if-credit", args=[run.public_id, group.pk]),
    ]
    for address in pages:
        path, _, query = address.partition("?")
        answer = client.get(path, dict(parse_qsl(query)) | number)
        assert answer.status_code == 400 and 'role="alert"' in text(answer) and "expected" in text(answer), address


def test_a_group_that_waits_for_a_blind_order_is_neither_named_nor_drawn(viewer):
    client, team = viewer
    run = make_run(team=team)
    group, _ = graded(run, {"A": 5, "B": 3, "C": 2}, held=True, is_blind=True)
    assert group.state == GroupState.GRADED
    page = text(client.get(reverse("calibration"), {"run": run.public_id, "low": "0.3"}))
    panel = text(client.get(reverse("what-if-effects", args=[run.public_id]), {"low": "0.3"}))
    assert "their verdicts stay hidden" in page and reverse("group", args=[group.pk]) not in page + panel


def test_a_viewer_publishes_nothing(viewer):
    client, _ = viewer
    said = OTHER | {"name": "Lean", "reason": "minimality counts", "parent": "1"}
    assert client.post(reverse("rubric-publish"), said).status_code == 403


def test_an_admin_publishes_chooses_and_compares(admin):
    client, team = admin
    run = make_run(team=team)
    said = OTHER | {"name": "Lean", "reason": "minimality counts", "parent": "1", "run": run.public_id}
    page = text(client.post(reverse("rubric-publish"), said, follow=True))
    assert "Lean v2 is published and frozen" in page and "set by hand, no gate" in page and "differs" in page
    chosen = client.post(reverse("rubric-choose", args=[run.public_id]), {"version": "2"}, follow=True)
    assert f"{run.name} uses Lean v2 for groups" in text(chosen)
    run.refresh_from_db()
    assert run.rubric.number == 2 and run.rubric.parent == flash()


def test_nobody_chooses_for_a_run_of_another_team(admin):
    client, _ = admin
    theirs = make_run()
    assert client.post(reverse("rubric-choose", args=[theirs.public_id]), {"version": "1"}).status_code == 404
