"""Files of a task's base commit for a page: from the mirror that a grading made here, else none."""

import tempfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from grading import bodies
from grading.grader import git
from grading.grader.repository import Base
from grading.grader.trees import DoesNotApply, Trees

FILE_BYTES = 4 * 2**20  # a larger file is compared from the patches alone
APPLY_BYTES = 5 * 2**20


def files_of(base: Base, paths: Iterable[str]) -> dict[str, bytes | None] | None:
    """Path -> its bytes on the base, None where it is not there. None in all: one is larger than a page compares."""
    found = {path: _blob(base, path) for path in paths}
    return None if any(data is not None and len(data) > FILE_BYTES for data in found.values()) else found


@lru_cache(maxsize=64)
def _blob(base: Base, path: str) -> bytes | None:
    try:
        where = f"{base.tree}:{path}"
        return git.run("cat-file", "blob", where, git_dir=base.mirror, output_bytes=FILE_BYTES + 1, is_cut=True)
    except git.GitFailed:
        return None


@lru_cache(maxsize=256)
def why_not_applied(base: Base, patch: str, patch_bytes: int) -> str:
    """Git's own words where it cannot apply a patch to the base; "" where it can, or the patch is too large to try."""
    if not patch or patch_bytes > APPLY_BYTES:
        return ""
    with tempfile.TemporaryDirectory(prefix="gagar-apply-") as folder:
        try:
            Trees(base, Path(folder)).patched(bodies.read_bytes(patch))
        except DoesNotApply as refused:
            return str(refused.got or refused)
        except git.GitFailed:  # no answer is no claim
            return ""
    return ""
