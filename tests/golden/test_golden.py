"""Both golden files, whole: through the functions, and through the commands as a user runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from grading.scoring.cases import rank_case
from tests.golden.files import cases, difference, path_of
from training_bridge.cases import redistribute_case

ROOT = Path(__file__).resolve().parents[2]
FILES = [("tiers_and_factors.json", rank_case, "rank"), ("redistribution.json", redistribute_case, "redistribute")]


@pytest.mark.parametrize(("name", "case_result", "command"), FILES)
def test_every_golden_case_comes_out_of_the_function(name, case_result, command):
    for case in cases(name):
        if case["expected"].get("error"):
            with pytest.raises(ValueError, match="expected"):
                case_result(case)
        else:
            found = difference(case_result(case), case["expected"])
            assert not found, f"{case['name']}: {found}"


@pytest.mark.parametrize(("name", "case_result", "command"), FILES)
def test_every_golden_case_comes_out_of_the_command(name, case_result, command, tmp_path):
    done = run(command, path_of(name), tmp_path)
    results = json.loads(done.stdout)
    expected = [case["expected"] for case in cases(name)]
    assert len(results) == len(expected)
    for case, got in zip(cases(name), results, strict=True):
        if case["expected"].get("error"):
            assert got.keys() == {"error"} and isinstance(got["error"], str) and got["error"], case["name"]
        else:
            found = difference(got, case["expected"])
            assert not found, f"{case['name']}: {found}"
    assert done.returncode == 1  # each file has bad cases on purpose


@pytest.mark.parametrize(("name", "case_result", "command"), FILES)
def test_a_file_of_good_cases_ends_with_status_0(name, case_result, command, tmp_path):
    good = [case for case in cases(name) if not case["expected"].get("error")][:5]
    path = tmp_path / "good.json"
    path.write_text(json.dumps(good))
    done = run(command, path, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)) == 5


def run(command: str, path: Path, data_dir: Path) -> subprocess.CompletedProcess:
    environment = os.environ | {
        "GAGAR_DATA_DIR": str(data_dir / "data"),
        "DJANGO_SETTINGS_MODULE": "gagar_web.settings",
    }
    line = [sys.executable, str(ROOT / "manage.py"), command, str(path)]
    return subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
