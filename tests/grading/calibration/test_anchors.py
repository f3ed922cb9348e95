"""Anchors are chosen or drawn, graded again by the grading job, and compared; their verdicts decide nothing."""

from datetime import timedelta

import pytest
from django.urls import reverse

from grading import clock
from grading.calibration import anchors, graded
from grading.errors import BadInput, Conflict, WrongState
from grading.grader import job
from grading.models import Anchor, AnchorRound, Grading
from grading.states import Purpose
from tests.factories import make_group, make_run, make_user
from tests.grading.calibration.said import answered, blind

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return make_run(grader="static")


@pytest.fixture
def ann(run):
    return make_user(role="admin", team=run.team)


def test_a_draw_is_the_same_for_the_same_seed_and_takes_no_group_twice(run, ann):
    groups = [answered(run, {"A": 5, "B": 4}) for _ in range(6)]
    answered(run, {"A": 5})  # one candidate has no order
    drawn = anchors.draw(run.team, n=3, seed=7, user=ann)
    chosen = {anchor.group_id for anchor in drawn}
    for anchor in drawn:
        anchors.retire(anchor)
    assert {a.group_id for a in anchors.draw(run.team, n=3, seed=7, user=ann)} == chosen
    assert {a.group_id for a in anchors.draw(run.team, n=9, seed=1, user=ann)} == {g.pk for g in groups} - chosen
    with pytest.raises(BadInput, match="no group to draw"):
        anchors.draw(run.team, n=1, seed=1, user=ann)


def test_only_decided_and_ranked_groups_can_be_anchors_and_only_once(run, ann):
    group = answered(run, {"A": 5, "B": 4})
    anchors.choose(group, user=ann)
    with pytest.raises(Conflict, match="already"):
        anchors.choose(group, user=ann)
    with pytest.raises(WrongState):
        anchors.choose(make_group(run=run, state="complete", outcomes="PPF"), user=ann)


def test_a_round_is_graded_by_the_job_with_purpose_anchor_and_moves_nothing(run, ann):
    group = answered(run, {"A": 5, "B": 4})
    anchors.choose(group, user=ann)
    round = anchors.start(run, why="asked for", by=ann.username)
    assert job.drain() == 1
    group.refresh_from_db()
    grading = Grading.objects.get(round=round)
    assert (grading.state, grading.verdict.purpose) == (Grading.State.VALID, Purpose.ANCHOR)
    assert group.state == "decided" and group.decisions.count() == 0
    assert [one.group for one in graded.anchored(round)] == [group.pk]


def test_a_round_starts_when_the_grader_changes_and_weekly_and_never_twice(run, ann):
    group = answered(run, {"A": 5, "B": 4}, graded_at=clock.now())
    anchors.choose(group, user=ann)
    assert anchors.start_due() == 1 and anchors.start_due() == 0
    run.grader, run.grading = "single_pass", {"model": "openai:some-model"}
    run.save()
    assert "changed: grader static → single_pass" in anchors.why_due(run)
    assert anchors.start_due() == 1 and anchors.start_due() == 0
    assert AnchorRound.objects.last().fingerprint["prompt"].startswith("single_pass@")
    later = AnchorRound.objects.last().at + anchors.EVERY + timedelta(minutes=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anchors.clock, "now", lambda: later)
        assert anchors.why_due(run) == "a week has passed"


def test_a_team_without_anchors_and_an_external_grader_are_told_so(run):
    with pytest.raises(WrongState, match="choose or draw some first"):
        anchors.start(run, why="asked for", by="ann")
    with pytest.raises(WrongState, match="only graders of this server"):
        anchors.start(make_run(grader="external"), why="asked for", by="ann")


def test_the_second_round_is_compared_with_the_first_one(run, ann):
    group = answered(run, {"A": 5, "B": 4, "C": 3})
    blind(group, "A", "B", "C")
    anchors.choose(group, user=ann)
    for _ in range(2):
        last = anchors.start(run, why="asked for", by=ann.username)
        job.drain()
    assert graded.before(last) == AnchorRound.objects.first()
    one = graded.anchored(last)[0]
    assert one.before.ranks == one.now.ranks and one.people.ranks.keys() == one.now.ranks.keys()


def test_an_admin_chooses_draws_grades_and_reads_on_the_page(client, run, ann):
    client.force_login(ann)
    groups = [answered(run, {"A": 5, "B": 4}) for _ in range(3)]
    page = client.get(f"/calibration/drift?run={run.public_id}")
    assert "has no anchor to grade" in page.context["why_no_round"] and b"disabled title" in page.content
    assert client.post(reverse("anchor-round", args=[run.public_id])).status_code == 409
    client.post(reverse("anchor-choose"), {"group": f"http://testserver/groups/{groups[0].pk}/"})
    client.post(reverse("anchor-draw", args=[run.team.slug]), {"n": "1", "seed": "3"})
    assert Anchor.objects.count() == 2
    client.post(reverse("anchor-round", args=[run.public_id]))
    job.drain()
    page = client.get(f"/calibration/drift?run={run.public_id}")
    assert page.context["why_no_round"] == "" and b"disabled title" not in page.content
    assert page.context["versions"].tiers.groups == 2 and b"2 of 2" in page.content
    moved = [row["steady"]["tiers"] for row in page.context["anchors"]]  # of two candidates each
    assert sum(moved) / 4 == page.context["versions"].tiers.value
    client.post(reverse("anchor-retire", args=[Anchor.objects.first().pk]))
    assert anchors.of_team(run.team).count() == 1
    assert client.post(reverse("anchor-choose"), {"group": "nonsense"}).status_code == 400


def test_who_is_no_admin_of_the_team_changes_nothing(client, run, ann):
    group = answered(run, {"A": 5, "B": 4})
    anchor = anchors.choose(group, user=ann)
    client.force_login(make_user(role="admin"))
    assert client.post(reverse("anchor-retire", args=[anchor.pk])).status_code == 404
    assert client.post(reverse("anchor-draw", args=[run.team.slug]), {"n": "1", "seed": "1"}).status_code == 404
    assert client.post(reverse("anchor-round", args=[run.public_id])).status_code == 404
    assert client.post(reverse("anchor-choose"), {"group": str(group.pk)}).status_code == 400
    assert client.get(f"/calibration/drift?run={run.public_id}").context["run"] is None
    client.force_login(make_user(role="viewer", team=run.team))
    assert client.post(reverse("anchor-round", args=[run.public_id])).status_code == 403


def test_what_a_group_became_is_read_for_the_stream(run, ann):
    flat = answered(run, {"A": 5, "B": 4, "C": 3})
    wide = answered(run, {"A": 5, "B": 1, "C": 1})
    flat.decisions.create(version=1, kind="fallback", reason="grader_failure", by="policy:auto")
    rows = dict(zip((flat.pk, wide.pk), graded.newest(type(flat).objects.filter(run=run)), strict=True))
    assert (rows[flat.pk].is_fallback, rows[wide.pk].is_fallback) == (True, False)
    # wide: factors 1, 0.2, 0.2 have the mean 0.47 < 2 / 3, so the cap binds; B and C are tied.
    assert (rows[wide.pk].is_capped, rows[wide.pk].tied) == (True, 2)
    assert (rows[flat.pk].is_capped, rows[flat.pk].is_seen) == (False, False)
