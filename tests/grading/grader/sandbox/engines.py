"""A docker engine of the tests' own, and an image made of this machine's python3: nothing is pulled from anywhere."""

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gagar_web.embedded import die_with_parent

PYTHON = "/usr/bin/python3"
PROGRAMS = ("sh", "head", "tar", "cat", "sleep", "yes", "rm", "mkdir", "ls", "id", "setsid", "true")
IMAGE = "gagar-tests:python"
SKIPPED = ("test", "tests", "dist-packages", "idlelib", "ensurepip", "lib2to3", "pydoc_data", "tkinter")


def why_no_engine() -> str:
    """Returns: why no engine can be started here; "" if one can."""
    if os.geteuid() != 0:
        return "needs root, to start a docker engine of its own"
    missing = [name for name in ("dockerd", "containerd", "runc") if shutil.which(name) is None]
    if missing or not Path(PYTHON).exists():
        return f"needs docker.io and python3 of this system, missing: {', '.join(missing) or PYTHON}"
    return ""


class OwnEngine:
    """dockerd on a socket and a data folder of its own; gone with everything it started."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="gagar-dockerd-"))
        self.host = f"unix://{self.folder}/s"
        self.log = (self.folder / "log").open("wb")
        self.process = subprocess.Popen(
            ["dockerd", "--data-root", f"{self.folder}/data", "--exec-root", f"{self.folder}/exec", "--pidfile",
             f"{self.folder}/pid", "-H", self.host, "--storage-driver", "overlay2", "--iptables=false",
             "--bridge=none", "--ip-forward=false"],
            stdout=self.log, stderr=self.log, start_new_session=True, preexec_fn=die_with_parent,  # noqa: PLW1509
        )  # fmt: skip

    def wait(self, within_s: float = 60) -> str:
        """Returns: "" once it answers, else the end of its log."""
        import docker

        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                docker.DockerClient(self.host).close()
                return ""
            except Exception:
                time.sleep(0.05)
        return (self.folder / "log").read_text(errors="replace")[-500:]

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        for line in reversed(Path("/proc/mounts").read_text().splitlines()):
            where = line.split()[1]
            if where.startswith(str(self.folder)):
                subprocess.run(["umount", "-l", where], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def running_engine() -> Iterator[OwnEngine]:
    """One that answers, for as long as the block runs; where there can be none the test is skipped and says why."""
    if why := why_no_engine():
        pytest.skip(why)
    own = OwnEngine()
    try:
        if why := own.wait():
            pytest.skip(f"no docker engine starts here: {why}")
        yield own
    finally:
        own.stop()


def image_tar() -> bytes:
    """A tar of python3 with its standard library, a shell and a few programs."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for folder in (".", "usr", "usr/bin", "usr/lib", "usr/lib64", "tmp", "check"):
            _folder(tar, folder)
        for name, target in (("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")):
            _link(tar, name, target)
        python = os.path.realpath(PYTHON)
        programs = [shutil.which(name, path="/usr/bin:/bin") for name in PROGRAMS]
        _link(tar, "usr/bin/python3", os.path.basename(python))
        dynamic = list(Path(f"/usr/lib/{os.path.basename(python)}/lib-dynload").glob("*.so"))
        for path in {*_libraries([python, *programs, *map(str, dynamic)])}:
            tar.add(os.path.realpath(path), arcname=_usual(path))
        for path in (python, *programs):
            tar.add(os.path.realpath(path), arcname=f"usr/bin/{os.path.basename(path)}")
        standard = f"/usr/lib/{os.path.basename(python)}"
        tar.add(standard, arcname=standard[1:], filter=_wanted)
    return packed.getvalue()


def _libraries(programs: list[str]) -> list[str]:
    found = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    words = [word for line in found.splitlines() for word in line.split()]
    return [
        word for word in words if word.startswith(("/lib", "/usr/lib")) and ".so" in word and not word.endswith(":")
    ]


def _usual(path: str) -> str:
    return path[1:] if path.startswith("/usr") else f"usr{path}"


def _wanted(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = info.name.split("/")
    return None if set(parts) & set(SKIPPED) or parts[-1].startswith("config-") else info


def _folder(tar: tarfile.TarFile, name: str) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    tar.addfile(info)


def _link(tar: tarfile.TarFile, name: str, target: str) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    tar.addfile(info)
