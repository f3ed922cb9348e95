"""What a targeted check asks and what came of it. Core."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

from grading.errors import WrongShape
from grading.grader.sandbox.collect import collect

MIB = 1 << 20
OUTCOMES = ("passed", "failed", "timeout", "killed", "unknown")
MAX_FILES = 100
MAX_WORDS = 200  # of argv
MAX_CHARS = 60_000  # of argv together


@dataclass(frozen=True)
class Limits:
    """What a check may use. Sizes in bytes; `pids` counts processes and threads; `memory_bytes` holds for all together.

    In bubblewrap memory is also the most address space of each process, and the sum is looked at every 50 ms.
    """

    wall_s: float = 60.0
    cpu_s: int = 60  # of each process
    memory_bytes: int = 1024 * MIB
    pids: int = 128
    file_bytes: int = 64 * MIB  # one file
    disk_bytes: int = 512 * MIB  # the tree with whatever the check writes
    output_bytes: int = MIB  # kept of stdout and stderr together

    def __post_init__(self):
        for name, value in asdict(self).items():
            if not value > 0:
                raise WrongShape(f"limit {name} of a check is wrong", got=value, expected="more than 0", where=name)


@dataclass(frozen=True)
class Expect:
    """When a check has passed, judged outside the sandbox from what our runner saw.

    tests: the path of a Python file of the grader's (in `files`) whose tests our runner runs one by one; each must
        finish. Then nothing else is given.
    stdout, contains: what the command prints on stdout, whole (but for space at the ends) or somewhere in it.
    exit_code: the command's status. By itself it can show a failure, never a pass: any code can end its process with 0.

    What stays forgeable: code that runs in one process with its judge can do what the judge can. A tree that prints
    the expected words knows them beforehand, or makes every comparison true, passes; so ask for what depends on an
    input of your own, and read the patch. A printed summary ("3 passed", "OK") is never enough.
    """

    exit_code: int = 0
    stdout: str | None = None
    contains: str | None = None
    tests: str = ""


@dataclass(frozen=True)
class Question:
    """One check: a command, or a Python test file, with files that are written over the tree before it runs.

    argv: the command, run in the tree; () for a test file.
    files: path relative to the tree -> bytes.
    image: a docker image that is on this machine; "" for the host's own /usr in bubblewrap.
    """

    argv: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    expect: Expect = Expect()
    image: str = ""
    limits: Limits = Limits()

    def __post_init__(self):
        object.__setattr__(self, "argv", tuple(self.argv))
        object.__setattr__(self, "files", {checked_path(path): bytes(data) for path, data in self.files.items()})
        if twice := {str(parent) for path in self.files for parent in PurePosixPath(path).parents} & set(self.files):
            raise WrongShape("a file of a check cannot be a folder, too", got=min(twice)[:80], expected="one of both")
        if len(self.files) > MAX_FILES or len(self.argv) > MAX_WORDS:
            got = f"{len(self.files)} files, {len(self.argv)} words"
            raise WrongShape("too much for one check", got=got, expected=f"<= {MAX_FILES} files, <= {MAX_WORDS} words")
        if any(not isinstance(word, str) or "\0" in word for word in self.argv) or len("".join(self.argv)) > MAX_CHARS:
            raise WrongShape("the command cannot be run as it is", got=repr(self.argv)[:80],
                             expected=f"words of text without NUL, <= {MAX_CHARS} characters together")  # fmt: skip
        self._check_tests() if self.expect.tests else self._check_command()

    def _check_command(self) -> None:
        if not self.argv or not self.argv[0]:
            raise WrongShape("a check without a command", got="no argv", expected="argv, or a file in expect.tests")

    def _check_tests(self) -> None:
        expect = self.expect
        if self.argv or expect.stdout is not None or expect.contains is not None or expect.exit_code:
            raise WrongShape("a test file is run by our runner", got="a command or its output beside it",
                             expected="expect.tests alone")  # fmt: skip
        if expect.tests not in self.files:
            raise WrongShape("the test file is not among the files", got=expect.tests[:80],
                             expected=", ".join(self.files)[:200] or "a file")  # fmt: skip
        _ = self.test_names  # says now what cannot be run

    @property
    def test_names(self) -> tuple[str, ...]:
        """The tests that must finish, read from the grader's own text outside the sandbox."""
        return collect(self.files[self.expect.tests]) if self.expect.tests else ()

    def to_json(self, file_keys: Mapping[str, str]) -> dict[str, Any]:
        """Returns: what was asked, with the body key of each file in place of its bytes."""
        return {
            "argv": list(self.argv),
            "files": {path: file_keys[path] for path in sorted(self.files)},
            "stdin": self.stdin.decode(errors="backslashreplace"),
            "expect": asdict(self.expect),
            "image": self.image,
            "limits": asdict(self.limits),
        }


@dataclass(frozen=True)
class Ran:
    """What came of a check. `output` is stdout and stderr as they came, its first `output_bytes`."""

    outcome: str
    words: str  # one sentence: what ended it
    sandbox: str
    exit_code: int | None = None
    output: bytes = field(default=b"", repr=False)
    is_truncated: bool = False
    duration_s: float = 0.0


@dataclass(frozen=True)
class Ended:
    """How a sandbox ended, before anything is judged. `stopped` is why we ended it: wall, memory, output or ""."""

    exit_code: int | None
    stdout: bytes = field(default=b"", repr=False)
    output: bytes = field(default=b"", repr=False)
    is_truncated: bool = False
    stopped: str = ""
    duration_s: float = 0.0


def checked_path(path: str) -> str:
    """Returns: the path as given.

    Raises:
        WrongShape: not a plain relative path inside the tree.
    """
    parts = PurePosixPath(path).parts
    plain = parts and "/".join(parts) == path and not path.startswith("/")
    if not plain or ".." in parts or ".git" in parts or "\0" in path or len(path) > 500:
        raise WrongShape("a file of a check lies outside the tree", got=repr(path)[:80],
                         expected="a relative path without '..', such as tests/test_new.py", where="files")  # fmt: skip
    return path
