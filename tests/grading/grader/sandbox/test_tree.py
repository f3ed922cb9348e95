"""What a tree may hold to reach files of the host (S3): packed, run, and the host looked at before and after."""

import os
import socket
import stat
import tarfile
import threading
import time

import pytest

from grading.errors import BadInput
from grading.grader.sandbox import Expect, Limits, Question
from grading.grader.sandbox.tree import pack
from tests.grading.grader.sandbox.asking import seen

SECRET = b"canary of the host 7d1f"
# Opens all there is, links and special files too, and prints what it reads.
READ_ALL = """
import os
for folder, folders, files in os.walk(b'/check/tree'):
    for name in folders + files:
        path = os.path.join(folder, name)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            os.write(1, os.path.basename(path) + b': ' + os.read(fd, 10000) + b'\\n')
        except OSError: pass
for path in ('/etc/shadow', '/etc/passwd', '/proc/1/root/etc/shadow', '/proc/1/cwd/../../etc/passwd'):
    try: print('READ', path, open(path).read())
    except OSError: pass
print('all read')
"""


class Host:
    """A folder of the host with a secret, beside the tree."""

    def __init__(self, folder):
        self.folder = folder / "host"
        self.folder.mkdir()
        self.secret = self.folder / "secret"
        self.secret.write_bytes(SECRET)
        self.secret.chmod(0o600)


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def link(target):
    return lambda tree, host: (tree / "x").symlink_to(str(target).replace("HOST", str(host.folder)))


def loop(tree, host):
    (tree / "a").symlink_to("b")
    (tree / "b").symlink_to("a")
    (tree / "self").symlink_to(".")


def chain(tree, host):
    (tree / "one").symlink_to("two")
    (tree / "two").symlink_to(host.secret)


def deep_link(tree, host):
    (tree / "a/b/c").mkdir(parents=True)
    (tree / "a/b/c/x").symlink_to("../../../../host/secret")


def many_links(tree, host):
    for number in range(500):
        (tree / f"x{number}").symlink_to(host.secret)


def odd_names(tree, host):
    for name in (b"-rf", b"new\nline", b"\xff\xfe", b"x" * 255, b"$(touch pwned)", b"..."):
        with open(os.path.join(os.fsencode(tree), name), "wb") as file:
            file.write(b"odd")


def gitfile(tree, host):
    (tree / ".git").write_text(f"gitdir: {host.folder}")
    (tree / "sub").mkdir()
    (tree / "sub/.git").symlink_to(host.folder)


def setuid_file(tree, host):
    (tree / "run").write_text("#!/bin/sh\nid\n")
    (tree / "run").chmod(0o6755)


CARRIED = {
    "link to a file": link("HOST/secret"),
    "link upwards": link("../host/secret"),
    "link far upwards": link("../" * 40 + "etc/shadow"),
    "link to a folder": link("HOST"),
    "link to /": link("/"),
    "link to environ": link("/proc/self/environ"),
    "link to the root of the first process": link("/proc/1/root/etc/shadow"),
    "link to an open file": link("/proc/self/fd/0"),
    "link to a device": link("/dev/zero"),
    "link to memory": link("/dev/mem"),
    "dangling link": link("nothing"),
    "empty-looking link": link(" "),
    "long link": link("x/" * 2000),
    "chain of links": chain,
    "loops": loop,
    "deep link": deep_link,
    "500 links": many_links,
    "odd names": odd_names,
    ".git that points elsewhere": gitfile,
    "setuid file": setuid_file,
}


def hard_link(tree, host):
    os.link(host.secret, tree / "x")


def hard_link_below(tree, host):
    (tree / "a").mkdir()
    os.link(host.secret, tree / "a/x")
    os.link(tree / "a/x", tree / "a/y")  # two of its three names are in the tree


def fifo(tree, host):
    os.mkfifo(tree / "x")


def listening(tree, host):
    folder = os.open(tree, os.O_PATH)
    try:
        socket.socket(socket.AF_UNIX).bind(f"/proc/self/fd/{folder}/x")
    finally:
        os.close(folder)


def device(tree, host):
    os.mknod(tree / "x", stat.S_IFCHR | 0o666, os.makedev(1, 5))


def disk(tree, host):
    os.mknod(tree / "x", stat.S_IFBLK | 0o666, os.makedev(254, 0))


def too_deep(tree, host):
    here = os.open(tree, os.O_PATH)
    for _ in range(70):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_PATH, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def sparse(tree, host):
    with (tree / "x").open("wb") as file:
        file.truncate(10 << 40)


def too_much(tree, host):
    for number in range(12):
        with (tree / f"x{number}").open("wb") as file:
            file.truncate(60 << 20)


def root_is_a_link(tree, host):
    tree.rmdir()
    tree.symlink_to(host.folder)


def root_is_a_file(tree, host):
    tree.rmdir()
    os.link(host.secret, tree)


REFUSED = {
    "hard link": (hard_link, "a file with a second name outside the tree"),
    "hard links": (hard_link_below, "a file with a second name outside the tree"),
    "FIFO": (fifo, "a FIFO"),
    "socket": (listening, "a socket"),
    "device": (device, "a device"),
    "disk": (disk, "a device"),
    "70 folders deep": (too_deep, "60"),
    "10 TiB of nothing": (sparse, "a file of 10995116277760 bytes"),
    "12 large files": (too_much, "bytes so far"),
    "a link as the root": (root_is_a_link, "the tree is no folder"),
    "a file as the root": (root_is_a_file, "the tree is no folder"),
}


@pytest.mark.parametrize("plant", CARRIED.values(), ids=CARRIED)
def test_a_link_of_the_tree_leads_nowhere_outside_the_sandbox(bubblewrap_box, host, plant):
    plant(bubblewrap_box.tree, host)
    before = seen(bubblewrap_box.tree), seen(host.folder)
    ran = bubblewrap_box.python(READ_ALL, expect=Expect(contains="all read"))
    assert ran.outcome == "passed", (ran, ran.output)
    assert SECRET not in ran.output and b"READ" not in ran.output and b"root:" not in ran.output
    assert (seen(bubblewrap_box.tree), seen(host.folder)) == before


@pytest.mark.parametrize(("plant", "words"), REFUSED.values(), ids=REFUSED)
def test_what_no_repository_holds_is_refused_at_once(bubblewrap_box, host, plant, words):
    if plant in (device, disk) and os.geteuid() != 0:
        pytest.skip("only root makes devices")
    plant(bubblewrap_box.tree, host)
    started = time.monotonic()
    ran = bubblewrap_box.python(READ_ALL, limits=Limits(disk_bytes=64 << 20))
    assert time.monotonic() - started < 5
    assert (ran.outcome, ran.output) == ("unknown", b"")
    assert words in ran.words
    assert host.secret.read_bytes() == SECRET


def test_hard_links_within_the_tree_are_files_of_it(bubblewrap_box):
    (bubblewrap_box.tree / "one").write_text("the same")
    os.link(bubblewrap_box.tree / "one", bubblewrap_box.tree / "two")
    assert bubblewrap_box.ask(argv=("cat", "two"), expect=Expect(stdout="the same")).outcome == "passed"


def test_a_file_that_becomes_a_link_while_it_is_packed_is_never_followed(tmp_path, host):
    tree = tmp_path / "tree"
    (tree / "d").mkdir(parents=True)
    (tree / "elsewhere").mkdir()
    (tree / "elsewhere/x").write_bytes(b"mine")
    (host.folder / "x").write_bytes(SECRET)
    is_over = threading.Event()

    def swap():
        while not is_over.is_set():
            for make in (lambda: (tree / "x").write_bytes(b"mine"), lambda: (tree / "x").symlink_to(host.secret)):
                (tree / "x").unlink(missing_ok=True)
                make()
            (tree / "d").rename(tree / "gone")
            (tree / "d").symlink_to(host.folder)
            (tree / "d").unlink()
            (tree / "gone").rename(tree / "d")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        question, taken = Question(argv=("true",)), 0
        for _ in range(300):
            try:
                with pack(tree, question, "") as packed:
                    data = packed.read()
                taken += 1
            except (BadInput, OSError):
                continue
            assert SECRET not in data
    finally:
        is_over.set()
        swapper.join()
    assert taken


def test_what_the_grader_asks_to_write_stays_in_the_tree(bubblewrap_box, host):
    tree = bubblewrap_box.tree
    (tree / "tests").symlink_to(host.folder)
    (tree / "file").write_text("a file where a folder is needed")
    (tree / "folder").mkdir()
    (tree / "folder/in").write_text("a folder where a file is needed")
    files = {"tests/secret": b"new", "file/a/b": b"new", "folder": b"new"}
    ran = bubblewrap_box.ask(argv=("cat", *files), files=files, expect=Expect(stdout="newnewnew"))
    assert ran.outcome == "passed", ran.output
    assert host.secret.read_bytes() == SECRET


def test_the_tar_holds_plain_names_below_the_one_folder(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "run.sh").write_text("#!/bin/sh")
    (tree / "run.sh").chmod(0o4755)
    with pack(tree, Question(argv=("true",), limits=Limits()), "") as packed, tarfile.open(fileobj=packed) as tar:
        found = {info.name: (info.type, oct(info.mode)) for info in tar}
    assert found == {
        "tree": (tarfile.DIRTYPE, "0o755"),
        "tree/run.sh": (tarfile.REGTYPE, "0o755"),
        "tmp": (tarfile.DIRTYPE, "0o755"),
        "stdin": (tarfile.REGTYPE, "0o755"),
    }


def test_a_tree_that_does_not_fit_when_it_is_unpacked_is_said(box):
    for number in range(1500):  # a page each
        (box.tree / f"f{number}").write_bytes(b"x")
    ran = box.python("print(42)", expect=Expect(stdout="42"), limits=Limits(disk_bytes=1 << 20))
    assert ran.outcome == "unknown" and "could not be unpacked" in ran.words
    assert b"No space left" in ran.output
