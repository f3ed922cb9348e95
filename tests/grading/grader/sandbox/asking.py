"""A sandbox with a tree, and short ways to ask it something."""

import os
import stat
import textwrap
from pathlib import Path

from grading.grader.sandbox import Expect, Limits, Question, Ran, Sandbox

QUICK = Limits(wall_s=30, cpu_s=20)


class Box:
    """A sandbox and a candidate's tree."""

    def __init__(self, sandbox: Sandbox, tree: Path):
        self.sandbox, self.tree, self.name = sandbox, tree, sandbox.name
        tree.mkdir()

    def write(self, **files: str) -> None:
        """Files of the tree; `__` in a name stands for a slash."""
        for name, text in files.items():
            path = self.tree / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))

    def python(self, code: str, *, expect: Expect = Expect(), limits: Limits = QUICK, **asked) -> Ran:
        """Run code of the candidate's with the tree as the current folder."""
        argv = ("python3", "-c", textwrap.dedent(code))
        return self.ask(argv=argv, expect=expect, limits=limits, **asked)

    def tests(self, code: str, *, limits: Limits = QUICK, **files: str) -> Ran:
        """Run a test file of the grader's."""
        files = {f"{name}.py": textwrap.dedent(text).encode() for name, text in files.items()}
        files["check_it.py"] = textwrap.dedent(code).encode()
        return self.ask(files=files, expect=Expect(tests="check_it.py"), limits=limits)

    def ask(self, **asked) -> Ran:
        return self.sandbox.run(self.tree, Question(image=self.sandbox.image, **asked))


def seen(folder: Path) -> dict[str, tuple]:
    """All of a folder as lstat sees it, with the bytes of plain files: what must be the same afterwards."""
    found = {}
    for path in sorted(folder.rglob("*")):
        at = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(at.st_mode) and os.access(path, os.R_OK) and at.st_size < 1e6 else None
        found[str(path)] = (at.st_mode, at.st_uid, at.st_nlink, at.st_size, at.st_mtime_ns, data)
    return found


def marked(mark: str) -> list[int]:
    """Processes of this machine, in whatever namespace, with the mark in their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found
