"""Archives of strangers as a repository (W9): whatever reaches out of the root, or is a bomb, is refused whole."""

import io
import random
import stat
import tarfile
import zipfile

import pytest

from grading.errors import BadInput, TooLarge
from grading.grader import archives
from grading.grader.repository import NoRepository, base_of
from grading.grader.workspace import Workspace
from grading.states import GroupState
from tests.factories import make_group, make_run
from tests.grading.grader.repositories import FILES, stored_task, tar

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_data(settings, tmp_path):
    settings.GAGAR_DATA_DIR = tmp_path / "data"


def special(name: str, kind: bytes, target: str = "", size: int = 0) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.size = kind, target, size
    return entry


EVIL = {
    "zip slip": special("../evil.txt", tarfile.REGTYPE, size=1),
    "zip slip inside": special("a/../../evil.txt", tarfile.REGTYPE, size=1),
    "absolute": special("/tmp/evil.txt", tarfile.REGTYPE, size=1),
    "link": special("l", tarfile.SYMTYPE, "/etc/passwd"),
    "hard link": special("h", tarfile.LNKTYPE, "app.py"),
    "device": special("d", tarfile.CHRTYPE),
    "block device": special("b", tarfile.BLKTYPE),
    "fifo": special("f", tarfile.FIFOTYPE),
    "twice": special("app.py", tarfile.REGTYPE, size=1),
    "twice by another name": special("./app.py", tarfile.REGTYPE, size=1),
    "file and folder": special("app.py/x", tarfile.REGTYPE, size=1),
    "git folder inside": special("sub/.git/hooks/post-checkout", tarfile.REGTYPE, size=1),
    "git folder in capitals": special("sub/.GIT/config", tarfile.REGTYPE, size=1),
    "new line": special("a\nM 100644 inline b", tarfile.REGTYPE, size=1),
    "back-slash": special("a\\..\\..\\evil", tarfile.REGTYPE, size=1),
    "drive": special("C:/evil", tarfile.REGTYPE, size=1),
    "quote": special('"a', tarfile.REGTYPE, size=1),
    "empty part": special("a//b", tarfile.REGTYPE, size=1),
    "long": special("a/" * 900 + "b", tarfile.REGTYPE, size=1),
}


@pytest.mark.parametrize("name", EVIL)
def test_an_archive_that_reaches_out_is_refused_whole(name, tmp_path):
    task = stored_task(tar(extra=(EVIL[name],)))
    with pytest.raises(NoRepository, match="could not be read"):
        base_of(task)
    assert not (tmp_path / "evil.txt").exists()
    assert not list((tmp_path / "data" / "repositories").glob("*.git"))
    assert not list((tmp_path / "data" / "repositories").glob("building-*"))


def test_a_zip_that_reaches_out_is_refused_too():
    for name, mode in (("../evil", 0), ("/evil", 0), ("l", stat.S_IFLNK | 0o777), ("f", stat.S_IFIFO | 0o600)):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as made:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            made.writestr(entry, "/etc/passwd")
        with pytest.raises(NoRepository, match="could not be read"):
            base_of(stored_task(buffer.getvalue()))


def test_bombs_are_refused_by_what_they_unpack_to(monkeypatch):
    monkeypatch.setattr(archives, "MOST_FILE_BYTES", 1_000_000)
    with pytest.raises(NoRepository, match="unpacks to too much"):
        base_of(stored_task(tar({"zeros": "\0" * 2_000_000})))
    monkeypatch.setattr(archives, "MOST_FILES", 10)
    with pytest.raises(NoRepository, match="unpacks to too much"):
        base_of(stored_task(tar({f"f{n}": "" for n in range(12)})))
    header = special("x", tarfile.XHDTYPE, size=30_000_000)  # tarfile would read it whole
    with pytest.raises(NoRepository, match="header of the archive is too long"):
        base_of(stored_task(tar(extra=(header,))))
    broken = bytearray(tar(mode="w:gz"))
    del broken[-40:]
    with pytest.raises(NoRepository):
        base_of(stored_task(bytes(broken)))


def test_a_git_folder_in_an_archive_is_left_out():
    files = {".git/hooks/post-checkout": "#!/bin/sh\ntouch /tmp/pwned\n", ".git/config": "[core]\n", **FILES}
    task = stored_task(tar(files))
    group = make_group(run=make_run(team=task.team), task=task, state=GroupState.GRADING, outcomes="P")
    with Workspace.open(group) as ws:
        assert [file.path for file in ws.list_files().items] == sorted(FILES)


def test_a_damaged_archive_is_read_or_refused_and_nothing_else(tmp_path):
    """Whatever a module of Python raises on broken bytes, the task goes on without a repository."""
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as made:
        for path, text in FILES.items():
            made.writestr(path, text)
    chance = random.Random(7)
    path, refused = tmp_path / "damaged", 0
    for good in [zipped.getvalue(), *(tar(mode=f"w{kind}") for kind in ("", ":gz", ":bz2", ":xz"))]:
        for _ in range(60):
            bad = bytearray(good)
            for _ in range(chance.randint(1, 8)):
                bad[chance.randrange(len(bad))] = chance.randrange(256)
            path.write_bytes(bad[: chance.choice([len(bad), len(bad) // 2])])
            try:
                kind = archives.kind_of(path)
                read = [b"".join(entry.chunks) for entry in archives.entries(path, kind or "tar")]
                assert len(read) <= len(FILES)
            except (BadInput, TooLarge):
                refused += 1
    assert refused > 50
