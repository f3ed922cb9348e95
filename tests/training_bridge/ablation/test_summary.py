import gzip
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from training_bridge.ablation import lines, report
from training_bridge.ablation.lines import ARMS
from training_bridge.ablation.summary import Ablation, estimate


def rows(values, *, name="pass_rate", seeds=2):
    """Lines of every arm; `values[method]` is one list of steps a seed."""
    return [
        {"method": method, "seed": seed, "step": step, name: value}
        for method in ARMS
        for seed in range(seeds)
        for step, value in enumerate(values.get(method, [[0.0] * 4] * seeds)[seed])
    ]


def test_an_interval_by_hand():
    # 1, 2, 3: mean 2, s = 1, t(0.975, 2) = 4.3027: half of the width 4.3027 / sqrt 3 = 2.4841
    found = estimate([1.0, 2.0, 3.0])
    assert (found.mean, found.n) == (2.0, 3)
    assert found.high == pytest.approx(2 + 4.30265 / sqrt(3), abs=1e-4) and found.low == pytest.approx(4 - found.high)


def test_one_seed_has_no_interval_and_none_no_mean():
    assert (estimate([None, 0.5]).mean, estimate([None, 0.5]).low) == (0.5, None)
    assert estimate([None, None]).mean is None


def test_all_runs_are_cut_to_the_steps_that_each_has():
    ablation = Ablation.of(rows({"outcome": [[1.0, 2.0], [1.0, 2.0, 3.0]]}))
    assert ablation.steps == 2
    assert ablation.series("redistribute", "pass_rate").shape == (2, 2)


def test_a_run_that_is_missing_or_has_a_hole_is_named():
    with pytest.raises(ValueError, match=r"\('redistribute', 0\)"):
        Ablation.of([line for line in rows({}) if line["method"] != "redistribute"])
    with pytest.raises(ValueError, match="every step from 0"):
        Ablation.of([line for line in rows({}) if line["step"] != 1])
    with pytest.raises(ValueError, match="no line"):
        Ablation.of([])


def test_a_curve_is_a_running_mean_that_steps_over_gaps():
    made = rows({"outcome": [[1.0, None, 3.0, 5.0], [None, None, None, 2.0]]})
    curve = Ablation.of(made).curve("outcome", "pass_rate", window=2)
    np.testing.assert_allclose(curve, [[1, 1, 3, 4], [np.nan, np.nan, np.nan, 2]])


def test_arms_are_compared_seed_by_seed_over_the_last_steps():
    made = rows({"redistribute": [[0, 0, 0, 4.0], [0, 0, 0, 6.0]], "outcome": [[9, 9, 9, 3.0], [9, 9, 9, 4.0]]})
    found = Ablation.of(made).difference("redistribute", "outcome", "pass_rate", share=1 / 4)
    assert found.values == (1.0, 2.0) and found.mean == 1.5


def test_lines_come_back_as_they_were_written_also_compressed(tmp_path):
    made = rows({"outcome": [[0.1234567891, None, 0.0, 1.0]] * 2})
    lines.write(tmp_path / "a.jsonl", made)
    found = lines.read(tmp_path / "a.jsonl")
    assert found[0]["pass_rate"] == 0.123457 and found[1]["pass_rate"] is None and len(found) == len(made)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    assert lines.read(tmp_path / "a.jsonl.gz") == found
    (tmp_path / "a.jsonl").write_text('{"method": "magic", "seed": 0, "step": 0}\n')
    with pytest.raises(ValueError, match=r"a.jsonl:1.*expected"):
        lines.read(tmp_path / "a.jsonl")


def test_the_report_lists_every_run_and_says_undefined_where_there_is_no_number(tmp_path):
    ablation = Ablation.of(rows({"outcome": [[0.1] * 4, [0.3] * 4]}))
    text = report.tables(ablation)
    for method in ARMS:
        assert f"| {method.replace('_', ' ')}, 1 |" in text
    # 0.1 and 0.3: mean 0.2, half of the width 12.706 x 0.1414 / sqrt 2 = 1.271
    assert "| pass rate (hidden tests) | 0.200 [-1.071, 1.471] |" in text
    assert "| entropy, nats a token | - | - | - | - | - |" in text
    report.draw(ablation, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_the_tables_in_the_docs_are_those_of_the_lines_beside_them():
    docs = Path(__file__).parents[3] / "docs"
    whole = Ablation.of(lines.read(docs / "ablation.jsonl.gz"))
    assert report.tables(whole) in (docs / "ablation.md").read_text("utf-8")
    assert len(whole.lines) == 15
