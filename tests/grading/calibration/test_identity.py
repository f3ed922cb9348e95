"""A grader is its name, model and prompt: each page reads one of them, or all pooled, and says which rows went in."""

import pytest

from grading.calibration import answers, drawn, fitting, graded, identity
from grading.calibration.identity import Identity, chosen, graders_of
from grading.calibration.judged import judged_of
from grading.models import Fit, Grading, Review, Role, RolloutGroup, Verdict
from tests.factories import make_group, make_run, make_user
from tests.grading.calibration.said import answered, blind

pytestmark = pytest.mark.django_db
OLD, NEW = Identity("agentic", "openai:gpt-x", "agentic@1"), Identity("agentic", "openai:gpt-x", "agentic@2")


def by(group: RolloutGroup, grader: Identity) -> RolloutGroup:
    verdict = group.verdicts.exclude(grader="person").last()
    Grading.objects.create(
        group=group, verdict=verdict, grader=grader.grader, model=grader.model, prompt=grader.prompt, state="valid",
        order=["A", "B", "C"],
    )  # fmt: skip
    return group


@pytest.fixture
def run():
    return make_run(grader="agentic")


@pytest.fixture
def groups(run):
    """Four groups under the old prompt, which people order as it did, and two under the new one, which they do not."""
    made = [answered(run, {"A": 5, "B": 4, "C": 3}, verdict={"grader": "agentic"}) for _ in range(6)]
    for n, group in enumerate(made):
        by(group, OLD if n < 4 else NEW)
        blind(group, *("ABC" if n < 4 else "CBA"))
    return made


def test_the_same_name_with_another_prompt_is_another_grader(run, groups):
    assert graders_of(Verdict.objects.all()) == [(NEW, 2), (OLD, 4)]
    assert NEW.words == "agentic · openai:gpt-x · agentic@2" and Identity.of("static", None, None).words == "static"
    assert set(Verdict.objects.filter(OLD.said).values_list("group", flat=True)) == {one.pk for one in groups[:4]}
    assert not Verdict.objects.filter(Identity("agentic").said).exists()


def test_the_newest_is_read_unless_another_or_all_are_asked_for():
    known = [(NEW, 2), (OLD, 4)]
    assert (chosen(known, "").one, chosen(known, OLD.words).one, chosen(known, "all").one) == (NEW, OLD, None)
    assert chosen(known, "nonsense").one == NEW and chosen(known[:1], "").one is None
    assert (chosen(known, OLD.words).groups, chosen(known, OLD.words).left_out) == (4, 2)


def test_every_reading_takes_the_rows_of_the_choice_alone(run, groups):
    every, reviews = RolloutGroup.objects.filter(run=run), Review.objects.all()
    for asked, n in ((OLD.words, 4), (NEW.words, 2), ("all", 6)):
        choice = chosen(graders_of(Verdict.objects.all()), asked)
        assert len(answers.compared(reviews, choice)["grader_blind"]) == n
        assert len(judged_of(every, choice)) == len(drawn.drawn_of(every, by=choice).graded) == n
        assert len(graded.newest(every, choice)) == n
        read, held = fitting.pool(run, fitting.whose(run, asked))
        assert len(read.groups) + len(held.groups) == n


def test_a_group_that_no_grader_began_counts_for_each_of_them(run, groups):
    late = make_group(run=run, state="decided", outcomes="PPF")
    late.decisions.create(version=1, kind="fallback", reason="deadline", by="policy:deadline")
    rows = graded.newest(RolloutGroup.objects.filter(run=run), chosen(graders_of(Verdict.objects.all()), NEW.words))
    assert {row.group: row.is_fallback for row in rows} == {groups[4].pk: False, groups[5].pk: False, late.pk: True}


def test_a_correction_belongs_to_no_grader(run, groups):
    assert identity.graders_of(Verdict.objects.filter(grader="person")) == []


@pytest.mark.parametrize("room", ["agreement", "fleet", "drift", "bias", "fit/"])
def test_pages_say_whose_verdicts_went_in(client, run, groups, room):
    client.force_login(make_user(role=Role.ADMIN, team=run.team))
    where = f"/calibration/{room}?run={run.public_id}"
    first = client.get(where).content.decode()
    assert (
        "2 graded groups went in, 4 of other models or prompts did not" in first and f"{OLD.words} (4 groups)" in first
    )
    assert "all 6 went in" in client.get(f"{where}&grader=all").content.decode()
    asked = client.get(where, query_params={"run": run.public_id, "grader": OLD.words}).content.decode()
    assert "4 graded groups went in, 2 of" in asked


def test_what_is_fitted_keeps_whose_verdicts_it_read(client, run, groups):
    client.force_login(make_user(role=Role.ADMIN, team=run.team))
    client.post(f"/calibration/runs/{run.public_id}/fit", {"grader": OLD.words})
    client.post(f"/calibration/runs/{run.public_id}/fit", {"grader": "all"})
    assert [one.report["graders"] for one in Fit.objects.all()] == [[OLD.words], [NEW.words, OLD.words]]
