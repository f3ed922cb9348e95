"""An image made for real from Debian packages and this checkout; what was fetched is kept in build/image, git-ignored.

The build itself has no network: the base holds the programs, the context the wheels.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.containers.written import ROOT

KEPT = ROOT / "build" / "image"
PACKAGES = "python3-venv,ca-certificates,git,openssh-client,bubblewrap"
FETCH_S = 900
DECOYS = {".env": "GAGAR_SECRET_KEY=decoy", "var/secret_key": "decoy", "gagar_web/.env": "decoy", "id_rsa": "decoy"}


class CannotFetch(Exception):
    """No mirror, no index, or not this machine."""


def base_tar() -> Path:
    """A root filesystem of this machine's own Debian release, with python3.11 and git."""
    release = platform.freedesktop_os_release()
    kept = KEPT / f"base-{release['VERSION_CODENAME']}.tar"
    if kept.exists():
        return kept
    if shutil.which("debootstrap") is None:
        raise CannotFetch("debootstrap is not installed")
    # A folder in memory where there is one: dpkg writes 10,000 small files.
    with tempfile.TemporaryDirectory(prefix="gagar-base-", dir=_roomy()) as folder:
        root = Path(folder) / "root"
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", release["VERSION_CODENAME"]]
        _fetch([*command, str(root), _mirror(release["VERSION_CODENAME"])])
        KEPT.mkdir(parents=True, exist_ok=True)
        with tarfile.open(kept.with_suffix(".part"), "w") as tar:
            tar.add(root, arcname=".", filter=_wanted)
        kept.with_suffix(".part").rename(kept)
    return kept


def wheels() -> Path:
    """The wheels of requirements-image.lock, from wherever this machine's pip gets packages."""
    folder = KEPT / "wheels"
    lock, done = ROOT / "requirements-image.lock", folder / "complete"
    if done.exists() and done.read_bytes() == lock.read_bytes():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # The base has another python3.11.x than we: what one of them alone needs is taken too.
    (folder / "wanted.txt").write_text(re.sub(r" ; python_full_version < '3\.11\.\d+'", "", lock.read_text()))
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary", ":all:"]
    _fetch([*download, "--dest", str(folder), "--requirement", str(folder / "wanted.txt")])
    done.write_bytes(lock.read_bytes())
    return folder


def context() -> Path:
    """A bare clone of what is here, with the wheels, and with secrets that must stay outside."""
    place = KEPT / "context"
    shutil.rmtree(place, ignore_errors=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file() and not (ROOT / name).is_symlink():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    shutil.copytree(wheels(), place / "wheels", copy_function=os.link)
    for name, text in DECOYS.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


def _mirror(codename: str) -> str:
    """The Debian mirror that apt uses here."""
    asked = ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    sites = [site for site, release in (line.split() for line in found.splitlines()) if release == codename]
    if not sites:
        raise CannotFetch(f"apt knows no mirror of {codename}")
    return sites[0]


def _roomy() -> str | None:
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > 2 << 30 else None


def _wanted(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    is_left_out = info.name.endswith(".deb") or info.name.startswith(("./proc/", "./sys/", "./usr/share/doc/"))
    return None if is_left_out or info.name.startswith("./var/lib/apt/lists/") else info


def _fetch(command: list[str]) -> None:
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=FETCH_S)
    except subprocess.CalledProcessError as failed:
        raise CannotFetch(f"{command[0]}: {(failed.stderr or failed.stdout)[-300:]}") from None
    except subprocess.TimeoutExpired:
        raise CannotFetch(f"{command[0]}: nothing after {FETCH_S} s") from None
