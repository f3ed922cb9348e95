import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.grader import wire
from grading.grader.shape import BadReply, CandidateReply, Cited, Finding, GraderReply, Revision
from grading.review.anchors import Citation

LINE = Citation("patch_line", "C", path="src/a.py", side="new", line=3, quote="x = 1")
EVENT = Citation("event", "D", event=2, quote="cat gold.patch")
WHOLE = {
    "candidates": [
        {
            "id": "C",
            "scores": {"approach": 5, "precision": 4, "minimality": 2, "side_effects": 4, "consistency": 4},
            "reasons": {"minimality": "rewrites the parser"},
            "flags": {"unrequested_rewrite": False},
            "citations": [{"about": "minimality", "kind": "patch_line", "path": "src/a.py", "side": "new", "line": 3}],
        }
    ],
    "order": {"T1": [], "T2": [["C"]]},
    "revisions": [],
    "findings": [
        {"id": "D", "kind": "leak", "reason": "reads it", "citations": [{"kind": "event", "event": 2, "quote": "cat"}]}
    ],
    "tier": "T1",
    "notes": "two words",
}

names = st.text(min_size=1, max_size=4).filter(lambda text: text.isprintable())
texts = st.text(max_size=10).filter(lambda text: text.isprintable())
citations = st.sampled_from([LINE, EVENT, Citation("result", "C", result="outcome")])
candidates = st.builds(
    CandidateReply,
    id=names,
    scores=st.dictionaries(names, st.none() | st.booleans() | st.integers() | texts, max_size=3),
    reasons=st.dictionaries(names, texts, max_size=2),
    flags=st.dictionaries(names, st.booleans(), max_size=2),
    citations=st.lists(st.builds(Cited, about=names, citation=citations), max_size=2).map(tuple),
)
tied = st.lists(st.lists(names, min_size=1, max_size=2).map(tuple), max_size=2).map(tuple)
some_citations = st.lists(citations, max_size=2).map(tuple)
revisions = st.builds(
    Revision,
    candidates=st.lists(names, min_size=1, max_size=2).map(tuple),
    reason=texts,
    citations=some_citations,
)
findings = st.builds(Finding, id=names, kind=st.sampled_from(["leak", "hack"]), reason=texts, citations=some_citations)
replies = st.builds(
    GraderReply,
    candidates=st.lists(candidates, max_size=3).map(tuple),
    order=st.none() | st.fixed_dictionaries({"T1": tied, "T2": tied, "T3": tied}),
    revisions=st.lists(revisions, max_size=2).map(tuple),
    findings=st.lists(findings, max_size=2).map(tuple),
    notes=texts,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["candidates", "id", "scores", "order", "T1", "findings", "kind", "citations", "about", "flags"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(replies)
def test_a_reply_survives_json_unchanged(reply):
    assert wire.from_json(json.loads(json.dumps(reply.to_json()))) == reply


def test_a_whole_reply_is_read_and_unknown_fields_are_ignored():
    reply = wire.from_json(WHOLE)
    assert reply.candidates[0].citations[0].about == "minimality"
    assert reply.order == {"T1": (), "T2": (("C",),), "T3": ()}
    assert reply.notes == "two words"


def test_a_citation_that_names_no_candidate_is_about_the_one_it_stands_under():
    reply = wire.from_json(WHOLE)
    assert reply.candidates[0].citations[0].citation.candidate == "C"
    assert reply.findings[0].citations[0].candidate == "D"


def test_a_citation_may_name_another_candidate_and_keeps_that_name():
    other = {"about": "approach", "kind": "result", "result": "outcome", "candidate": "Z"}
    reply = wire.from_json({"candidates": [{"id": "C", "citations": [other]}]})
    assert reply.candidates[0].citations[0].citation.candidate == "Z"


def broken(**fields):
    return {**WHOLE, **fields}


def one(**fields):
    return broken(candidates=[{"id": "C", **fields}])


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ([], ""),
        (None, ""),
        ({}, "candidates"),
        (broken(candidates={"C": {}}), "candidates"),
        (broken(candidates=["C"]), "candidates[0]"),
        (broken(candidates=[{"scores": {}}]), "candidates[0].id"),
        (broken(candidates=[{"id": 3}]), "candidates[0].id"),
        (broken(candidates=[{"id": "C", "scores": [5, 5]}]), "candidates[0].scores"),
        (broken(candidates=[{"id": "C", "scores": {"approach": [5]}}]), "candidates[0].scores.approach"),
        (one(flags={"unrequested_rewrite": "no"}), "candidates[0].flags.unrequested_rewrite"),
        (one(citations=[{"kind": "result", "result": "x"}]), "candidates[0].citations[0].about"),
        (one(citations=[{"about": "approach"}]), "candidates[0].citations[0]"),
        (one(citations=[{"about": "approach", **LINE.to_json(), "line": 0}]), "candidates[0].citations[0]"),
        (broken(order=["C"]), "order"),
        (broken(order={"T4": []}), "order"),
        (broken(order={"T1": "C"}), "order.T1"),
        (broken(order={"T1": ["C"]}), "order.T1[0]"),
        (broken(order={"T1": [[]]}), "order.T1[0]"),
        (broken(revisions=[{"candidates": [], "reason": "x"}]), "revisions[0].candidates"),
        (broken(findings=[{"id": "D", "kind": "cheat"}]), "findings[0].kind"),
        (broken(notes=7), "notes"),
    ],
)  # fmt: skip
def test_what_is_no_verdict_is_refused_with_its_place(document, where):
    with pytest.raises(BadReply) as refused:
        wire.from_json(document)
    assert refused.value.where == where
    assert refused.value.status == 422
    assert refused.value.as_json()["expected"]


def test_all_problems_are_listed_and_the_readable_rest_is_kept():
    document = broken(candidates=[{"id": "C", "flags": {"unrequested_rewrite": 1}}, 7], notes=[])
    reply, problems = wire.read(document)
    places = [problem.where for problem in problems]
    assert places == ["candidates[0].flags.unrequested_rewrite", "candidates[1]", "notes"]
    assert reply.candidates[0].id == "C"
    assert reply.findings[0].id == "D"
    with pytest.raises(BadReply, match="and 2 more"):
        wire.from_json(document)


@pytest.mark.parametrize("score", [True, 4.5, "5", None, float("nan"), 0, 6, 10**400])
def test_a_wrong_score_is_no_matter_of_shape_and_is_kept_for_the_check(score):
    reply, problems = wire.read({"candidates": [{"id": "C", "scores": {"approach": score}}]})
    assert not problems
    assert reply.candidates[0].scores["approach"] == ("NaN" if repr(score) == "nan" else score)


@pytest.mark.parametrize(
    "text", ['{"candidates": [', "", "I rank C first.", '{"candidates": [], "candidates": []}', "[" * 99999]
)
def test_cut_doubled_or_deep_text_is_a_problem_and_never_raises(text):
    reply, problems = wire.read_text(text)
    assert reply.candidates == ()
    assert problems


def test_nul_and_lone_surrogates_become_visible_as_everywhere():
    reply, problems = wire.read_text('{"candidates": [], "notes": "a\\u0000b\\ud800"}')
    assert (reply.notes, problems) == ("a\\u0000b\\ud800", [])


@given(json_values)
def test_any_json_is_read_without_raising(document):
    reply, problems = wire.read(document)
    if not problems:
        assert wire.from_json(reply.to_json()) == reply
