import json
from fractions import Fraction
from pathlib import Path

import pytest

from grading.grader.parse import PROBLEMS_KEPT, check
from grading.grader.shape import CandidateReply, Cited, Finding, GraderReply, Problem, Revision
from grading.review.anchors import Citation
from grading.scoring.criteria import CRITERIA, FLAGS, FLASH, Rubric

from .groups import EVENTS, entry, event_of, group, line_of, patch_of, reply, rollout

GOLDEN = Path(__file__).resolve().parents[3].parent / "shared" / "golden" / "tiers_and_factors.json"
A, B, C = entry("A"), entry("B", 4, 3, 3, 3, 3), entry("C", 4, 3, 3, 3, 3)


def words(checked):
    return [str(problem) for problem in checked.problems]


def checked(given, material=None):
    return check(given, material or group("A", "B", "C"), FLASH)


def test_a_valid_reply_by_hand():
    # A: 5 everywhere, W 5, T1. B and C: .3*4 + .7*3 = 3.3, tied in T2, alone there: f_max
    got = checked(reply(A, B, C))
    assert (got.valid, got.problems, got.findings) == (True, (), ())
    assert got.grades.weighted_score == {"A": 5, "B": Fraction("3.3"), "C": Fraction("3.3")}
    assert got.grades.tier == {"A": 1, "B": 2, "C": 2}
    assert got.grades.ranking == {1: (("A",),), 2: (("B", "C"),), 3: ()}
    assert got.grades.factor == {"A": 1, "B": Fraction("0.85"), "C": Fraction("0.85")}


def test_ids_count_and_positions_do_not():
    assert checked(reply(C, A, B)).grades.tier == checked(reply(A, B, C)).grades.tier


def test_a_reply_to_an_empty_group_is_valid():
    got = checked(reply(), group())
    assert (got.valid, got.grades.factor) == (True, {})


FAULTS = {
    "missing": (reply(A, B), "C is missing"),
    "invented": (reply(A, B, C, entry("Q")), "no such candidate, got 'Q'"),
    "doubled": (reply(A, B, C, A), "'A' is there 2 times"),
    "failed": (reply(A, B, C, entry("F")), "a failed rollout gets no rank"),
    "score 0": (reply(entry("A", 0, 5, 5, 5, 5), B, C), "candidates[0].scores.approach: A has no valid score, got 0"),
    "score 6": (reply(entry("A", 5, 6, 5, 5, 5), B, C), "got 6, expected an integer from 1 to 5"),
    "score 4.5": (reply(entry("A", 5, 5, 4.5, 5, 5), B, C), "got 4.5"),
    "score 5.0": (reply(entry("A", 5, 5, 5.0, 5, 5), B, C), "got 5.0"),
    "score text": (reply(entry("A", 5, 5, 5, "5", 5), B, C), "got '5'"),
    "score true": (reply(entry("A", 5, 5, 5, 5, True), B, C), "got True"),
    "score null": (reply(entry("A", None, 5, 5, 5, 5), B, C), "got None"),
    "score absent": (reply(CandidateReply("A", dict.fromkeys(CRITERIA[:4], 5)), B, C), "A has no consistency score"),
    "criterion unknown": (reply(CandidateReply("A", {**A.scores, "style": 5}), B, C), "unknown scores, got 'style'"),
    "flag unknown": (reply(CandidateReply("A", A.scores, {}, {"slow": True}), B, C), "unknown flags, got 'slow'"),
    "claim without evidence": (reply(A, entry("B", 4, 3, 5, 5, 5, cite=()), C), "B has precision 3 and no citation"),
    "flag without evidence": (
        reply(entry("A", flags=("severe_process_issue",), cite=()), B, C),
        "A has severe_process_issue raised and no citation",
    ),
    "evidence about something else": (
        reply(A, entry("B", 4, 3, 5, 5, 5, cite=(Cited("approach", line_of("B")),)), C),
        "B has precision 3 and no citation",
    ),
    "evidence about nothing known": (
        reply(entry("A", cite=(Cited("beauty", line_of("A")),)), B, C),
        "a citation is about no known claim, got 'beauty'",
    ),
    "evidence of another candidate": (
        reply(A, entry("B", 4, 3, 5, 5, 5, cite=(Cited("precision", line_of("C")),)), C),
        "it is evidence of 'C', expected of 'B'",
    ),
    "line that is not there": (
        reply(entry("A", cite=(Cited("approach", Citation("patch_line", "A", path="x", side="new", line=1)),)), B, C),
        "in no file of this patch",
    ),
    "line that is unchanged": (
        reply(
            entry("A", cite=(Cited("approach", Citation("patch_line", "A", path="src/sum.py", side="new", line=11)),)),
            B,
            C,
        ),
        "shown, but unchanged",
    ),
    "words that were never said": (
        reply(entry("A", cite=(Cited("approach", Citation("event", "A", event=0, quote="rm -rf")),)), B, C),
        "event 0 does not have the quoted words",
    ),
    "test that does not exist": (
        reply(entry("A", cite=(Cited("approach", Citation("result", "A", result="test_x")),)), B, C),
        "no execution result of this candidate is named 'test_x'",
    ),
    "finding without evidence": (reply(A, B, C, findings=(Finding("A", "hack", "x"),)), "the hack of A cites nothing"),
    "finding about a stranger": (
        reply(A, B, C, findings=(Finding("Q", "leak", "x", (event_of("Q"),)),)),
        "findings[0]: no such candidate, got 'Q'",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_makes_the_reply_invalid_and_is_named(fault):
    given, expected = FAULTS[fault]
    got = checked(given)
    assert (got.valid, got.grades) == (False, None)
    assert any(expected in problem for problem in words(got)), words(got)
    assert len(got.problems) == 1


def test_all_problems_are_named_at_once():
    got = checked(reply(entry("A", 0, 9, 5, 5, 5, cite=()), entry("Q"), B, B))
    assert [problem.where for problem in got.problems] == [
        "candidates[1]", "candidates", "candidates", "candidates[0].scores.approach", "candidates[0].scores.precision",
    ]  # fmt: skip


def test_what_the_shape_could_not_read_makes_it_invalid():
    got = check(reply(A, B, C), group("A", "B", "C"), FLASH, [Problem("notes", "this has another type or value")])
    assert words(got) == ["notes: this has another type or value"]


def test_a_flood_of_problems_is_cut_and_says_so():
    got = checked(reply(A, B, C, *(entry(f"Q{n}") for n in range(500))))
    assert len(got.problems) == PROBLEMS_KEPT + 1
    assert got.problems[-1].what == "and 300 problems more"


# Order


def test_an_order_that_is_the_order_by_score_needs_no_revision():
    assert checked(reply(A, B, C, order={"T1": (("A",),), "T2": (("C", "B"),), "T3": ()})).valid


def moved(*named, order, reason="C handles None", cite=None):
    cited = (line_of(named[0]),) if cite is None else cite
    return reply(A, B, C, order=order, revisions=(Revision(named, reason, cited),))


SPLIT = {"T1": (("A",),), "T2": (("C",), ("B",)), "T3": ()}


def test_a_named_candidate_may_be_moved_inside_its_tier():
    got = checked(moved("C", order=SPLIT))
    assert got.grades.ranking[2] == (("C",), ("B",))
    assert got.grades.factor == {"A": 1, "C": Fraction("0.85"), "B": Fraction("0.4")}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (reply(A, B, C, order=SPLIT), "stands elsewhere than its weighted score says"),
        (moved("A", order=SPLIT), "stands elsewhere than its weighted score says"),
        (moved("C", order=SPLIT, reason=" "), "a revision gives no reason"),
        (moved("C", order=SPLIT, cite=()), "a revision cites nothing"),
        (moved("C", order=SPLIT, cite=(line_of("A"),)), "it is evidence of 'A', expected of 'C'"),
        (moved("C", "Q", order=SPLIT), "a revision names who is not ranked, got 'Q'"),
        (moved("C", order=None), "there are revisions and no order"),
        (moved("C", order={"T1": (("A",), ("C",)), "T2": (("B",),)}), "C is ranked in T1, expected T2"),
        (moved("C", order={"T1": (("A",),), "T2": (("B",),)}), "C is not ranked"),
        (moved("C", order={**SPLIT, "T3": (("C",),)}), "'C' is ranked 2 times"),
        (moved("C", order={**SPLIT, "T3": (("Q",),)}), "order: no such candidate, got 'Q'"),
        (moved("C", order={**SPLIT, "T3": (("F",),)}), "F failed and gets no rank"),
        (moved("C", order={"T1": (("A", "C", "B"),)}), "B is ranked in T1, expected T2"),
    ],
)
def test_an_order_that_breaks_a_rule_is_refused(given, expected):
    got = checked(given)
    assert (got.valid, got.grades) == (False, None)
    assert any(expected in problem for problem in words(got)), words(got)


# Byte-identical patches


def twins(*entries, **fields):
    same = patch_of("same")
    return check(reply(*entries, **fields), group(rollout("A", patch=same), rollout("B", patch=same)), FLASH)


def test_identical_patches_with_other_scores_must_be_told_apart_by_an_event():
    got = twins(entry("A"), entry("B", 5, 5, 5, 5, 3))
    assert words(got)[0].startswith("order: A and B have the same patch, byte for byte, and are not tied")
    by_event = entry("B", 5, 5, 5, 5, 3, cite=(Cited("consistency", event_of("B")),))
    assert twins(entry("A"), by_event).valid


def test_an_event_about_what_both_share_does_not_tell_them_apart():
    beside = (Cited("consistency", line_of("B")), Cited("approach", event_of("B")))
    assert not twins(entry("A"), entry("B", 5, 5, 5, 5, 3, cite=beside)).valid


def test_identical_patches_with_equal_scores_are_split_only_by_a_cited_event():
    order = {"T1": (("A",), ("B",))}
    assert not twins(entry("A"), entry("B"), order=order, revisions=(Revision(("B",), "x", (line_of("B"),)),)).valid
    assert twins(entry("A"), entry("B"), order=order, revisions=(Revision(("B",), "x", (event_of("B"),)),)).valid


# Findings


def test_a_finding_that_stands_takes_the_candidate_out_of_the_ranking():
    got = checked(reply(A, B, C, findings=(Finding("A", "leak", "reads hidden tests", (event_of("A"),)),)))
    assert got.valid
    assert [finding.id for finding in got.findings] == ["A"]
    assert got.grades.ranking == {1: (), 2: (("B", "C"),), 3: ()}


def test_a_candidate_that_is_found_out_needs_no_entry_and_may_not_be_ordered():
    found = (Finding("A", "leak", "x", (event_of("A"),)),)
    assert checked(reply(B, C, findings=found)).valid
    got = checked(reply(B, C, findings=found, order={"T1": (("A",),), "T2": (("B", "C"),)}))
    assert words(got) == ["order: A is ranked although it is found to be leaked or hacked, expected it left out"]


def test_a_finding_counts_although_the_rest_is_invalid():
    got = checked(reply(A, findings=(Finding("B", "hack", "x", (event_of("B"),)),)))
    assert not got.valid
    assert [finding.id for finding in got.findings] == ["B"]


def test_a_finding_whose_words_were_never_said_does_not_stand():
    lie = Citation("event", "A", event=1, quote="cat the_answer")
    got = checked(reply(A, B, C, findings=(Finding("A", "leak", "x", (lie,)),)))
    assert (got.valid, got.findings) == (False, ())


def test_a_finding_with_the_evidence_of_another_does_not_stand():
    got = checked(reply(A, B, C, findings=(Finding("A", "leak", "x", (event_of("B"),)),)))
    assert (got.valid, got.findings) == (False, ())


def test_a_failed_rollout_may_be_found_out_and_changes_no_ranking():
    got = checked(reply(A, B, C, findings=(Finding("F", "hack", "x", (event_of("F"),)),)))
    assert got.valid
    assert [finding.id for finding in got.findings] == ["F"]


def test_who_is_confirmed_already_is_not_ranked_and_not_missed():
    assert checked(reply(B, C), group("A", "B", "C", confirmed=("A",))).valid
    assert checked(reply(A, B, C), group("A", "B", "C", confirmed=("A",))).grades.tier == {"B": 2, "C": 2}


def test_nobody_left_to_rank_is_valid():
    got = checked(reply(A, findings=(Finding("A", "hack", "x", (event_of("A"),)),)), group("A"))
    assert (got.valid, got.grades.tier) == (True, {})


def test_a_moved_citation_still_resolves():
    elsewhere = Citation("event", "A", event=0, quote="cat hidden_tests/test_sum.py")
    assert EVENTS[0] != elsewhere.quote
    assert checked(reply(entry("A", cite=(Cited("approach", elsewhere),)), B, C)).valid


# The golden file


def golden_cases():
    return json.loads(GOLDEN.read_text()) if GOLDEN.is_file() else []


@pytest.mark.skipif(not GOLDEN.is_file(), reason="the golden files are not beside this checkout")
@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case["name"])
def test_a_golden_case_told_as_a_reply_gives_the_golden_grades(case):
    ids = list(dict.fromkeys(c["id"] for c in case["candidates"]))
    found = [c["id"] for c in case["candidates"] if c.get("leak_confirmed") or c.get("hack_confirmed")]
    order = case.get("order")
    given = GraderReply(
        tuple(golden_entry(c) for c in case["candidates"]),
        order={tier: tuple(map(tuple, groups)) for tier, groups in order.items()} if order else None,
        revisions=(Revision(tuple(ids), "as the case says", (line_of(ids[0]),)),) if order else (),
        findings=tuple(Finding(id, "leak", "as the case says", (event_of(id),)) for id in found),
    )
    rubric = Rubric.from_json(case["rubric"]) if "rubric" in case and "error" not in case["expected"] else FLASH
    got = check(given, group(*ids), rubric)
    if "error" in case["expected"]:
        assert not got.valid or "rubric" in case
        return
    expected = case["expected"]
    assert got.problems == ()
    assert {id: float(w) for id, w in got.grades.weighted_score.items()} == expected["weighted_score"]
    assert got.grades.tier == expected["tier"]
    assert {f"T{tier}": [list(tied) for tied in g] for tier, g in got.grades.ranking.items()} == expected["ranking"]
    assert {id: float(factor) for id, factor in got.grades.factor.items()} == expected["factor"]


def golden_entry(case):
    flags = {flag: case[flag] for flag in FLAGS if flag in case}
    claims = [c for c in CRITERIA if c in case["scores"]] + [flag for flag, raised in flags.items() if raised]
    return CandidateReply(
        case["id"], case["scores"], {}, flags, tuple(Cited(claim, line_of(case["id"])) for claim in claims)
    )
