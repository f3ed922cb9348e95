"""A group as a folder: `group.json`, `task/`, and per candidate a folder with `candidate.json`, `patch.diff`, logs,
test report and a trajectory (`events.jsonl` of ours, or `trajectory/` in the format of the agent).

Files are found by these fixed names only: a path written inside a JSON file is never opened.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from grading.errors import ImportRefused
from grading.importers import events_jsonl, formats
from grading.importers.reading import (
    FILE_LIMIT_BYTES,
    SMALL_LIMIT_BYTES,
    folder_entries,
    is_file,
    is_folder,
    packed,
    read_file,
    read_object,
)
from grading.importers.record import CandidateRecord, EventStream, GroupRecord, Problem, TaskRecord, TrajectoryRecord
from grading.importers.values import as_bytes, listed, mapping, number, numbers, words
from grading.storable import decoded, storable

NAME = "group-folder"
LOGS = ("test_output.txt", "eval.new.log", "eval.old.log", "run_instance.log", "log.txt")
OUTCOMES = ("passed", "failed", "infra_invalid")
SIDES = ("FAIL_TO_PASS", "PASS_TO_PASS")
# Kept elsewhere, or only about the files of the folder.
_NOT_EXTRA = frozenset(
    {"candidate_id", "patch", "patch_file", "patch_bytes", "patch_inlined", "patch_is_null", "files", "tests"}
    | {"outcome", "resolved", "counts", "events"}
)


@dataclass(frozen=True)
class Folder:
    """A folder that may be absent: no symlink, or nothing is there."""

    path: Path | None

    @classmethod
    def at(cls, path: Path | None) -> "Folder":
        return cls(path if path is not None and is_folder(path) else None)

    def file(self, name: str) -> Path | None:
        return self.path / name if self.path and is_file(self.path / name) else None

    def folder(self, name: str) -> "Folder":
        return Folder.at(self.path / name if self.path else None)

    def entries(self) -> list[Path]:
        return folder_entries(self.path) if self.path else []

    def bytes_of(self, name: str, limit: int = FILE_LIMIT_BYTES) -> bytes | None:
        file = self.file(name)
        return read_file(file, limit) if file else None

    def object_of(self, name: str, limit: int = FILE_LIMIT_BYTES) -> dict:
        file = self.file(name)
        return read_object(file, limit) if file else {}


@dataclass
class _Entry:
    """One candidate: what the JSON files say of it, and its folder."""

    name: str
    said: dict
    here: Folder


def recognises(path: Path) -> bool:
    return is_file(path / "group.json") or is_folder(path / "candidates")


def read(path: Path) -> GroupRecord:
    """Read one group folder; events of `events.jsonl` stay in their file until they are iterated.

    Raises:
        ImportRefused, BadInput: a file that must be read is too large, damaged, or not what its name says.
    """
    here = Folder(path)
    whole = here.object_of("group.json")
    key = words(whole.get("group_id")) or words(path.resolve().name)
    entries = _entries(here, whole)
    if not entries:
        raise ImportRefused(f"group {path} has no candidate", expected="group.json naming some, or candidates/<id>/")
    problems: list[Problem] = []
    candidates = [_candidate(key, entry, problems) for entry in entries]
    return GroupRecord(key, _task(here.folder("task"), key, mapping(whole.get("task"))), candidates, problems)


def _entries(group: Folder, whole: dict) -> list[_Entry]:
    """Candidates in the order of group.json, then those that only have a folder."""
    folders = {words(entry.name): Folder.at(entry) for entry in group.folder("candidates").entries()}
    found: dict[str, _Entry] = {}
    for said in map(mapping, listed(whole.get("candidates"))):
        name = words(said.get("candidate_id"))
        if not name or name in found:
            raise ImportRefused(f"a candidate of {group.path} has a bad id", got=repr(name), expected="a name, once")
        found[name] = _Entry(name, said, folders.get(name, Folder(None)))
    for name, folder in folders.items():
        if folder.path is None:
            continue
        entry = found.setdefault(name, _Entry(name, {}, folder))
        entry.said = {**folder.object_of("candidate.json", SMALL_LIMIT_BYTES), **entry.said}
    return list(found.values())


def _task(folder: Folder, key: str, said: dict) -> TaskRecord:
    statement = said.get("problem_statement")
    if not isinstance(statement, str):
        statement = decoded(folder.bytes_of("problem_statement.md", SMALL_LIMIT_BYTES) or b"")
    return TaskRecord(
        key=words(said.get("instance_id")) or key,
        statement=storable(statement),
        base_commit=words(said.get("base_commit"), 80),
        repository=words(said.get("repo"), 500),
        reference_patch=folder.bytes_of("gold.patch") or None,
    )


def _candidate(group: str, entry: _Entry, problems: list[Problem]) -> CandidateRecord:
    said, status = entry.said, words(entry.said.get("exit_status"))
    outcome = _outcome(said)
    if outcome is None:
        problems.append(Problem(group, entry.name, "no_outcome", "no label is given: stored as infra_invalid"))
    record = CandidateRecord(
        external_id=entry.name,
        outcome=outcome or "infra_invalid",
        problem="" if outcome else "no_outcome",
        patch=_patch(entry),
        log=_log(entry.here),
        tests=_tests(entry),
        counts=_counts(said),
        extra=storable({key: value for key, value in said.items() if key not in _NOT_EXTRA}),
        is_truncated=said.get("truncated") is True or "exit_" in status or "limit" in status.lower(),
    )
    return _with_trajectory(record, group, entry, problems)


def _outcome(said: dict) -> str | None:
    if said.get("outcome") in OUTCOMES:
        return said["outcome"]
    return {True: "passed", False: "failed"}[said["resolved"]] if isinstance(said.get("resolved"), bool) else None


def _says_patch(entry: _Entry) -> bool:
    return bool(entry.here.file("patch.diff")) or "patch" in entry.said or "patch_is_null" in entry.said


def _patch(entry: _Entry) -> bytes | None:
    if entry.said.get("patch_is_null") is True:
        return None
    return entry.here.bytes_of("patch.diff") or as_bytes(entry.said.get("patch"))


def _log(here: Folder) -> bytes | None:
    """The logs of a candidate as one; where there are several, each below a line with its name."""
    logs = {name: content for name in LOGS if (content := here.bytes_of(name))}
    if len(logs) < 2:
        return next(iter(logs.values()), None)
    return b"\n".join(b"==> %s <==\n%s" % (name.encode(), content) for name, content in logs.items())


def _tests(entry: _Entry) -> list[dict[str, str]]:
    own = [mapping(test) for test in listed(entry.said.get("tests"))]
    if own:
        return [{key: words(test[key], 2000) for key in ("name", "status", "message") if test.get(key)} for test in own]
    found = []
    for instance in map(mapping, entry.here.object_of("report.json").values()):
        for side in SIDES:
            listed_tests = mapping(mapping(instance.get("tests_status")).get(side))
            for key, status in (("success", "passed"), ("failure", "failed")):
                found += [{"name": words(test, 2000), "status": status} for test in listed(listed_tests.get(key))]
    return found


def _counts(said: dict) -> dict[str, int | float]:
    own = {words(key): value for key, value in mapping(said.get("counts")).items() if number(value) is not None}
    return own or numbers(turns=said.get("n_turns_reported"), cost_usd=said.get("cost_usd"))


def _with_trajectory(record: CandidateRecord, group: str, entry: _Entry, problems: list[Problem]) -> CandidateRecord:
    own = entry.here.file(events_jsonl.NAME)
    if own:
        return replace(record, events=events_jsonl.stream(own))
    folder = entry.here.folder("trajectory")
    files = folder.entries()
    if not files:
        return record
    named = [file for file in files if is_file(file) and formats.is_trajectory_name(file.name)]
    found = _first_read(named)
    if found is None:
        names = ", ".join(storable(file.name) for file in files)
        detail = f"trajectory in a format that is not read yet, kept raw: {names}"
        problems.append(Problem(group, entry.name, "format_not_read", words(detail, 300)))
        return replace(record, raw=packed(folder.path))
    if len(named) > 1:
        detail = f"{found[0].name} was read, not the other {len(named) - 1}"
        problems.append(Problem(group, entry.name, "more_than_one_trajectory", words(detail)))
    return _merged(record, found[1], formats.events_of(found[0]), patch_known=_says_patch(entry))


def _first_read(files: list[Path]) -> tuple[Path, TrajectoryRecord] | None:
    for file in files:
        record = formats.read_trajectory(file, read_file(file))
        if record is not None:
            return file, record
    return None


def _merged(
    record: CandidateRecord, said: TrajectoryRecord, events: EventStream, *, patch_known: bool
) -> CandidateRecord:
    return replace(
        record,
        events=events,
        patch=record.patch if patch_known else said.submission,
        is_truncated=record.is_truncated or said.is_truncated,
        counts={**said.counts, **record.counts},
        extra={**said.extra, **record.extra},
    )
