"""What lies at a path: one group folder, a folder of them, a trajectory file, or a folder of those."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grading.errors import ImportRefused
from grading.importers import formats, group_folder
from grading.importers.reading import folder_entries, is_file, is_folder
from grading.importers.record import GroupRecord, Problem

AUTO = "auto"
FORMATS = (AUTO, group_folder.NAME, *formats.READERS)


@dataclass(frozen=True)
class Source:
    """One group to be, read when its turn comes; `read` gives a Problem for what is no group."""

    label: str
    read: Callable[[], GroupRecord | Problem]


def sources(path: Path, wanted: str = AUTO) -> list[Source]:
    """Find the groups at a path.

    Args:
        path: a file or a folder; itself it may be a symlink, inside it none is followed.
        wanted: one of FORMATS.
    Returns:
        At least one source; some may turn out to be no group when they are read.
    Raises:
        ImportRefused: nothing is there, or nothing of a format that is read.
    """
    path = path.resolve()
    if not path.exists():
        raise ImportRefused(
            f"{path} does not exist", expected="a trajectory file, a group folder or a folder of groups"
        )
    found = _at_file(path, wanted) if path.is_file() else _at_folder(path, wanted)
    if not found:
        raise refusal(path, wanted)
    return found


def _at_file(path: Path, wanted: str) -> list[Source]:
    only = None if wanted == AUTO else wanted
    if only == group_folder.NAME:
        return []

    def read() -> GroupRecord:
        group = formats.group_of_one(path, only)
        if group is None:
            raise refusal(path, wanted)
        return group

    return [Source(str(path), read)]


def _at_folder(path: Path, wanted: str) -> list[Source]:
    if wanted in (AUTO, group_folder.NAME):
        if group_folder.recognises(path):
            return [Source(str(path), lambda: group_folder.read(path))]
        entries = folder_entries(path)
        if any(is_folder(entry) and group_folder.recognises(entry) for entry in entries):
            return [_member(entry) for entry in entries if is_folder(entry) or formats.is_trajectory_name(entry.name)]
    if wanted == group_folder.NAME:
        return []
    only = None if wanted == AUTO else wanted
    files = [entry for entry in folder_entries(path) if is_file(entry) and entry.name.endswith(formats.ENDINGS)]
    return [_lone(file, only) for file in files if only or formats.looks_readable(file)]


def _member(path: Path) -> Source:
    if group_folder.recognises(path):
        return Source(str(path), lambda: group_folder.read(path))
    detail = "beside group folders, but none itself: import it by its own path"
    return Source(str(path), lambda: Problem(path.name, "", "not_a_group", detail))


def _lone(path: Path, only: str | None) -> Source:
    def read() -> GroupRecord | Problem:
        group = formats.group_of_one(path, only)
        return group or Problem(path.name, "", "format_not_read", "no reader recognises this file")

    return Source(str(path), read)


def refusal(path: Path, wanted: str) -> ImportRefused:
    known = "one of: " + ", ".join(FORMATS[1:])
    expected = known if wanted == AUTO else f"{wanted}; --format auto looks for {known}"
    return ImportRefused(f"{path} is of no format that is read", expected=expected)
