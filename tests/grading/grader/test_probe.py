"""The probes measure what is there: a scripted model with a known bias gives the figure that follows from it."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from grading.grader.options import GradingOptions
from grading.grader.probes import fairness, pressure
from grading.grader.probes.gradings import grade_with
from grading.grader.probes.kept import read_trials, write_trials
from grading.grader.probes.measures import mean, tail, wilson
from grading.grader.probes.payloads import PAYLOADS, PLACES
from grading.grader.probes.rows import of_group, save
from grading.grader.probes.trials import Trial, Try, with_comment
from grading.review.diffs.parse import parse_patch
from tests import factories
from tests.model_scripts import in_text, ranked_by, verdict
from tests.model_server import ModelServer

GOLDEN = Path(__file__).resolve().parents[3].parent / "shared" / "golden" / "statistics.json"
pytestmark = pytest.mark.django_db
EVENT = {"kind": "action", "tool": "bash", "args": "cat app.py"}


@pytest.fixture
def server(settings):
    with ModelServer("good") as one:
        settings.GAGAR_GRADER_URL, settings.GAGAR_GRADER_MODEL = one.url, "openai:scripted"
        settings.GAGAR_GRADER_KEY = ""
        yield one


@pytest.fixture
def grade(server, db):
    factories.flash()
    return grade_with("single_pass", GradingOptions())


def patch_of(number: int) -> bytes:
    """Each longer than the one before."""
    return with_comment(factories.PATCH.replace(b"return 42", b"return %d" % (40 + number)), "x", number)


def trial(n=4, **fields) -> Trial:
    tests = ({"name": "test_answer", "status": "passed"},)
    tries = [Try(f"try-{i}", patch=patch_of(i), events=(EVENT,), tests=tests) for i in range(n)]
    return Trial("group", "Make answer() return 42.", (*tries, Try("bad", passed=False, patch=b"")), **fields)


def figure(figures, words):
    return next(one for one in figures if words in one.name)


def test_l1_finds_nothing_in_a_grader_that_judges_the_patch(grade):
    figures = fairness.permutation([trial()], grade, orders=6)
    tau = figure(figures, "tau-b")
    assert (tau.value, tau.n, tau.kept) == (pytest.approx(1.0), 15, True)
    assert figure(figures, "another top").value == 0
    assert figure(figures, "invalid").value == 0


def test_l1_gives_a_first_slot_share_of_one_for_a_grader_that_always_picks_the_first(server, grade):
    server.play("first_slot")
    figures = fairness.permutation([trial()], grade, orders=8)
    slot = figure(figures, "stood first")
    assert (slot.value, slot.n, slot.kept) == (1.0, 8, False)
    assert slot.p == pytest.approx(0.25**8)  # one in four, eight times
    assert figure(figures, "tau-b").value < 0.8
    assert figure(figures, "another top").value > 0


def test_l2_ties_copies_for_an_honest_grader_and_not_for_one_that_likes_slots(server, grade):
    tied = figure(fairness.identical([trial()] * 2, grade), "all tied")
    assert (tied.value, tied.n, tied.kept) == (1.0, 2, True)
    # Untied byte-identical patches are no valid verdict; the scores show where the bias lies all the same.
    server.play("first_slot")
    figures = fairness.identical([trial()] * 2, grade)
    assert figure(figures, "invalid").value == 1.0
    assert (figure(figures, "all tied").value, figure(figures, "all tied").kept) == (0.0, False)
    slot = figure(figures, "stood first")
    assert (slot.value, slot.n, slot.p) == (1.0, 2, pytest.approx(0.25**2))
    # A grader that never gives scores has no leaning either.
    server.play("prose")
    assert figure(fairness.identical([trial()], grade), "all tied").value is None


def test_l3_counts_every_carrier_that_rises_when_the_grader_obeys(server, grade):
    server.play("obeys")
    group = [trial(3)]
    figures = pressure.injection(group, grade, most=12)
    rose = figure(figures, "better than their clean twin")
    assert rose.kept is False
    assert rose.value >= 0.4  # logs and commit messages are not shown by a single pass
    assert figure(figures, "patch comment").value == pytest.approx(1.0)
    server.play("good")  # blind for words; longer patches only get worse
    honest = figure(pressure.injection(group, grade, most=12), "better than their clean twin")
    assert (honest.value, honest.kept) == (0.0, True)
    assert honest.n == rose.n


def test_l3_counts_verdicts_that_name_the_injection(server, grade):
    server.play(lambda asked: in_text(verdict(dict.fromkeys(asked.letters, 4), notes="injection: A")))
    assert figure(pressure.injection([trial(2)], grade, most=4), "name the injection").value == 1.0


def test_there_are_25_payloads_in_6_places_and_each_changes_what_is_sent(server, grade):
    assert len(set(PAYLOADS)) == 25
    assert len(PLACES) == 6
    one = Try("x", patch=factories.PATCH, events=(EVENT,))
    for place, put in PLACES.items():
        for payload in PAYLOADS:
            changed = put(one, payload)
            assert changed != one, place
            assert parse_patch(changed.patch).problems == (), (place, payload)


def test_l5_padding_wins_every_time_with_a_grader_that_likes_length(server, grade):
    server.play("longest")
    for words in ("lines", "events"):
        fat = figure(pressure.padding([trial()] * 2, grade), f"({words})")
        if words == "lines":
            assert (fat.value, fat.n, fat.kept) == (1.0, 2, False)
    server.play("good")
    lean = figure(pressure.padding([trial()] * 2, grade), "(lines)")
    assert (lean.value, lean.kept) == (0.0, True)


def test_l6_no_name_reaches_the_model_and_a_swap_moves_nothing(grade):
    figures = fairness.names([trial()], grade)
    assert figure(figures, "name was sent").value == 0
    assert figure(figures, "moved with the names").value == 0


def test_l6_sees_a_grader_that_goes_by_what_a_candidate_says_of_itself(server, grade):
    # The scrubber leaves no name, so the script is biased by something that a swap does change: never twice the same.
    turn = iter(range(100))
    server.play(ranked_by(lambda asked, letter, n=turn: next(n)))
    server.play(lambda asked: ranked_by(lambda a, letter: letter == a.letters[asked.number % 2])(asked))
    assert figure(fairness.names([trial()], grade), "moved with the names").value == 1.0


def test_l7_sees_a_grader_that_rewards_likeness_to_the_reference(server, grade):
    reference = patch_of(9)
    group = [replace(trial(2), reference=reference)] * 2

    def likes_copies(asked):
        shows = "return 49" in asked.text.partition("# Candidate")[0]
        return ranked_by(lambda a, letter: shows == ("return 49" in a.shown[letter]))(asked)

    server.play(likes_copies)
    figures = pressure.likeness(group, grade)
    assert figure(figures, "reference shown").value == 1.0
    assert figure(figures, "reference hidden").value == 0.0
    gap = figure(figures, "adds")
    assert (gap.value, gap.kept) == (1.0, False)
    server.play("good")
    assert figure(pressure.likeness(group, grade), "adds").value == 0.0
    assert figure(pressure.likeness([trial()], grade), "adds").n == 0


def test_l11_is_the_grader_s_win_share_minus_that_of_people(server, grade):
    tries = [Try(f"try-{i}", patch=patch_of(i), family="acme-7" if i % 2 == 0 else "other") for i in range(4)]
    group = Trial("g", "x", tuple(tries), human=(("try-1",), ("try-3",), ("try-0",), ("try-2",)))
    # good: shortest first, 0 > 1 > 2 > 3. Pairs of acme (0, 2) with other (1, 3): grader 3 of 4, people 0 of 4.
    figures = fairness.own_family([group], grade, own="acme")
    assert figure(figures, "by the grader").value == 0.75
    assert figure(figures, "by people").value == 0.0
    gap = figure(figures, "preference")
    assert (gap.value, gap.n, gap.kept) == (0.75, 4, False)


def test_a_binomial_tail_is_exact_also_for_unequal_chances():
    assert tail(2, [0.5] * 2) == 0.25
    assert tail(0, [0.3]) == 1.0
    # by hand: 1/2 and 1/4: both 1/8; at least one 1 - 1/2 * 3/4
    assert tail(2, [0.5, 0.25]) == pytest.approx(1 / 8)
    assert tail(1, [0.5, 0.25]) == pytest.approx(5 / 8)
    # golden mcnemar_exact: 12 of 15 discordant pairs, two-sided 0.03515625
    assert 2 * tail(12, [0.5] * 15) == pytest.approx(0.03515625, abs=1e-12)


def test_means_have_no_interval_of_a_single_value():
    assert mean([]) == (None, None)
    assert mean([0.5]) == (0.5, None)
    middle, (low, high) = mean([0.0, 1.0])
    assert middle == 0.5
    assert low < 0.5 < high


@pytest.mark.skipif(not GOLDEN.is_file(), reason="the golden files are not on this machine")
def test_wilson_intervals_are_the_golden_ones():
    cases = [case for case in json.loads(GOLDEN.read_text())["cases"] if case["statistic"] == "binomial_ci"]
    assert cases
    for case in cases:
        got = wilson(case["inputs"]["k"], case["inputs"]["n"])
        expected = case["expected"] and case["expected"]["wilson"]
        assert got == (expected and pytest.approx(tuple(expected), abs=case["tol"])), case["id"]


def test_a_comment_keeps_the_patch_whole():
    patch = parse_patch(with_comment(factories.PATCH, "one\ntwo", 3))
    assert patch.problems == ()
    assert (patch.added, patch.removed) == (7, 1)
    assert with_comment(b"", "x") == b""


def test_a_trial_survives_rows_and_files(tmp_path):
    factories.flash()
    one = trial(2, reference=b"\xff\x00")
    again = of_group(save(one))
    assert [replace(t, id="") for t in again.tries] == [replace(t, id="") for t in one.tries]
    assert again.reference == one.reference
    write_trials([one], tmp_path / "trials")
    assert read_trials(tmp_path / "trials") == [one]


def write_group(folder: Path) -> Path:
    for one in trial(3).tries:
        here = folder / "candidates" / one.id
        here.mkdir(parents=True)
        said = {"candidate_id": one.id, "outcome": "passed" if one.passed else "failed"}
        (here / "candidate.json").write_text(json.dumps(said))
        (here / "patch.diff").write_bytes(one.patch)
    (folder / "group.json").write_text(json.dumps({"group_id": "g", "task": {"problem_statement": "x"}}))
    return folder


def test_the_command_probes_a_folder_in_a_database_of_its_own(server, tmp_path, django_assert_num_queries):
    server.play("first_slot")
    out = StringIO()
    with django_assert_num_queries(0):
        call_command("probe_grader", str(write_group(tmp_path / "g")), probes="L1", orders=4, json=True, stdout=out)
    said = json.loads(out.getvalue())
    slot = next(one for one in said["figures"] if "stood first" in one["name"])
    assert (slot["value"], slot["n"]) == (1.0, 4)
    assert (said["groups"], said["gradings"], said["model"]) == (1, 4, "openai:scripted")
    assert server.calls == 4


def test_the_command_says_what_it_does_not_know(tmp_path):
    with pytest.raises(CommandError, match="no such probe: L9"):
        call_command("probe_grader", str(tmp_path), probes="L9")
    with pytest.raises(CommandError, match="two passing candidates"):
        call_command("probe_grader", str(tmp_path))
