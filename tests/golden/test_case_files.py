"""Files that nobody meant well: a result or an error for each case, never a traceback."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

GOOD_SCORES = {"approach": 4, "precision": 4, "minimality": 4, "side_effects": 4, "consistency": 4}
GOOD_ROWS = [{"id": "a", "passed": True, "factor": 0.9}, {"id": "b", "passed": False}]

BAD_RANK_CASES = [
    "null",
    "[]",
    "7",
    '"text"',
    "{}",
    '{"candidates": {}}',
    '{"candidates": [null]}',
    '{"candidates": [{}]}',
    '{"candidates": [{"id": 7, "scores": {}}]}',
    '{"candidates": [{"id": "a"}]}',
    '{"candidates": [{"id": "a", "scores": []}]}',
    '{"candidates": [{"id": "a", "scores": {"approach": 4}}]}',
    '{"candidates": [{"id": "a", "id": "b", "scores": {}}]}',
    '{"candidates": [], "order": []}',
    '{"candidates": [], "order": {"T4": []}}',
    '{"candidates": [], "order": {"T1": [[]]}}',
    '{"candidates": [], "order": {"T1": [[{}]]}}',
    '{"candidates": [], "order": {"T1": "ab"}}',
    '{"candidates": [], "rubric": 1}',
    '{"candidates": [], "rubric": {"weights": {}, "constants": {}}}',
    json.dumps({"candidates": [{"id": "a", "scores": GOOD_SCORES, "unresolved_regression": 1}]}),
    json.dumps({"candidates": [{"id": "a", "scores": GOOD_SCORES, "leak_confirmed": None}]}),
    json.dumps({"candidates": [{"id": "a", "scores": GOOD_SCORES | {"approach": 10**4000}}]}),
    '{"candidates": [{"id": "a", "scores": {"approach": NaN}}]}',
    '{"candidates": [{"id": "\\ud800", "scores": {"approach": 1e999}}]}',
    '{"candidates": ' + "[" * 400 + "]" * 400 + "}",
]

BAD_REDISTRIBUTE_CASES = [
    "null",
    "[[]]",
    "{}",
    json.dumps({"method": ["redistribute"], "lambda_max": None, "trajectories": GOOD_ROWS}),
    json.dumps({"method": "grpo", "lambda_max": None, "trajectories": GOOD_ROWS}),
    json.dumps({"method": "redistribute", "trajectories": GOOD_ROWS}),
    json.dumps({"method": "redistribute", "lambda_max": 0.5, "trajectories": GOOD_ROWS}),
    json.dumps({"method": "redistribute", "lambda_max": True, "trajectories": GOOD_ROWS}),
    json.dumps({"method": "redistribute", "lambda_max": "1.5", "trajectories": GOOD_ROWS}),
    json.dumps({"method": "redistribute", "lambda_max": 10**400, "trajectories": GOOD_ROWS}),
    '{"method": "redistribute", "lambda_max": NaN, "trajectories": []}',
    '{"method": "redistribute", "lambda_max": Infinity, "trajectories": []}',
    json.dumps({"method": "redistribute", "lambda_max": None, "trajectories": "ab"}),
    json.dumps({"method": "redistribute", "lambda_max": None, "trajectories": [["a", True]]}),
    json.dumps({"method": "redistribute", "lambda_max": None, "trajectories": [{"id": "a"}]}),
    json.dumps({"method": "redistribute", "lambda_max": None, "trajectories": [{"id": "a", "passed": 1}]}),
    json.dumps({"method": "redistribute", "lambda_max": None, "trajectories": [GOOD_ROWS[0] | {"reward": "1"}]}),
    json.dumps({"method": "redistribute", "lambda_max": None, "trajectories": [GOOD_ROWS[0] | {"factor": [1]}]}),
    json.dumps({"method": "redistribute", "lambda_max": None, "trajectories": [GOOD_ROWS[0] | {"valid": 0}]}),
    json.dumps({"method": "redistribute", "lambda_max": None, "trajectories": [GOOD_ROWS[0] | {"hack": "no"}]}),
    json.dumps({"method": "redistribute", "lambda_max": None, "broken_evaluation": 1, "trajectories": GOOD_ROWS}),
    '{"method": "redistribute", "lambda_max": null, "trajectories": [{"id": "a", "passed": true, "factor": NaN},'
    ' {"id": "b", "passed": false}]}',
]


@pytest.mark.parametrize(("command", "bad"), [("rank", BAD_RANK_CASES), ("redistribute", BAD_REDISTRIBUTE_CASES)])
def test_each_bad_case_is_an_error_in_words(command, bad, tmp_path):
    results, status = printed(command, "[" + ",\n".join(bad) + "]", tmp_path)
    assert status == 1
    assert len(results) == len(bad)
    for text, result in zip(bad, results, strict=True):
        assert result.keys() == {"error"} and "expected" in result["error"], text[:200]
        assert len(result["error"]) < 1_000, text[:200]


def test_a_bad_case_does_not_hide_its_neighbours(tmp_path):
    good = {"method": "outcome", "lambda_max": None, "broken_evaluation": False, "trajectories": GOOD_ROWS}
    results, status = printed("redistribute", json.dumps([good, 7, good]), tmp_path)
    assert status == 1
    assert [set(result) == {"error"} for result in results] == [False, True, False]
    assert results[0] == results[2]
    assert results[0]["advantages"] == {"a": 0.5, "b": -0.5}


@pytest.mark.parametrize("reward", ["NaN", "Infinity", "-Infinity", "1e999", "1" * 5_000, "1.7e308"])
def test_a_reward_that_is_no_number_excludes_the_group(reward, tmp_path):
    text = (
        '[{"method": "redistribute", "lambda_max": 1.5, "broken_evaluation": false, "trajectories": ['
        f'{{"id": "a", "passed": true, "factor": 0.9, "reward": {reward}}}, {{"id": "b", "passed": false}}]}}]'
    )
    results, status = printed("redistribute", text, tmp_path)
    assert (results, status) == ([{"status": "excluded_bad_reward"}], 0)


def test_an_empty_list_is_a_list(tmp_path):
    assert printed("rank", "[]", tmp_path) == ([], 0)


@pytest.mark.parametrize("command", ["rank", "redistribute"])
@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b'{"cases": []}', b"7", b"[" * 100_000, b"[1,]"])
def test_an_unreadable_file_ends_with_status_2_and_prints_nothing(command, content, tmp_path):
    path = tmp_path / "cases.json"
    path.write_bytes(content)
    out = io.StringIO()
    with pytest.raises(CommandError, match="expected a (JSON )?list") as refused:
        call_command(command, path, stdout=out)
    assert (refused.value.returncode, out.getvalue()) == (2, "")


@pytest.mark.parametrize("command", ["rank", "redistribute"])
def test_a_missing_file_or_a_folder_ends_with_status_2(command, tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(CommandError) as refused:
            call_command(command, path)
        assert refused.value.returncode == 2


def printed(command: str, text: str, folder) -> tuple[list, int]:
    path = folder / "cases.json"
    path.write_text(text)
    out, status = io.StringIO(), 0
    try:
        call_command(command, path, stdout=out)
    except CommandError as e:
        status = e.returncode
    return json.loads(out.getvalue()), status
