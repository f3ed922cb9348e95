"""docker: one container a check, of an image that is already here. No network, nothing of the host mounted."""

import logging
import secrets
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import SHUT_RDWR
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.types import LogConfig, Ulimit

from grading.errors import NoSandbox
from grading.grader.sandbox import leftovers
from grading.grader.sandbox.engine import ENVIRONMENT, PREPARE, Job
from grading.grader.sandbox.shape import Ended, Limits
from grading.grader.sandbox.streams import Kept

log = logging.getLogger(__name__)
NOBODY = 65534
ANSWER_S = 30
SHM_BYTES = 16 << 20
SMALL_BYTES = 64 << 20  # of /tmp and of each volume an image declares
STDOUT, FRAME = 1, 8
BROKEN = (DockerException, requests.RequestException, OSError)


class Docker:
    name = "docker"

    def __init__(self, client: docker.DockerClient, image: str):
        self.api, self.image = client.api, image

    def execute(self, job: Job) -> Ended:
        """Run the job in a container of its own, which is removed whatever happens: by name, so also half made."""
        started, kept = time.monotonic(), Kept(job.limits.output_bytes)
        name = f"gagar-check-{secrets.token_hex(8)}"
        try:
            with self._removed(name):
                stopped = self._start(name, job, kept, started + job.limits.wall_s)
                state = self._ended(name, kill=bool(stopped))
        except BROKEN as broken:
            raise NoSandbox("docker could not run the check", got=_words(broken)) from broken
        if state.get("OOMKilled") and stopped != "wall":
            stopped = "memory"
        return Ended(
            None if stopped else state.get("ExitCode"), bytes(kept.stdout), bytes(kept.output), kept.is_truncated,
            stopped, time.monotonic() - started,
        )  # fmt: skip

    def _start(self, name: str, job: Job, kept: Kept, deadline: float) -> str:
        volumes = (self.api.inspect_image(self.image)["Config"] or {}).get("Volumes") or {}
        # create and start, never run: run pulls an image that is not here
        self.api.create_container(**container(self.api, self.image, name, job, volumes))
        attached = self.api.attach_socket(name, {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        socket = getattr(attached, "_sock", attached)
        sender = threading.Thread(target=_send, args=(socket, job), daemon=True)
        try:
            self.api.start(name)
            sender.start()
            return _receive(socket, job, kept, deadline)
        finally:
            with suppress(OSError):
                socket.shutdown(SHUT_RDWR)  # wakes the sender: it must not write to a number that is somebody else's
            if sender.ident:
                sender.join()
            socket.close()
            attached.close()

    def _ended(self, name: str, *, kill: bool) -> dict[str, Any]:
        if kill:
            with suppress(APIError):  # it has just ended
                self.api.kill(name)
        self.api.wait(name, timeout=ANSWER_S)
        return self.api.inspect_container(name)["State"]

    @contextmanager
    def _removed(self, name: str) -> Iterator[None]:
        try:
            yield
        finally:
            try:
                self.api.remove_container(name, force=True, v=True)
            except NotFound:
                pass
            except BROKEN:
                log.exception("container %s is left to the reaper", name)


def container(api, image: str, name: str, job: Job, volumes=()) -> dict[str, Any]:
    """All that a container is made with. Nothing a run or an image says can turn its network on or mount a folder."""
    limits: Limits = job.limits
    host = api.create_host_config(
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        mem_limit=limits.memory_bytes,
        memswap_limit=limits.memory_bytes,
        pids_limit=limits.pids,
        nano_cpus=1_000_000_000,
        shm_size=SHM_BYTES,
        # An image's volumes would be folders of the host, of any size.
        tmpfs={path: _memory(SMALL_BYTES) for path in ("/tmp", *volumes)}
        | {"/check": _memory(limits.disk_bytes, "exec")},
        ulimits=[
            Ulimit(name="cpu", soft=limits.cpu_s, hard=limits.cpu_s),
            Ulimit(name="fsize", soft=limits.file_bytes, hard=limits.file_bytes),
            Ulimit(name="nofile", soft=1024, hard=1024),
            Ulimit(name="core", soft=0, hard=0),
        ],
        log_config=LogConfig(type="none"),  # else the engine writes all it prints to the host's disk
    )
    return {
        "image": image,
        "name": name,
        "entrypoint": ["/bin/sh", "-c", PREPARE, "check"],
        "command": list(job.words),
        "user": f"{NOBODY}:{NOBODY}",
        "environment": dict(ENVIRONMENT),
        "working_dir": "/",
        "hostname": "check",
        "network_disabled": True,
        "use_config_proxy": False,  # a proxy's address may hold a password
        "healthcheck": {"test": ["NONE"]},
        "stdin_open": True,
        "labels": leftovers.labels(limits.wall_s),
        "host_config": host,
    }


def _memory(size: int, *more: str) -> str:
    return ",".join((f"size={size}", "mode=0755", f"uid={NOBODY}", f"gid={NOBODY}", *more))


def _send(socket, job: Job) -> None:
    with suppress(OSError):  # the container may end before it has read everything
        while data := job.packed.read(1 << 16):
            socket.sendall(data)


def _receive(socket, job: Job, kept: Kept, deadline: float) -> str:
    """Frames of stdout and stderr until the container ends; returns why we stop it before."""
    pending = bytearray()
    frame_left, is_stdout = 0, False
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return "wall"
        socket.settimeout(left)
        try:
            data = socket.recv(1 << 16)
        except TimeoutError:
            return "wall"
        if not data:
            return ""
        pending += data
        while pending:
            if frame_left == 0:
                if len(pending) < FRAME:
                    break
                stream, frame_left = struct.unpack(">BxxxL", pending[:FRAME])
                is_stdout = stream == STDOUT
                del pending[:FRAME]
            part = bytes(pending[:frame_left])
            kept.add(part, is_stdout=is_stdout, is_ours=job.is_ours)
            frame_left -= len(part)
            del pending[: len(part)]
        if kept.is_flood:
            return "output"


def client() -> docker.DockerClient:
    """The engine that DOCKER_HOST names, else the local one."""
    return docker.from_env(timeout=ANSWER_S)


def why_not(image: str) -> str:
    """Returns: why docker cannot run checks of this image here; "" if it can."""
    try:
        here = client()
    except BROKEN as broken:
        return f"no docker engine answers: {_words(broken)}"
    try:
        here.api.inspect_image(image)
    except ImageNotFound:
        return f"image {image} is not on this machine, and nothing is pulled by itself: docker pull {image}"
    except BROKEN as broken:
        return f"no docker engine answers: {_words(broken)}"
    finally:
        here.close()
    return ""


def _words(broken: Exception) -> str:
    return str(getattr(broken, "explanation", None) or broken)[:200]
