"""The workspace of a group: who is shown, in which order, scrubbed; and how a reply by letters finds its ids."""

import socket
import threading
from dataclasses import replace

import pytest

from grading import bodies
from grading.grader import gather
from grading.grader.files import Files
from grading.grader.parse import check
from grading.grader.scrub import Scrub
from grading.grader.shape import CandidateReply, Cited, GraderReply
from grading.grader.workspace import Workspace
from grading.models import Check
from grading.review.anchors import Citation
from grading.scoring.criteria import CRITERIA, FLAGS
from grading.states import GroupState
from tests.factories import PATCH, make_group, make_task, make_trajectory

pytestmark = pytest.mark.django_db
EVENTS = [
    {"kind": "message", "text": "I am Claude 3.5 Sonnet,\nmade by Anthropic."},
    {"kind": "action", "text": "cat /home/alice/app.py", "args": {"why": "gpt-4o said so"}},
]


def grading_group(outcomes: str = "PPPF", **fields):
    return make_group(state=GroupState.GRADING, outcomes=outcomes, **fields)


def entry(letter: str, citation: Citation | None = None, score: int = 3) -> CandidateReply:
    """All criteria 5 but one, which the citation is evidence for."""
    scores = dict.fromkeys(CRITERIA, 5) | ({"precision": score} if citation else {})
    cited = (Cited("precision", citation),) if citation else ()
    return CandidateReply(letter, scores, {}, dict.fromkeys(FLAGS, False), cited)


def checked(group, reply):
    return check(reply, gather.material_of(group), group.rubric.rubric)


def test_letters_are_those_of_the_group_and_the_order_follows_the_seed():
    group = grading_group("PPPPPPF")
    with Workspace.open(group, seed=1) as one, Workspace.open(group, seed=1) as same:
        assert one.order == same.order
        assert sorted(one.order) == ["A", "B", "C", "D", "E", "F"]
        assert list(one.failing) == ["G"]
    orders = set()
    for seed in range(20):
        with Workspace.open(group, seed=seed) as ws:
            orders.add(ws.order)
    assert len(orders) > 15


def test_a_confirmed_rollout_is_shown_and_ranked_by_nobody():
    group = grading_group("PPP")
    group.trajectories.filter(letter="B").update(integrity="hack")
    with Workspace.open(group) as ws:
        assert ws.confirmed == {"B"}
        assert sorted(ws.order) == ["A", "B", "C"]
        assert sorted(ws.ranked) == ["A", "C"]


def test_twins_are_the_letters_with_the_same_bytes():
    with Workspace.open(grading_group("PPP", patches=[PATCH, PATCH, PATCH + b"\n"])) as ws:
        assert ws.passing["A"].twins == ("B",)
        assert ws.passing["C"].twins == ()


def test_no_name_of_a_model_is_left_in_anything_shown():
    patch = PATCH.replace(b"return 42", b"return 42  # by zork-9-large, for bob@corp.io")
    group = grading_group("PP", events=EVENTS, patches=[patch, PATCH])
    group.trajectories.update(extra={"model_name": "lab/zork-9-large"})
    row = group.trajectories.get(letter="A")
    make_trajectory(group=group, external_id="acme-run-17", letter="C", log=b"acme-run-17: Zork 9 Large passed\n1 ok")
    with Workspace.open(group) as ws:
        one = ws.passing["A"]
        shown = one.patch.decode() + str([one.event(n) for n in range(2)]) + ws.passing["C"].log.decode()
    for name in ("zork", "Zork", "corp.io", "Claude", "Anthropic", "alice", "gpt-4o", "acme-run-17", "Sonnet"):
        assert name not in shown
    assert one.parsed.files[0].hunks[0].lines[-1].content == b"    return 42  # by [model], for [email]"
    assert one.event_text(0) == "I am [model],\nmade by [model]."
    assert row.extra


def test_who_signs_a_patch_is_named_nowhere_in_the_group():
    head = b"From: Nora Quist <nora@mail.org>\nSubject: fix\n\nCo-authored-by: Li Wei-Han <l@mail.org>\n---\n"
    events = [{"kind": "message", "text": "As Nora Quist told Li Wei-Han: the nora module stays. Django Tests pass."}]
    group = grading_group("PF", patches=[head + PATCH, PATCH], events=events)
    with Workspace.open(group) as ws:
        said = [ws.shown[letter].event_text(0) for letter in "AB"]
    assert not [text for text in said if "Quist" in text or "Wei-Han" in text]
    assert all("the nora module stays. Django Tests pass." in text for text in said)


def test_a_quote_of_scrubbed_words_finds_the_raw_ones():
    patch = PATCH.replace(b"return 42", b"return 42  # by gpt-4o, for bob@corp.io")
    group = grading_group("PP", events=EVENTS, patches=[patch, PATCH])
    line = Citation("patch_line", "A", path="app.py", side="new", line=2, quote="# by [model], for [email]")
    event = Citation("event", "B", event=1, quote="am [model], made by")  # stands in event 0
    reply = GraderReply((entry("A", line), entry("B", event)))
    with Workspace.open(group) as ws:
        assert ws.check(reply) == []
        found = ws.to_ids(reply)
    assert checked(group, found).valid
    quotes = {one.citations[0].citation.quote for one in found.candidates}
    assert quotes == {"return 42  # by gpt-4o, for bob@corp.io", "am Claude 3.5 Sonnet,\nmade by"}


def test_an_id_in_place_of_a_letter_is_refused_as_unknown():
    group = grading_group("PP")
    # the id of one is the letter of nobody here, and that of the other is the letter of the first
    a, b = group.trajectories.order_by("letter")
    type(a).objects.filter(pk=a.pk).update(external_id="Z")
    type(b).objects.filter(pk=b.pk).update(external_id="A")
    with Workspace.open(group) as ws:
        assert [c.id for c in ws.to_ids(GraderReply((entry("A"), entry("B"), entry("Z"), entry("Q")))).candidates] == [
            "Z", "A", "Z?", "Q",
        ]  # fmt: skip
        said = [str(problem) for problem in ws.check(GraderReply((entry("A"), entry("Z"))))]
    assert any("no such candidate" in line for line in said)
    assert any("B is missing" in line for line in said)


def test_what_is_wrong_is_said_in_letters():
    group = grading_group("PPF")
    ids = list(group.trajectories.values_list("external_id", flat=True))
    wrong = Citation("event", "B", event=0, quote="never said")
    reply = GraderReply((entry("A", wrong), entry("C")), order={"T1": (("A",), ("A",))})
    with Workspace.open(group) as ws:
        words = "\n".join(str(problem) for problem in ws.check(reply))
    assert "it is evidence of 'B'" in words
    assert not any(id in words for id in ids)


def test_a_valid_reply_by_letters_is_valid_by_ids():
    group = grading_group("PPPF")
    reply = GraderReply(tuple(entry(letter) for letter in "ABC"), order={"T1": (("C", "A", "B"),), "T2": (), "T3": ()})
    with Workspace.open(group, seed=3) as ws:
        assert ws.check(reply) == []
        assert checked(group, ws.to_ids(reply)).valid
        assert ws.check(replace(reply, candidates=reply.candidates[:2]))


def test_a_check_made_during_the_grading_can_be_cited():
    group = grading_group("PP")
    reply = GraderReply((entry("A", Citation("result", "A", result="check:1")), entry("B")))
    with Workspace.open(group) as ws:
        assert [problem.where for problem in ws.check(reply)] == ["candidates[0].citations[0]"]
        made = {"asked": {}, "outcome": "failed", "sandbox": "bubblewrap", "key": "1", "duration_s": 1.0}
        Check.objects.create(group=group, trajectory=group.trajectories.get(letter="A"), name="check:1", **made)
        assert ws.check(reply) == []
        assert checked(group, ws.to_ids(reply)).valid


def test_a_fetch_of_one_group_makes_no_other_grading_wait(settings, tmp_path):
    settings.GAGAR_DATA_DIR, settings.GAGAR_GIT_HOSTS = tmp_path, ["127.0.0.1"]
    with socket.socket() as silent:  # a server that takes the call and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        slow = make_task(repository_url=f"git://127.0.0.1:{silent.getsockname()[1]}/r", base_commit="1" * 40)
        files = Files(slow, {}, Scrub(), lambda: tmp_path / "git")
        thread = threading.Thread(target=lambda: files.base, daemon=True)
        thread.start()
        caller, _ = silent.accept()
        with Workspace.open(grading_group("P")) as ws:
            assert ws.repository is None
        assert thread.is_alive()
        caller.close()
        silent.accept()[0].close()  # the second try, for all branches
        thread.join(20)
    assert "could not be read" in files.why_not


SIGNS = [  # (L6) what betrays a maker, with the maker left open
    "written by {}", "I am {} and I fixed it", "Co-authored-by: {} <bot@maker.io>", "as {}, I think", "model: {}",
    "/home/{}/work/app.py", "/testbed-{}/app.py", "/runs/{}/7/out.txt", "{}@maker.io", "{}: done", "{}:12: error",
    "🤖 Generated with [{}](https://maker.io)", "Signed-off-by: {}", "@author {}", "Author: {} <x@maker.io>", "({})",
    "generated with {}", '{{"model": "{}"}}', "[{}]", "this is {}", "--model {} --temperature 0",
]  # fmt: skip
MAKERS = [("claude-opus-4-5", "gpt-4o-mini"), ("Qwen3-Coder", "deepseek-v3.1"), ("kimi-k2", "zork-9")]


@pytest.mark.parametrize("sign", SIGNS)
def test_swapping_the_makers_of_two_candidates_changes_nothing_that_is_shown(sign):
    def shown(makers: tuple[str, str]) -> list:
        patches = [PATCH.replace(b"return 42", f"return 42  # {sign.format(maker)}".encode()) for maker in makers]
        group = grading_group("PP", patches=patches)
        for letter, maker in zip("AB", makers, strict=True):
            words = f"first\n{sign.format(maker)}\nlast"
            key = bodies.write_events([{"kind": "message", "text": words}, {"kind": "action", "args": {"c": words}}])
            group.trajectories.filter(letter=letter).update(
                event_body=key.sha256, event_count=2, log=bodies.write_bytes(words.encode()),
                extra={"model": maker}, tests=[{"name": "t", "status": "passed", "message": words}],
            )  # fmt: skip
        with Workspace.open(group, seed=1) as ws:
            every = [ws.shown[letter] for letter in "AB"]
            return [[one.patch, one.event(0), one.event(1), one.log, one.tests] for one in every]

    for one, other in MAKERS:
        got = shown((one, other))
        assert got == shown((other, one))
        assert got[0] == got[1]
        assert not any(name.lower() in str(got).lower() for name in (one, other))
