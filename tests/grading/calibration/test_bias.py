"""What a grader may like for the wrong reasons: each figure with interval and n, or the reason why there is none."""

import numpy as np
import pytest

from grading.calibration import bias
from grading.calibration.agreement import Said
from grading.calibration.bias import Judged
from grading.models import Grading
from tests.factories import make_run, make_user
from tests.grading.calibration.said import answered, blind


def ranked(*order: str) -> Said:
    return Said({id: place for place, tied in enumerate(order, 1) for id in tied})


@pytest.mark.parametrize(
    ("model", "family"),
    [("openai:gpt-5", "openai"), ("org/Qwen3-8B-Instruct", "qwen"), ("anthropic:claude-x", "anthropic"), ("", ""),
     ("our-own-model", "")],
)  # fmt: skip
def test_a_family_is_read_from_the_name_of_a_model(model, family):
    assert bias.family_of(model) == family


def test_length_by_hand_and_less_what_people_do():
    # The grader puts the longest first (tau 1), people the shortest (tau -1).
    one = Judged(1, ranked("a", "b", "c"), ranked("c", "b", "a"), patch={"a": 30, "b": 20, "c": 10})
    assert bias.leaning([one], lambda j: j.patch, "").value == 1.0
    assert bias.beside_people([one], lambda j: j.patch, "").value == 2.0


def test_a_grader_that_likes_the_first_place_is_found_and_a_fair_one_is_not():
    rng = np.random.default_rng(8)
    fair, biased = [], []
    for n in range(60):
        place = dict(zip("abcd", (-rng.permutation(4)).tolist(), strict=True))
        by_place = sorted("abcd", key=lambda id: -place[id])
        fair.append(Judged(n, ranked(*rng.permutation(list("abcd"))), presented=place))
        biased.append(
            Judged(n, ranked(*(by_place if rng.random() < 0.4 else rng.permutation(by_place))), presented=place)
        )
    assert bias.leaning(biased, lambda j: j.presented, "").excludes_0
    assert not bias.leaning(fair, lambda j: j.presented, "").excludes_0


def test_self_preference_needs_both_families_and_says_which_is_missing():
    families = {"a": "openai", "b": "qwen"}
    own = [Judged(n, ranked("a", "b"), ranked("b", "a"), families=families, grader_family="openai") for n in range(9)]
    got = bias.own_kind(own)
    assert (got.value, got.n) == (1.0, 9) and got.low > 0.6  # Wilson: 9 of 9 groups are no certainty
    assert bias.own_kind_beside_people(own).value == 1.0
    assert "grader's family is not known" in bias.own_kind([Judged(1, ranked("a"), families=families)]).why
    assert "no rollout names" in bias.own_kind([Judged(1, ranked("a"), grader_family="qwen")]).why
    alone = Judged(1, ranked("a"), families={"a": "qwen"}, grader_family="qwen")
    assert "and of another one" in bias.own_kind([alone]).why
    assert bias.own_kind_beside_people([own[0]]).value is not None


def test_a_tie_prefers_nobody():
    tied = Judged(1, ranked("ab"), families={"a": "openai", "b": "qwen"}, grader_family="openai")
    assert bias.own_kind([tied]).value == 0.5


@pytest.mark.django_db
def test_the_panel_reads_gradings_and_hides_other_teams(client):
    run = make_run()
    client.force_login(make_user(role="viewer", team=run.team))
    for n in range(5):
        group = answered(run, {"A": 5, "B": 4, "C": 3})
        blind(group, "C", "B", "A")
        order = ["A", "B", "C"] if n else [["A", "B", "C"], ["C", "B", "A"]]
        verdict, flips = group.verdicts.get(), None if n else 0.5
        Grading.objects.create(group=group, verdict=verdict, grader="agentic", model="openai:gpt-x", order=order,
                               state="valid", flips=flips)  # fmt: skip
        group.trajectories.filter(letter="A").update(extra={"model": "gpt-x"}, patch_bytes=900)
        group.trajectories.filter(letter="B").update(extra={"model": "org/Qwen3"})
    page = client.get(f"/calibration/bias?run={run.public_id}")
    found = {panel["title"]: panel for panel in page.context["panels"]}
    assert (found["Order flips"]["found"].value, found["Order flips"]["found"].groups) == (0.5, 1)
    assert (found["Place in the prompt"]["found"].value, found["Place in the prompt"]["found"].n) == (1.0, 4)
    assert found["Its own family"]["found"].value == 1.0 and found["Its own family"]["beside"].value == 1.0
    assert found["Length of the patch"]["beside"].value > 0 and b"Most flipped" in page.content
    assert found["Length of the trajectory"]["found"].value is None
    other = make_run()
    answered(other, {"A": 5, "B": 4})
    assert client.get(f"/calibration/bias?run={other.public_id}").context["groups"] == 0
