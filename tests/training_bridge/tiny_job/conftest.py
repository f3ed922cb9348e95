"""One runner for the whole session: results are kept by tree, so later tests are fast."""

import contextlib

import pytest

from training_bridge.tiny_job.runner import Runner

with contextlib.suppress(ImportError):
    import torch

    torch.set_num_threads(1)  # as the job does: threads cost more than they give at this size


@pytest.fixture(scope="session")
def runner():
    with Runner() as shared:
        yield shared
