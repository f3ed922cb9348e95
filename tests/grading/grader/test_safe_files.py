"""Host-side reads of a tree that a stranger filled (S3): no link followed, no special file opened, no hang."""

import hashlib
import os
import socket
import threading
from pathlib import Path

import pytest

from grading.errors import NotAllowed, NotFound, TooLarge
from grading.grader.safe_files import digests, read, remove, walk

CANARY = b"the canary of this machine"


@pytest.fixture
def place(tmp_path):
    """A tree beside a file of the host; the file is the same afterwards."""
    host = tmp_path / "host.txt"
    host.write_bytes(CANARY)
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "plain.txt").write_bytes(b"plain")
    before = host.stat()
    yield root, host
    after = host.stat()
    assert host.read_bytes() == CANARY
    assert (before.st_mode, before.st_mtime_ns) == (after.st_mode, after.st_mtime_ns)


def _deep_link(root: Path, host: Path):
    (root / "a").mkdir()
    (root / "a" / "up").symlink_to("../..")


def _chain(root: Path, host: Path):
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("three")
    (root / "three").symlink_to(host)


def _socket(root: Path, host: Path):
    here = os.getcwd()
    os.chdir(root)  # a socket's name is short
    try:
        socket.socket(socket.AF_UNIX).bind("s")
    finally:
        os.chdir(here)


def _loop(root: Path, host: Path):
    (root / "loop").symlink_to("loop")


def _setuid(root: Path, host: Path):
    os.link(host, root / "suid")


def _device(root: Path, host: Path):
    try:
        os.mknod(root / "dev", 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        os.mkfifo(root / "dev")


def link(name: str, target: str):
    return lambda root, host: (root / name).symlink_to(target.format(host=host, root=root))


PLANTED = [
    (link("f", "{host}"), "f"),
    (link("f", "../host.txt"), "f"),
    (link("f", "./../root/../host.txt"), "f"),
    (link("inner/f", "../../host.txt"), "inner/f"),
    (link("d", ".."), "d/host.txt"),
    (link("d", "{root}/.."), "d/host.txt"),
    (link("d", "/"), "d/etc/passwd"),
    (link("d", "inner"), "d/plain.txt"),
    (link("d", "/proc/self"), "d/environ"),
    (link("d", "/proc/self/root"), "d/etc/passwd"),
    (link("d", "/proc/self/cwd"), "d/pyproject.toml"),
    (link("d", "/dev"), "d/zero"),
    (link("f", "/dev/zero"), "f"),
    (link("f", "/dev/stdin"), "f"),
    (link("f", "nothing-there"), "f"),
    (_deep_link, "a/up/host.txt"),
    (_chain, "one"),
    (_chain, "two"),
    (_socket, "s"),
    (_loop, "loop"),
    (_loop, "loop/x"),
    (_device, "dev"),
    (_setuid, "suid"),
    (lambda root, host: os.link(host, root / "hard"), "hard"),
    (lambda root, host: os.link(host, root / "inner" / "hard"), "inner/hard"),
    (lambda root, host: os.mkfifo(root / "fifo"), "fifo"),
    (lambda root, host: os.mkfifo(root / "inner" / "fifo"), "inner/fifo"),
    (lambda root, host: None, "../host.txt"),
    (lambda root, host: None, "inner/../../host.txt"),
    (lambda root, host: None, "/etc/passwd"),
    (lambda root, host: None, "inner//../plain.txt"),
    (lambda root, host: None, "./inner/plain.txt"),
    (lambda root, host: None, "inner/plain.txt/"),
    (lambda root, host: None, "inner/plain.txt\0/../../../host.txt"),
    (lambda root, host: None, ""),
    (lambda root, host: None, "inner"),
    (lambda root, host: None, "a/" * 5000 + "a"),
    (lambda root, host: None, "x" * 5000),
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("planted, path", PLANTED, ids=[f"{n}" for n in range(len(PLANTED))])
def test_nothing_planted_is_read_or_followed(place, planted, path):
    root, host = place
    planted(root, host)
    with pytest.raises((NotAllowed, NotFound)):
        read(root, path, limit=1000)
    said = [found.path for found in walk(root)]
    assert said.count("inner/plain.txt") == 1
    assert not any("host.txt" in one or "passwd" in one for one in said)
    before = digests(root)
    host_sum = hashlib.sha256(CANARY).hexdigest()
    assert not any(host_sum in digest for digest in before.values())
    assert digests(root) == before


def test_a_plain_file_is_read_in_parts_with_its_length(place):
    root, _ = place
    assert read(root, "inner/plain.txt", limit=100) == (b"plain", 5)
    assert read(root, "inner/plain.txt", offset=2, limit=2) == (b"ai", 5)
    assert read(root, "inner/plain.txt", offset=9, limit=2) == (b"", 5)


def test_every_change_of_a_tree_changes_its_digests(place):
    root, host = place
    seen = [digests(root)]
    (root / "inner" / "plain.txt").write_bytes(b"other")
    seen.append(digests(root))
    (root / "inner" / "plain.txt").chmod(0o4755)
    seen.append(digests(root))
    (root / "l").symlink_to("inner")
    seen.append(digests(root))
    (root / "l").unlink()
    (root / "l").symlink_to(host)
    seen.append(digests(root))
    (root / "inner" / "plain.txt").unlink()
    seen.append(digests(root))
    assert all(one != other for n, one in enumerate(seen) for other in seen[:n])


def test_too_many_files_and_too_deep_folders_are_refused(place):
    root, _ = place
    for n in range(20):
        (root / f"f{n}").touch()
    with pytest.raises(TooLarge, match="too many files"):
        list(walk(root, most=10))
    deep = root
    for _ in range(70):
        deep = deep / "d"
        deep.mkdir()
    with pytest.raises(TooLarge, match="too deep"):
        digests(root)


def test_a_folder_is_removed_however_deep_and_closed_and_no_link_is_followed(place):
    root, host = place
    (root / "away").symlink_to(host.parent)
    (root / "inner" / "away").symlink_to(host)
    (root / "inner" / "closed").mkdir(mode=0)
    os.mkfifo(root / "inner" / "fifo")
    os.makedirs(root / "a" / "b")
    deep = os.open(root / "a" / "b", os.O_RDONLY)
    for _ in range(1200):  # deeper than a path may be long, and than Python calls itself
        os.mkdir("d", dir_fd=deep)
        inner = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = inner
    os.close(deep)
    remove(root)
    assert not root.exists()
    assert host.exists()
    remove(root)


def test_a_file_swapped_for_a_link_while_we_look_is_not_followed(place):
    """The look and the opening are two steps: whatever stands there at the second one, no link is followed."""
    root, host = place
    stop = threading.Event()

    def swap():
        n = 0
        while not stop.is_set():
            new = root / f"new-{n % 2}"
            new.unlink(missing_ok=True)
            if n % 2:
                new.symlink_to(host)
            else:
                new.write_bytes(b"plain")
            new.rename(root / "swapped")
            n += 1

    thread = threading.Thread(target=swap)
    thread.start()
    got = set()
    try:
        for _ in range(2000):
            try:
                got.add(read(root, "swapped", limit=100)[0])
            except (NotAllowed, NotFound):
                got.add(None)
    finally:
        stop.set()
        thread.join()
    assert got <= {b"plain", b"", None}
