from pathlib import Path

import pytest

from grading.importers import group_folder
from grading.integrity.registry import detect
from grading.review.diffs.parse import parse_patch

GROUPS = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "real" / "groups"
JACKSON = ("mswe-java__fasterxml__jackson-databind-4487", "SWE-agent_gpt-4o-mini-2024-07-18")


@pytest.mark.skipif(not GROUPS.is_dir(), reason="the real groups are not beside this checkout")
def test_of_98_real_candidates_one_has_a_strong_signal_and_it_really_removed_two_tests():
    strong, count = [], 0
    for folder in sorted(GROUPS.iterdir()):
        for candidate in group_folder.read(folder).candidates:
            count += 1
            events = list(candidate.events or ())
            signals = detect(candidate.external_id, parse_patch(candidate.patch), events, candidate.log or b"")
            strong += [(folder.name, candidate.external_id, s.words) for s in signals if s.strength == "strong"]
    assert count == 98
    # Its patch deletes testParameterizedClassType and testParameterizedSimpleType and adds one test: it failed.
    assert [found[:2] for found in strong] == [JACKSON]
    assert "loses 2 tests: testParameterizedClassType, testParameterizedSimpleType" in strong[0][2]
