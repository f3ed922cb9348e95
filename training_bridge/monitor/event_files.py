"""TensorBoard event files read with TensorBoard's own reader: every scalar, and what of a file could not be read."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

RECORD_BYTES = 16  # length, two checksums: around each event
LAST_STEP = 2**31 - 1


@dataclass
class Read:
    """What came of the files. A problem is a sentence."""

    files: int = 0
    scalars: int = 0
    skipped: int = 0  # histograms, pictures, texts
    problems: list[str] = field(default_factory=list)


def event_files(folder: Path) -> list[Path]:
    """The files in the order in which they were begun: their names hold the time."""
    found = [folder] if folder.is_file() else [path for path in folder.rglob("*tfevents*") if path.is_file()]
    return sorted(found, key=lambda path: (path.parent, path.name))


def scalars(folder: Path, read: Read) -> Iterator[tuple[str, int, float]]:
    """(tag, step, value) of every scalar below a folder, file by file.

    Tags of files that lie in folders of their own begin with the folder, as TensorBoard's runs do, unless there is
    only one. A file that is cut or broken gives what comes before.
    """
    files = event_files(folder)
    parents = {path.parent for path in files}
    for path in files:
        read.files += 1
        prefix = "" if len(parents) == 1 else f"{path.parent.relative_to(folder)}/"
        for tag, step, value in _of_file(path, read):
            yield f"{'' if prefix == './' else prefix}{tag}", step, value


def _of_file(path: Path, read: Read) -> Iterator[tuple[str, int, float]]:
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    done = 0
    for raw in RawEventFileLoader(str(path)).Load():
        done += len(raw) + RECORD_BYTES
        event = Event.FromString(raw)
        for value in event.summary.value:
            number = _number(value)
            if number is None:
                read.skipped += 1
            elif not 0 <= event.step <= LAST_STEP:
                read.problems.append(f"{path.name}: {value.tag} at step {event.step}, expected 0 to {LAST_STEP}")
            else:
                read.scalars += 1
                yield value.tag, event.step, number
    if left := path.stat().st_size - done:
        read.problems.append(f"{path.name}: the last {left} bytes are cut off or broken; what came before was read")


def _number(value) -> float | None:
    """The scalar of a summary; None where it is something else."""
    from tensorboard.util import tensor_util

    if value.WhichOneof("value") == "simple_value":
        return value.simple_value
    if not value.HasField("tensor"):
        return None
    found = tensor_util.make_ndarray(value.tensor)
    if found.size != 1 or found.dtype.kind not in "fiub":
        return None
    return float(found.reshape(()))
