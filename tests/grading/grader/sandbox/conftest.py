"""The two sandboxes. Docker runs on an engine of the tests' own; where there can be none, tests skip and say why."""

import pytest

from grading.grader.sandbox import find_sandbox, why_no_sandbox
from tests.grading.grader.sandbox.asking import Box
from tests.grading.grader.sandbox.engines import IMAGE, image_tar, running_engine


@pytest.fixture(scope="session")
def engine():
    """dockerd with the image `IMAGE`; its address is `engine.host`."""
    with running_engine() as own:
        import docker

        repository, tag = IMAGE.split(":")
        docker.DockerClient(own.host).api.import_image_from_data(image_tar(), repository=repository, tag=tag)
        yield own


@pytest.fixture
def docker_box(engine, monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", engine.host)
    return Box(find_sandbox(IMAGE), tmp_path / "tree")


@pytest.fixture
def bubblewrap_box(tmp_path):
    if why := why_no_sandbox():
        pytest.skip(why)
    return Box(find_sandbox(), tmp_path / "tree")


@pytest.fixture(params=["bubblewrap", pytest.param("docker", marks=pytest.mark.alone)])
def box(request):
    """Each sandbox in turn, with an empty tree."""
    return request.getfixturevalue(f"{request.param}_box")
