"""Small real git repositories for the grader's tests, as bundles, archives and tasks."""

import io
import subprocess
import tarfile
from pathlib import Path

from grading import bodies
from grading.grader.workspace import Workspace
from grading.models import Repository, Task, Team
from grading.states import GroupState
from tests.factories import PATCH, make_group, make_run, make_task, make_team

APP = "def answer():\n    return 41\n"
FILES = {"app.py": APP, "src/deep/a.txt": "needle here\nand there\n", "tests/test_app.py": "from app import answer\n"}
_QUIET = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": "/usr/bin:/bin:/usr/local/bin"}


def git(folder: Path, *args: str) -> str:
    """Run git as a person would."""
    said = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@corp.io", *args]
    return subprocess.run(said, cwd=folder, env=_QUIET, check=True, capture_output=True, text=True).stdout.strip()


def make_repository(
    folder: Path, files: dict[str, str] = FILES, links: dict[str, str] | None = None
) -> tuple[Path, str]:
    """A repository with one commit of these files and links; gives its folder and the commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for path, target in (links or {}).items():
        (folder / path).symlink_to(target)
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "-m", "base")
    return folder, git(folder, "rev-parse", "HEAD")


def bundle(folder: Path) -> bytes:
    git(folder, "bundle", "create", "-q", "made.bundle", "--all")
    return (folder / "made.bundle").read_bytes()


def tar(files: dict[str, str] = FILES, *, mode: str = "w:gz", extra: tuple[tarfile.TarInfo, ...] = ()) -> bytes:
    """An archive of files, and of entries given as they are."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as made:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text.encode())
            made.addfile(entry, io.BytesIO(text.encode()))
        for entry in extra:
            made.addfile(entry, io.BytesIO(b"x" * entry.size))
    return buffer.getvalue()


def stored_task(data: bytes, *, base_commit: str = "", team: Team | None = None) -> Task:
    """A task on a repository that was sent."""
    team = team or make_team()
    row = Repository.objects.create(team=team, sha256=bodies.write_bytes(data), bytes=len(data))
    return make_task(team=team, repository=row, base_commit=base_commit)


def opened(task, patches=(PATCH,), outcomes="", seed=1):
    """The workspace of a new group on a task."""
    outcomes = outcomes or "P" * len(patches)
    group = make_group(run=make_run(team=task.team), task=task, state=GroupState.GRADING, outcomes=outcomes,
                       patches=list(patches))  # fmt: skip
    return Workspace.open(group, seed=seed)


def names(ws, letter=None):
    """Paths of all files, by their shown names."""
    return [file.path for file in ws.list_files("", letter).items]


def planted(path: str, target: str) -> bytes:
    """A patch that makes a link."""
    return (
        f"diff --git a/{path} b/{path}\nnew file mode 120000\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{target}\n"
        "\\ No newline at end of file\n"
    ).encode()


def made(path: str, mode: str = "100644", text: str = "x") -> bytes:
    """A patch that makes a file."""
    head = f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1 @@\n+{text}\n".encode()
