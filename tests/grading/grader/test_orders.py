from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from grading.grader.material import CandidateMaterial, GroupMaterial
from grading.grader.orders import closest, flips, merge
from grading.grader.parse import check
from grading.grader.shape import CandidateReply, Cited, Finding, GraderReply, Revision
from grading.review.anchors import Citation
from grading.review.diffs.parse import parse_patch
from grading.scoring.criteria import CRITERIA, FLAGS, FLASH
from tests.factories import PATCH

IDS = ("a", "b", "c")
PATCHES = {id: PATCH.replace(b"return 42", b"return 4%d" % n) for n, id in enumerate(IDS)}
GROUP = GroupMaterial.of([CandidateMaterial(id, patch, parse_patch(patch)) for id, patch in PATCHES.items()])


def line(id, side="new"):
    return Citation("patch_line", id, path="app.py", side=side, line=2)


def entry(id, *, side="new", flags=(), **scores):
    """4 for every criterion that is not given; what is low or flagged is cited."""
    scores = dict.fromkeys(CRITERIA, 4) | scores
    low = [c for c, score in scores.items() if score < 4]
    cited = tuple(Cited(about, line(id, side)) for about in (*low, *flags))
    reasons = {c: f"{id} {c} {score}" for c, score in scores.items()}
    return CandidateReply(id, scores, reasons, dict.fromkeys(flags, True), cited)


def reply(*entries, **fields):
    given_ids = {e.id for e in entries} | {f.id for f in fields.get("findings", ())}
    return GraderReply((*entries, *(entry(id) for id in IDS if id not in given_ids)), **fields)


def of(id, merged):
    return next(e for e in merged.candidates if e.id == id)


def ranking(said):
    checked = check(said, GROUP, FLASH)
    assert checked.valid, checked.problems
    return checked.grades.ranking


def test_flips_by_hand():
    # pairs ab, ac, bc: a > b > c, then b > a > c: ab is flipped, 1 of 3; a tie (b = c) opposes nothing
    first = {1: (("a",), ("b",), ("c",)), 2: (), 3: ()}
    second = {1: (("b",),), 2: (("a",), ("c",)), 3: ()}
    tied = {1: (("a",),), 2: (("b", "c"),), 3: ()}
    assert flips([first, second]) == 1 / 3
    assert flips([first, tied]) == 0 and flips([first, second, tied]) == 1 / 3
    assert flips([first]) is None and flips([]) is None
    assert flips([{1: (("a",),), 2: (), 3: ()}] * 2) == 0
    assert closest([second, first, first]) == 1


def test_three_orders_give_medians_and_the_citations_of_what_survives():
    three = [
        reply(entry("a", minimality=2), entry("b", precision=3)),
        reply(entry("a", minimality=3, side="old"), entry("b")),
        reply(entry("a", minimality=5), entry("b")),
    ]
    merged = merge(three)
    assert of("a", merged).scores["minimality"] == 3 and of("b", merged).scores["precision"] == 4
    assert of("a", merged).citations == (Cited("minimality", line("a")), Cited("minimality", line("a", "old")))
    assert of("a", merged).reasons["minimality"] == "a minimality 3"
    assert of("b", merged).citations == () and ranking(merged)


def test_two_orders_lower_a_candidate_only_together():
    merged = merge([reply(entry("a", minimality=2, flags=["severe_process_issue"])), reply(entry("a"))])
    assert of("a", merged).scores["minimality"] == 4 and not any(of("a", merged).flags.values())
    both = merge([reply(entry("a", minimality=2)), reply(entry("a", minimality=1))])
    assert of("a", both).scores["minimality"] == 2


def test_a_flag_and_a_finding_need_more_than_half():
    flagged, plain = reply(entry("a", flags=["unrequested_rewrite"])), reply()
    assert of("a", merge([flagged, flagged, plain])).flags["unrequested_rewrite"]
    assert not of("a", merge([flagged, plain, plain])).flags["unrequested_rewrite"]
    hack = reply(findings=(Finding("a", "hack", "it edits the tests", (line("a"),)),))
    merged = merge([hack, hack, plain])
    assert [f.id for f in merged.findings] == ["a"] and {e.id for e in merged.candidates} == {"b", "c"}
    assert ranking(merged)
    kept = merge([hack, plain, plain])
    assert not kept.findings and {e.id for e in kept.candidates} == set(IDS)


def test_a_revision_survives_only_if_every_order_makes_it():
    def revised(side="new"):
        order = {"T1": (("a",), ("b", "c")), "T2": (), "T3": ()}
        return reply(order=order, revisions=(Revision(("a",), "it names the cause", (line("a", side),)),))

    merged = merge([revised(), revised("old")])
    assert merged.revisions[0].citations == (line("a"), line("a", "old"))
    assert ranking(merged)[1] == (("a",), ("b", "c"))
    lost = merge([revised(), reply()])
    assert lost.order is None and lost.revisions == () and ranking(lost)[1] == (("a", "b", "c"),)


def test_merging_one_reply_changes_nothing_that_counts():
    one = reply(entry("a", minimality=2), entry("b", flags=["unrequested_rewrite"]), notes="said")
    merged = merge([one])
    assert ranking(merged) == ranking(one) and flips([ranking(merged)]) is None


said_of = st.builds(
    lambda id, scores, flags: entry(id, flags=flags, **dict(zip(CRITERIA, scores, strict=True))),
    st.just("?"), st.lists(st.integers(1, 5), min_size=5, max_size=5), st.lists(st.sampled_from(FLAGS), unique=True),
)  # fmt: skip


@given(st.lists(st.tuples(said_of, said_of, said_of), min_size=1, max_size=5))
def test_merged_replies_without_twins_are_always_valid_and_do_not_depend_on_who_came_first(orders):
    replies = []
    for entries in orders:
        named = [
            replace(e, id=id, citations=tuple(Cited(c.about, line(id)) for c in e.citations))
            for id, e in zip(IDS, entries, strict=True)
        ]
        replies.append(reply(*named))
    merged, turned = merge(replies), merge(replies[::-1])
    assert ranking(merged) == ranking(replace(turned, candidates=tuple(of(id, turned) for id in IDS)))
    rankings = [ranking(one) for one in replies]
    assert flips(rankings) == flips(rankings[::-1])
