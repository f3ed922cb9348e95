import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.scoring.criteria import FLASH, weighted_score
from grading.scoring.ranks import moved_unnamed, rank, read_order, revised
from grading.scoring.tiers import TIERS, tier
from tests.grading.scoring.factories import candidate, scores

A = candidate("a", 5, 5, 5, 5, 5)  # T1
B = candidate("b", 4, 4, 4, 4, 4)  # T1
C = candidate("c", 4, 3, 3, 3, 3)  # T2
D = candidate("d", 3, 3, 3, 3, 3)  # T2
E = candidate("e", 1, 3, 3, 3, 3)  # T3
RANKING = rank([E, D, C, B, A], FLASH)


def test_rank_sorts_each_tier_by_weighted_score():
    assert RANKING == {1: (("a",), ("b",)), 2: (("c",), ("d",)), 3: (("e",),)}


def test_equal_scores_tie_in_input_order():
    twins = [candidate("z", 4, 4, 4, 4, 4), candidate("a", 4, 4, 4, 4, 4)]
    assert rank(twins, FLASH)[1] == (("z", "a"),)


def test_nobody_to_rank_gives_three_empty_tiers():
    assert rank([], FLASH) == {1: (), 2: (), 3: ()}


def test_rank_refuses_one_id_twice():
    with pytest.raises(ValueError, match=r"\['a'\] more than once"):
        rank([A, A], FLASH)


def test_a_revision_may_turn_tie_and_split_inside_a_tier():
    order = {"T1": [["b"], ["a"]], "T2": [["d", "c"]], "T3": [["e"]]}
    assert revised(RANKING, order) == {1: (("b",), ("a",)), 2: (("d", "c"),), 3: (("e",),)}


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ({"T1": [["a"], ["b"], ["c"]], "T2": [["d"]], "T3": [["e"]]}, "puts 'c' into T1, expected T2: change a score"),
        ({"T1": [["a"], ["b"]], "T2": [["c"]], "T3": [["e"]]}, r"leaves out \['d'\]"),
        ({"T1": [["a"], ["b"]], "T2": [["c"], ["d"]]}, r"leaves out \['e'\]"),
        ({"T1": [["a"], ["b"]], "T2": [["c"], ["d"], ["c"]], "T3": [["e"]]}, r"\['c'\] more than once"),
        ({"T1": [["a", "a"], ["b"]], "T2": [["c"], ["d"]], "T3": [["e"]]}, r"\['a'\] more than once"),
        ({"T1": [["a"], ["b"], ["q"]], "T2": [["c"], ["d"]], "T3": [["e"]]}, "ranks 'q', who is not to be ranked"),
        ({"T1": [["a"], [], ["b"]], "T2": [["c"], ["d"]], "T3": [["e"]]}, r"tied group \[\]"),
        ({"T0": [], "T1": [["a"]]}, r"tiers \['T0'\]"),
        ({"T1": ["a", "b"]}, "tied group 'a', expected a list"),
        ({"T1": {"a": 1}}, "T1 is .*, expected a list of tied groups"),
        ([["a"]], "expected an object with T1, T2 and T3"),
    ],
)
def test_a_revision_outside_the_rules_is_refused_in_words(order, words):
    with pytest.raises(ValueError, match=words):
        revised(RANKING, order)


def test_candidates_moved_without_a_revision_are_named():
    turned = read_order({"T1": [["b"], ["a"]], "T2": [["c", "d"]], "T3": [["e"]]})
    assert moved_unnamed(RANKING, turned, set()) == ["b", "a", "c", "d"]
    assert moved_unnamed(RANKING, turned, {"a"}) == ["c", "d"]
    assert moved_unnamed(RANKING, turned, {"b", "d"}) == []
    assert moved_unnamed(RANKING, RANKING, set()) == []


def test_naming_one_candidate_does_not_excuse_the_others():
    before = {1: (), 2: (("w",), ("x",), ("y",), ("z",)), 3: ()}
    after = {1: (), 2: (("z",), ("w",), ("y",), ("x",)), 3: ()}
    assert moved_unnamed(before, after, {"z"}) == ["y", "x"]


@given(st.lists(st.lists(st.integers(1, 5), min_size=5, max_size=5), max_size=16))
def test_rank_places_everybody_once_and_in_the_order_of_w(values):
    candidates = [candidate(str(i), *five) for i, five in enumerate(values)]
    ranking = rank(candidates, FLASH)
    w = {c.id: weighted_score(c.scores, FLASH) for c in candidates}
    placed = [id for t in TIERS for tied in ranking[t] for id in tied]
    assert sorted(placed) == sorted(w)
    for here in TIERS:
        tops = [w[tied[0]] for tied in ranking[here]]
        assert tops == sorted(set(tops), reverse=True)
        assert all(len({w[id] for id in tied}) == 1 for tied in ranking[here])
        assert all(
            tier(candidate("x", *scores_of(c)), FLASH) == here for c in candidates if c.id in sum(ranking[here], ())
        )


def scores_of(c):
    return [c.scores[name] for name in scores(1, 1, 1, 1, 1)]
