"""From stored blind orders to fitted numbers, through the gate, which spends what it reads, to a version."""

import json
from decimal import Decimal
from io import StringIO
from urllib.parse import urlencode

import numpy as np
import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.urls import reverse

from grading.calibration import fitting, gates, publish
from grading.calibration.heldout import split
from grading.calibration.rubric_form import typed_of
from grading.errors import FrozenRow, WrongState
from grading.models import Fit, Gate, GateKind, Role, RubricVersion, SpentGroup
from grading.scoring.criteria import CRITERIA, FLASH, Candidate, Rubric
from tests.factories import make_run, make_team, make_user
from tests.grading.calibration.judged import judged_groups, store_grades

pytestmark = pytest.mark.django_db
LEAN = np.array([0.05, 0.10, 0.60, 0.15, 0.10])  # people who look at minimality first


@pytest.fixture
def run():
    return make_run()


def test_half_of_the_groups_is_kept_from_the_fit_and_a_spent_one_is_read_by_it():
    read, held = split(range(1000), spent=())
    assert 420 < len(held) < 580 and not set(read) & set(held)
    again, left = split(range(1000), spent=held[:10])
    assert set(again) == set(read) | set(held[:10]) and left == held[10:]


def test_orders_of_people_become_weights_and_each_reviewer_has_an_offset(run):
    judged_groups(run, groups=130, weights=LEAN, reviewers=3)
    made = fitting.fit(run, by="rita")
    rows = {row["criterion"]: row for row in made.report["weights"]["rows"]}
    low, high = rows["minimality"]["interval"]
    assert low > 0.2 and low <= LEAN[2] <= high + 0.1
    assert sum(Rubric.from_json(made.definition).weights) == 1
    assert len(made.report["weights"]["offsets"]) == 3
    assert "with a person's tier, expected 30" in made.report["thresholds"]["why"]
    with pytest.raises(FrozenRow):
        made.save()


def test_thin_data_are_refused_in_numbers(run):
    judged_groups(run, groups=12, weights=LEAN)
    made = fitting.fit(run, by="rita")
    assert (
        made.definition is None and "decided pairs inside tiers, expected 30 and 150" in made.report["weights"]["why"]
    )
    with pytest.raises(WrongState, match="too little to look at: .* nothing was spent"):
        gates.look_at_rubric(run, FLASH, by="rita")
    assert Gate.objects.count() == 0


def test_a_gate_passes_the_fit_once_and_its_groups_are_spent(run):
    judged_groups(run, groups=160, weights=LEAN)
    rubric = Rubric.from_json(fitting.fit(run, by="rita").definition)
    held = gates.ready(fitting.pool(run, fitting.whose(run))[1])
    seen = gates.look_at_rubric(run, rubric, by="ada")
    assert seen.passed and seen.low > 0 and seen.groups == held.groups == SpentGroup.objects.count()
    with pytest.raises(WrongState, match="0 held-out groups with 0 decided pairs"):
        gates.look_at_rubric(run, rubric, by="ada")
    spent = SpentGroup.objects.first()
    with pytest.raises(IntegrityError), transaction.atomic():
        SpentGroup.objects.create(gate=seen, kind=GateKind.RUBRIC, group=spent.group)


def test_each_count_of_the_fit_page_leads_to_its_groups(run, client):
    judged_groups(run, groups=160, weights=LEAN)
    client.force_login(make_user(role=Role.VIEWER, team=run.team))
    page = f"{reverse('calibration-fit')}?run={run.public_id}"
    read, held = fitting.pool(run, fitting.whose(run))

    def listed(**asked) -> tuple[int, set[int]]:
        chosen = client.get(f"{page}&{urlencode(asked)}").context["chosen"]
        return chosen["of"], {row["group"].pk for row in chosen["rows"]}

    for count, orders in {"read": read, "held": held}.items():
        assert f"count={count}#groups" in client.get(page).content.decode()
        of, found = listed(count=count)
        assert found and found <= set(orders.groups)
        assert of == (gates.ready(held).groups if count == "held" else len(orders.groups))
    look = gates.look_at_rubric(run, Rubric.from_json(fitting.fit(run, by="rita").definition), by="ada")
    of, found = listed(count="look", look=look.pk)
    assert of == look.groups and found <= set(held.groups)
    assert listed(count="look", look=look.pk + 1) == (0, set())
    assert client.get(f"{page}&count=other&other=nobody").context["chosen"] is None


def test_fitted_numbers_are_published_only_past_the_gate_and_the_version_names_it(run):
    judged_groups(run, groups=160, weights=LEAN)
    made, admin = fitting.fit(run, by="rita"), make_user(role=Role.ADMIN, team=run.team)
    said = {"name": "Lean", "reason": "people look at minimality", "parent": run.rubric, "user": admin}
    with pytest.raises(WrongState, match="passed no gate"):
        publish.publish(made.definition, **said)
    seen = gates.look_at_rubric(run, Rubric.from_json(made.definition), by="ada")
    version = publish.publish(made.definition, **said)
    assert version.gate == seen and version.number == 2


def test_thresholds_follow_peoples_tiers_where_these_are_given(run):
    judged_groups(run, groups=90, weights=LEAN, with_tiers=True, candidates=6)
    same = fitting.fit(run, by="rita").report["thresholds"]
    assert same["kappa"][0]["value"] == pytest.approx(1) and "by more than chance" in same["why"]


def test_another_graders_verdicts_pass_the_same_gate(run):
    better = judged_groups(run, groups=40, weights=LEAN, beta=50)
    for group in better:  # a grader whose scores are the people's order
        order = group.reviews.get().blind["order"]
        rows = {t.external_id: t for t in group.trajectories.all()}
        said = [
            Candidate(id, dict.fromkeys(CRITERIA, 3) | {"approach": 5 - place // 2, "precision": 5 - (place + 1) // 2})
            for place, (id,) in enumerate(order)
        ]
        store_grades(group, said, rows, grader="agentic", purpose="extra")
    assert gates.other_graders(run) == ["agentic"]
    seen = gates.look_at_grader(run, "agentic", by="ada")
    assert seen.passed and seen.graders == ["static", "agentic"] and seen.new_accuracy > seen.old_accuracy
    assert gates.ready(gates.both_graded(run, "agentic", fitting.whose(run))[0]).groups == 0
    assert len(fitting.pool(run, fitting.whose(run))[1].groups) > 0  # a look at a grader spends nothing of a rubric's


def test_a_correction_never_stands_in_for_the_graders_own_scores(run):
    (group,) = judged_groups(run, groups=1, weights=LEAN)
    first = group.verdicts.get()
    rows = {t.external_id: t for t in group.trajectories.all()}
    said = [Candidate(id, dict.fromkeys(CRITERIA, 5)) for (id,) in group.reviews.get().blind["order"]]
    store_grades(group, said, rows, grader="person", author=make_user(), parent=first)
    from grading.calibration.orders import orders_of

    assert orders_of(run.team, Q(grader=run.grader)).pack.verdict_B.tolist() == [first.pk]
    assert orders_of(make_team(), Q(grader=run.grader)).answers == []


def test_the_command_prints_fit_and_gate(run):
    judged_groups(run, groups=160, weights=LEAN)
    out = StringIO()
    call_command("fit_weights", run.public_id, "--gate", stdout=out)
    said = json.loads(out.getvalue())
    assert said["gate"]["passed"] is True and len(said["weights"]["rows"]) == 5 and Fit.objects.count() == 1
    assert RubricVersion.objects.count() == 1


def test_the_page_fits_looks_and_publishes(run, client):
    judged_groups(run, groups=160, weights=LEAN)
    client.force_login(make_user(role=Role.ADMIN, team=run.team))
    where = reverse("calibration-fit") + f"?run={run.public_id}"
    assert "Nothing is fitted yet" in client.get(where).content.decode()
    page = client.post(reverse("calibration-fit-now", args=[run.public_id]), follow=True).content.decode()
    assert "Fitted. Nothing is published" in page and "the fitted numbers" in page and "weight-plot" in page
    fields = typed_of(Rubric.from_json(Fit.objects.get().definition))
    looked = client.post(reverse("calibration-gate", args=[run.public_id]), fields, follow=True).content.decode()
    assert "the gate is passed" in looked and "above 0" in looked
    said = fields | {"name": "Lean", "reason": "people", "parent": "1", "run": run.public_id}
    assert "Lean v2 is published" in client.post(reverse("rubric-publish"), said, follow=True).content.decode()


def test_a_viewer_sees_the_page_and_may_press_nothing(run, client):
    client.force_login(make_user(role=Role.VIEWER, team=run.team))
    page = client.get(reverse("calibration-fit"), {"run": run.public_id}).content.decode()
    assert "Fit now" not in page and "Looks so far" in page
    for name in ("calibration-fit-now", "calibration-gate", "calibration-gate-grader"):
        assert client.post(reverse(name, args=[run.public_id])).status_code == 403


def test_weights_are_written_in_hundredths_that_sum_to_1():
    got = fitting.rounded(np.array([0.304, 0.304, 0.196, 0.098, 0.098]))
    assert got == tuple(map(Decimal, ("0.3", "0.3", "0.2", "0.1", "0.1"))) and sum(got) == 1
