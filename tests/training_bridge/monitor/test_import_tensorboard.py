"""An old run from TensorBoard's files: several files and tags, numbers that are none, and a tail that broke."""

import pytest
from django.core.management import CommandError, call_command

from tests.factories import flash
from tests.training_bridge.monitor.test_series import curves
from training_bridge.models import MetricPoint

pytest.importorskip("tensorboard", reason="the extra [tensorboard] is not installed")
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def rubric():
    flash()


def write(folder, scalars: list[tuple[str, int, float]]):
    """An event file as TensorBoard's own writer makes it."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for tag, step, value in scalars:
        writer.add_event(Event(step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)])))
    writer.close()
    return next(path for path in folder.iterdir() if "tfevents" in path.name)


def test_curves_of_several_files_with_gaps_and_the_last_value_of_a_step(tmp_path, capsys):
    write(tmp_path / "train", [("entropy", 0, 2.0), ("entropy", 1, float("nan")), ("kl", 1, float("inf"))])
    write(tmp_path / "eval", [("pass_rate", 0, 0.5), ("pass_rate", 0, 0.75)])
    call_command("import_tensorboard", tmp_path, "--run", "old", "--name", "train/entropy=entropy")
    said = capsys.readouterr().out
    from grading.models import Run

    run = Run.objects.get(public_id="old")
    assert curves(run) == {"entropy": {0: 2.0, 1: None}, "train/kl": {1: None}, "eval/pass_rate": {0: 0.75}}
    assert not run.is_live and "scalars: 5" in said and "problems: 0" in said
    assert MetricPoint.objects.filter(name="eval/pass_rate").count() == 2
    with pytest.raises(CommandError, match="metrics already"):
        call_command("import_tensorboard", tmp_path, "--run", "old")


def test_a_broken_tail_gives_what_comes_before_and_says_so(tmp_path, capsys):
    file = write(tmp_path, [("loss", step, float(step)) for step in range(20)])
    file.write_bytes(file.read_bytes()[:-9])
    call_command("import_tensorboard", file, "--run", "cut")
    said = capsys.readouterr().out
    assert "loss: 19 points, to step 18" in said and "cut off or broken" in said


def test_scalars_kept_as_tensors_are_read_and_pictures_are_left_out(tmp_path, capsys):
    import numpy as np
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util.tensor_util import make_tensor_proto

    writer = EventFileWriter(str(tmp_path))
    for shape in ((), (3,)):
        tensor = make_tensor_proto(np.full(shape, 0.25, np.float32))
        summary = Summary(value=[Summary.Value(tag="loss", tensor=tensor)])
        writer.add_event(Event(step=1, summary=summary))
    writer.close()
    call_command("import_tensorboard", tmp_path, "--run", "tensors")
    assert "scalars: 1\nnot scalars, left out: 1" in capsys.readouterr().out


def test_a_folder_without_events_is_refused_and_leaves_no_run(tmp_path):
    from grading.models import Run

    with pytest.raises(CommandError, match="no scalar"):
        call_command("import_tensorboard", tmp_path, "--run", "empty")
    assert not Run.objects.filter(public_id="empty").exists()
