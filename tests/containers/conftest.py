"""An engine of the tests' own, the image built on it, and a site of containers on this machine's services."""

import os
import shutil
import subprocess
import time
import uuid

import pytest

from tests.containers import making
from tests.containers.site import ContainerSite
from tests.grading.grader.sandbox.engines import running_engine
from tests.on_services import SERVICES, answers


@pytest.fixture(scope="session")
def engine():
    with running_engine() as own:
        import docker

        yield docker.DockerClient(own.host, timeout=1800)  # a busy machine unpacks wheels for minutes without a word


@pytest.fixture(scope="session")
def image(engine):
    """The image, built on a base of Debian packages without any network."""
    import docker

    try:
        base, context = making.base_tar(), making.context()
    except making.CannotFetch as missing:
        pytest.skip(f"the image cannot be built here: {missing}")
    begun = time.monotonic()
    engine.api.import_image_from_file(str(base), repository="gagar-base", tag="debian")
    arguments = {"BASE": "gagar-base:debian", "PIP_NO_INDEX": "1", "VERSION": "test"}
    try:
        made, log = engine.images.build(
            path=str(context), tag="gagar:test", buildargs=arguments, network_mode="none", rm=True, forcerm=True
        )
    except docker.errors.BuildError as failed:
        words = [line.get("stream") or line.get("error", "") for line in failed.build_log]
        pytest.fail(f"the image cannot be built: {''.join(words)[-3000:]}", pytrace=False)
    finally:
        shutil.rmtree(context)
    size = made.attrs["Size"] - engine.images.get("gagar-base:debian").attrs["Size"]
    print(f"\nbuilt in {time.monotonic() - begun:.0f} s; {size / 1e6:.0f} MB on top of the base")
    return made


@pytest.fixture(scope="session")
def services():
    """A database, a RabbitMQ host and a Redis number of this session alone: variables for the containers."""
    import psycopg

    for name, (_, _, port) in SERVICES.items():
        if not answers(port):
            pytest.skip(f"needs {name}: nothing answers on 127.0.0.1:{port}")
    if shutil.which("rabbitmqctl") is None:
        pytest.skip("needs rabbitmqctl, for a virtual host of its own")
    name = f"gagar_image_{uuid.uuid4().hex[:8]}"
    admin = os.environ.get(SERVICES["DATABASE_URL"][0], SERVICES["DATABASE_URL"][1])
    with psycopg.connect(admin, autocommit=True) as rows:
        rows.execute(f"CREATE DATABASE {name}")
    for words in (["add_vhost", name], ["set_permissions", "-p", name, "guest", ".*", ".*", ".*"]):
        subprocess.run(["rabbitmqctl", "-q", *words], check=True, capture_output=True)
    yield {
        "DATABASE_URL": f"{admin.rpartition('/')[0]}/{name}",
        "CELERY_BROKER_URL": f"amqp://guest:guest@127.0.0.1:5672/{name}",
        "REDIS_URL": "redis://127.0.0.1:6379/13",
    }
    subprocess.run(["rabbitmqctl", "-q", "delete_vhost", name], check=True, capture_output=True)
    with psycopg.connect(admin, autocommit=True) as rows:
        rows.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def site(engine, image, services):
    """Every role of compose.yaml, started as it is written there, on the network of this machine."""
    made = ContainerSite(engine, image, services)
    try:
        made.start()
        yield made
    finally:
        made.remove()
