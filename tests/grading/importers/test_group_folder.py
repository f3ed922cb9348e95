"""A group folder becomes one group, whatever is wrong in it is said, and nothing outside it is opened."""

import io
import tarfile
from collections import Counter

import pytest

from grading.errors import BadInput, ImportRefused
from grading.importers import events_jsonl, group_folder, reading
from grading.importers.record import GroupRecord
from grading.importers.sources import sources
from tests.grading.importers.files import PATCH, SHARED, needs_shared, swe_agent_document, write_group, write_json


def by_name(group: GroupRecord) -> dict:
    return {candidate.external_id: candidate for candidate in group.candidates}


def test_a_group_folder_gives_task_labels_patches_logs_and_events(tmp_path):
    group = group_folder.read(write_group(tmp_path / "g"))
    assert (group.key, group.task.key, group.task.base_commit, group.task.repository) == (
        *("g1", "ours__f-1"),
        *("abc", "ours/f"),
    )
    assert group.task.reference_patch == PATCH.encode()
    a, b, c, d = group.candidates
    assert [x.outcome for x in group.candidates] == ["passed", "failed", "passed", "infra_invalid"]
    assert [x.patch for x in (a, b, d)] == [PATCH.encode(), None, None]
    assert a.log == b"1 passed"
    assert a.extra == {"model": "m-1"}
    assert [e["kind"] for e in a.events] == ["action", "observation"]
    assert len(list(b.events)) == 9
    assert b.patch is None  # group.json says so; the file's own submission does not overrule it
    assert (c.events, d.events, d.problem, d.counts) == (None, None, "no_outcome", {"cost_usd": 0.1})
    with tarfile.open(fileobj=io.BytesIO(c.raw)) as tar:
        assert tar.getnames() == ["stub.json"]
    assert [(p.candidate, p.problem) for p in group.problems] == [("c", "format_not_read"), ("d", "no_outcome")]


def test_candidates_may_be_given_by_their_folders_alone(tmp_path):
    write_json(tmp_path / "g" / "candidates" / "x" / "candidate.json", {"outcome": "failed", "tests": [{"name": "t"}]})
    write_json(tmp_path / "g" / "candidates" / "x" / "trajectory" / "f.traj", swe_agent_document())
    group = group_folder.read(tmp_path / "g")
    assert (group.key, group.task.key) == ("g", "g")
    assert group.candidates[0].outcome == "failed"
    assert group.candidates[0].tests == [{"name": "t"}]
    assert group.candidates[0].patch == PATCH.encode()  # nobody else says what the patch is


def test_several_logs_are_one_with_their_names(tmp_path):
    folder = write_group(tmp_path / "g")
    (folder / "candidates" / "a" / "run_instance.log").write_text("applied")
    log = by_name(group_folder.read(folder))["a"].log
    assert log == b"==> test_output.txt <==\n1 passed\n==> run_instance.log <==\napplied"


def test_nothing_outside_the_folder_is_opened(tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "patch.diff").write_text("secret")
    (secret / "events.jsonl").write_text('{"kind": "action", "text": "secret"}')
    folder = write_group(tmp_path / "g")
    entries = [
        {"candidate_id": name, "resolved": True, "patch_file": "../secret/patch.diff"}
        for name in ("l", "../secret", "f")
    ]
    write_json(folder / "group.json", {"candidates": entries})
    (folder / "candidates" / "l").symlink_to(secret)
    (folder / "candidates" / "f").mkdir()
    for name in ("patch.diff", "events.jsonl"):
        (folder / "candidates" / "f" / name).symlink_to(secret / name)
    found = by_name(group_folder.read(folder))
    for name in ("l", "../secret", "f"):
        assert (found[name].patch, found[name].events) == (None, None)
    with pytest.raises(ImportRefused, match="cannot be read"):
        reading.read_file(folder / "candidates" / "f" / "patch.diff")


@pytest.mark.parametrize(
    "content",
    [
        '{"candidates": [{"candidate_id": "a"}, {"candidate_id": "a"}]}',
        '{"candidates": [{"resolved": true}]}',
        '{"candidates": [{"candidate_id": "a", "resolved": true, "resolved": false}]}',
        '{"candidates": []}',
        "[]",
        "{",
    ],
)
def test_a_group_that_cannot_be_told_apart_is_refused(tmp_path, content):
    (tmp_path / "group.json").write_text(content)
    with pytest.raises(BadInput):
        group_folder.read(tmp_path)


def test_lines_that_are_no_events_are_dropped_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(events_jsonl, "lines_of", lambda path: reading.lines_of(path, limit=1000))
    path = tmp_path / "events.jsonl"
    path.write_bytes(
        b'\n{"kind": "observation", "text": "before any action"}\n'
        b'{"kind": "action", "text": "caf\xe9"}\n[1]\nnot json\n'
        b'{"kind": "action", "text": "' + b"x" * 5000 + b'"}\n{"a": 1, "a": 2}\n{"kind": "observation", "text": "last"}'
    )
    stream = events_jsonl.stream(path)
    assert [event["text"] for event in stream] == ["before any action", "caf\udce9", "last"]
    counts = stream.counts
    assert (counts.read, counts.kept, counts.dropped, counts.unlinked) == (7, 3, 4, 1)
    assert sum(counts.why.values()) == 4


def test_a_file_over_the_limit_is_refused_by_name(tmp_path):
    (tmp_path / "big").write_bytes(b"x" * 11)
    with pytest.raises(ImportRefused, match="big is too large"):
        reading.read_file(tmp_path / "big", limit=10)


def test_a_path_is_one_group_many_groups_or_trajectory_files(tmp_path):
    write_group(tmp_path / "many" / "g1")
    write_group(tmp_path / "many" / "g2", key="g2")
    (tmp_path / "many" / "notes").mkdir()
    write_json(tmp_path / "files" / "one.traj", swe_agent_document())
    write_json(tmp_path / "files" / "other.json", {"no": "trajectory"})
    (tmp_path / "files" / "README.md").write_text("x")
    assert [s.read().key for s in sources(tmp_path / "many" / "g1")] == ["g1"]
    many = [s.read() for s in sources(tmp_path / "many")]
    assert [g.key for g in many if isinstance(g, GroupRecord)] == ["g1", "g2"]
    assert [p.problem for p in many if not isinstance(p, GroupRecord)] == ["not_a_group"]
    for path in (tmp_path / "files", tmp_path / "files" / "one.traj"):
        groups = [s.read() for s in sources(path)]
        assert [(g.key, len(g.candidates), g.candidates[0].outcome) for g in groups] == [("one", 1, "infra_invalid")]


@pytest.mark.parametrize("wanted", ["auto", "swe-agent", "mini-swe-agent", "group-folder"])
def test_a_path_of_unknown_format_is_refused_with_the_formats_that_are_read(tmp_path, wanted):
    (tmp_path / "x.json").write_text('{"no": "trajectory"}')
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "x.json", tmp_path / "empty", tmp_path / "missing"):
        with pytest.raises(ImportRefused, match="of no format that is read|does not exist"):
            for source in sources(path, wanted):
                source.read()


@needs_shared
def test_all_real_groups_are_read():
    groups = [source.read() for source in sources(SHARED / "groups")]
    assert len(groups) == 8
    candidates = [candidate for group in groups for candidate in group.candidates]
    assert Counter(c.outcome for c in candidates) == {"passed": 57, "failed": 40, "infra_invalid": 1}
    assert sum(c.patch is None for c in candidates) == 3
    assert sum(c.events is not None for c in candidates) == 26
    assert sum(c.raw is not None for c in candidates) == 26
    assert sum(c.log is not None for c in candidates) == 46
    problems = Counter(p.problem for group in groups for p in group.problems)
    assert problems == {"format_not_read": 26, "no_outcome": 1}
    assert all(group.task.statement for group in groups)
