"""What people approved or corrected leaves as training data, and nothing else; planted secrets do not."""

import io
import json
from collections import Counter

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command

from grading.export.files import KINDS, rows_of
from grading.grader import retries
from grading.grader.wire import from_json
from grading.grader.workspace import Workspace
from grading.review import decisions
from grading.scoring.criteria import CRITERIA
from tests.factories import make_team
from tests.grading.export.rooms import KEY, approve, correct, graded
from tests.model_scripts import good, playing, submitting, verdict
from tests.model_server import ModelServer
from tests.verdicts import held_group

pytestmark = pytest.mark.django_db
LOOK = ("read_events", {"candidate": "A"})


@pytest.fixture
def server(settings, monkeypatch):
    monkeypatch.setattr(retries, "FIRST_WAIT_S", 0.01)
    with ModelServer("good") as server:
        settings.GAGAR_GRADER_MODEL, settings.GAGAR_GRADER_URL = "openai:scripted", server.url
        settings.GAGAR_GRADER_KEY = "secret"
        yield server


def export(kind: str, *groups) -> tuple[list[dict], Counter]:
    left_out = Counter()
    return list(rows_of(kind, [group.run for group in groups], left_out)), left_out


def answer_of(row: dict) -> dict:
    last = row["messages"][-1]
    if "tool_calls" in last:
        return json.loads(last["tool_calls"][0]["function"]["arguments"])
    return json.loads(last["content"].removeprefix("```json\n").removesuffix("```"))


@pytest.mark.parametrize("grader", ["single_pass", "agentic"])
def test_an_approved_grading_is_a_chat_that_ends_in_its_verdict(server, grader):
    server.play(playing([LOOK]) if grader == "agentic" else good)
    group = graded(grader)
    assert export("sft", group) == ([], Counter())  # nobody approved it yet
    verdict = approve(group)
    (row,), left_out = export("sft", group)
    assert not left_out
    answer = answer_of(row)
    with Workspace.open(group) as ws:
        assert ws.check(from_json(answer)) == []
        assert {e["id"] for e in answer["candidates"]} == set(ws.ranked)
    assert row["messages"][0]["role"] == "system" and "You are a senior maintainer" in row["messages"][0]["content"]
    assert row["provenance"]["verdict"] == verdict.pk and row["provenance"]["source"] == "approved"
    assert row["provenance"]["prompt"].startswith(f"{grader}@1")
    names = [tool["function"]["name"] for tool in json.loads(row["tools"])]
    assert (names[-1:] == ["submit"] and "read_patch" in names and "run_check" not in names) == (grader == "agentic")


def test_planted_keys_of_a_rollout_are_in_no_row(server):
    server.play(playing([LOOK]))
    group = graded("agentic")
    approve(group)
    assert KEY in str(server.requests[-1].body)  # the grader saw it
    for kind in KINDS:
        rows, _ = export(kind, group)
        assert rows and KEY not in json.dumps(rows)
    assert export("sft", group)[0][0]["provenance"]["redacted"] > 0


def test_a_correction_is_the_answer_that_a_model_learns(server):
    group = graded()
    made = correct(group, precision=2)
    (row,), _ = export("sft", group)
    entry = next(e for e in answer_of(row)["candidates"] if e["id"] == "A")
    assert entry["scores"]["precision"] == 2 and entry["reasons"]["precision"] == "rewrites the parser"
    assert list(entry) == ["id", "reasons", "scores", "flags", "citations"]
    assert row["provenance"]["source"] == "corrected"
    assert row["provenance"]["verdict"] == made.pk != row["provenance"]["origin"]
    assert made.reply != row["messages"] and group.trajectories.first().external_id not in json.dumps(row["messages"])


def test_the_repair_round_is_not_taught(server):
    faulty = lambda asked: submitting(verdict({letter: 9 for letter in asked.letters}), asked)  # noqa: E731
    server.play(faulty, good)
    group = graded()
    approve(group)
    (row,), _ = export("sft", group)
    assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant"]
    assert all(e["scores"]["approach"] < 6 for e in answer_of(row)["candidates"])


def test_what_no_person_decided_or_no_model_said_is_left_out_and_counted(server):
    by_policy = graded()
    decisions.by_policy(by_policy, decisions.newest_verdict(by_policy), by="policy:deadline")
    by_hand = held_group(outcomes="PPF")
    approve(by_hand)
    rows, left_out = export("sft", by_policy, by_hand)
    assert rows == [] and left_out == {"grader scripted keeps no transcript": 1}


def test_pairs_are_ordered_ties_stay_ties_and_identical_patches_are_no_pair(server):
    group = held_group(outcomes="PPPF")
    correct(group, letter="B", precision=2)
    rows, left_out = export("preferences", group)
    assert len(rows) == 3 and not left_out
    letters = dict(group.trajectories.values_list("external_id", "letter"))
    said = {(letters[r["chosen_id"]], letters[r["rejected_id"]]): r for r in rows}
    assert said["A", "C"]["is_tie"] and said["A", "C"]["gap"] == 0
    assert not said["A", "B"]["is_tie"] and said["A", "B"]["gap"] > 0
    assert said["A", "B"]["chosen_tier"] == 1 and said["A", "B"]["rejected_tier"] == 2
    assert "return 42" in said["A", "B"]["chosen"] and said["A", "B"]["prompt"] == "Make answer() return 42."
    twins = held_group(outcomes="PPF", patches=[b"x", b"x", b"y"])
    approve(twins)
    assert export("preferences", twins)[1] == {"both patches are the same, byte for byte": 1}


def test_labels_hold_the_grader_s_scores_beside_the_person_s(server):
    group = held_group(outcomes="PPF")
    correct(group, letter="B", precision=2, reason=f"it prints {KEY}")
    rows = {row["letter"]: row for row in export("labels", group)[0]}
    assert rows["B"]["precision"] == 2 and rows["B"]["grader_precision"] == 4 and rows["B"]["is_changed"]
    assert rows["A"]["precision"] == rows["A"]["grader_precision"]
    assert KEY not in rows["B"]["reason"] and "[secret]" in rows["B"]["reason"]
    assert set(CRITERIA) < set(rows["A"])


@pytest.mark.parametrize("kind", ["labels", "preferences"])
def test_parquet_and_json_lines_hold_the_same_rows(tmp_path, kind):
    group = held_group(outcomes="PPPF")
    correct(group, letter="B", precision=2)
    files = [tmp_path / f"{kind}.{ending}" for ending in ("jsonl", "parquet")]
    for file in files:
        out = io.StringIO()
        call_command("export", kind, str(file), runs=[group.run.public_id], stdout=out)
        assert "3 rows" in out.getvalue()
    lines = [json.loads(line) for line in files[0].read_text().splitlines()]
    assert pq.read_table(files[1]).to_pylist() == lines


def test_an_export_without_rows_is_a_file_that_still_loads(tmp_path):
    team = make_team()
    file = tmp_path / "none.parquet"
    call_command("export", "labels", str(file), team=team.slug, stdout=io.StringIO())
    assert pq.read_table(file).num_rows == 0
    for wrong in ({}, {"team": "nobody"}, {"runs": ["nobody"]}):
        with pytest.raises(CommandError):
            call_command("export", "labels", str(file), **wrong)
    with pytest.raises(CommandError, match="jsonl"):
        call_command("export", "sft", str(tmp_path / "x.parquet"), team=team.slug)
