"""Which format a file has: the readers of single trajectory files, by name and by looking at the content."""

from pathlib import Path

from grading.errors import BadInput
from grading.importers import mini_swe_agent, swe_agent
from grading.importers.reading import read_file
from grading.importers.record import CandidateRecord, EventStream, GroupRecord, Problem, TrajectoryRecord
from grading.storable import parse_json

READERS = {reader.NAME: reader for reader in (swe_agent, mini_swe_agent)}
ENDINGS = (".traj.json", ".traj", ".json")


def is_trajectory_name(name: str) -> bool:
    """Names under which the agents themselves store a trajectory."""
    return name.endswith((".traj", ".traj.json"))


def read_trajectory(path: Path, content: bytes, only: str | None = None) -> TrajectoryRecord | None:
    """Read one trajectory file.

    Args:
        path: for its name.
        content: of the file.
        only: the name of a format, None to find it out.
    Returns:
        What it says; None when no reader recognises it.
    Raises:
        BadInput: it is no JSON at all, though its name says that it is a trajectory or a format was asked for.
    """
    try:
        document = parse_json(content, where=str(path))
    except BadInput:
        if only or is_trajectory_name(path.name):
            raise
        return None
    for name, reader in READERS.items():
        if only in (None, name) and reader.recognises(document, None if only else path.name):
            return reader.read(document, stem(path))
    return None


def events_of(path: Path) -> EventStream:
    """The events of a trajectory file, parsed anew each time: a group never holds all its files in memory."""

    def source():
        yield from read_trajectory(path, read_file(path)).events.source()

    return EventStream(source)


def looks_readable(path: Path) -> bool:
    """Whether a file found in a folder is worth a try: by its name, or else by its content."""
    if is_trajectory_name(path.name):
        return True
    try:
        return read_trajectory(path, read_file(path)) is not None
    except BadInput:
        return False


def stem(path: Path) -> str:
    ending = next((ending for ending in ENDINGS if path.name.endswith(ending)), "")
    return path.name.removesuffix(ending) or path.name


def group_of_one(path: Path, only: str | None = None) -> GroupRecord | None:
    """A lone trajectory file as a group of one candidate. It holds no outcome, so the candidate is not labelled.

    Returns:
        The group; None when no reader recognises the file.
    """
    record = read_trajectory(path, read_file(path), only)
    if record is None:
        return None
    name = stem(path)
    candidate = CandidateRecord(
        external_id=name,
        outcome="infra_invalid",
        problem="no_outcome",
        patch=record.submission,
        events=record.events,
        is_truncated=record.is_truncated,
        counts=record.counts,
        extra=record.extra,
    )
    problem = Problem(name, name, "no_outcome", "a trajectory file says nothing of tests: stored as infra_invalid")
    return GroupRecord(name, record.task, [candidate], [problem])
