"""What the project may be called, as the patch shows it: a copy of the same project is the fix, another one is not."""

import re
from functools import cached_property

from grading.integrity.paths import is_test
from grading.review.diffs.patch import Patch

# Names under which a registry knows a package whose folder has another one.
_FOLDERS = {
    "scikit-learn": "sklearn",
    "scikit-image": "skimage",
    "pyyaml": "yaml",
    "pillow": "pil",
    "beautifulsoup4": "bs4",
    "opencv-python": "cv2",
    "python-dateutil": "dateutil",
    "djangorestframework": "rest_framework",
}
_ANYWHERE = frozenset(
    "src lib libs main java kotlin scala python test tests core common packages pkg internal cmd app apps api"
    " com org net io github utils util base docs doc cpp include crates modules server client index init"
    " models types".split()
)
_PARTS = re.compile(r"[-_.@/]+")


class Project:
    """The words of the folders that a patch changes."""

    def __init__(self, patch: Patch) -> None:
        self._paths = [path for path in patch.paths[:2000] if not is_test(path)]

    @cached_property
    def words(self) -> frozenset[str]:
        """Folders and, for a module at the root, its name; folders that any project has are left out."""
        found = set()
        for path in self._paths:
            *folders, name = path.lower().split("/")
            found.update(folders or [name.rsplit(".", 1)[0]])
        return frozenset(found) - _ANYWHERE

    def is_called(self, name: str) -> bool:
        """Whether a package, a repository or an artifact of this name is the project, as far as its folders tell."""
        low = name.lower().strip("/").removesuffix(".git")
        low = _FOLDERS.get(low, low)
        if low in self.words or low.replace("-", "_") in self.words:
            return True
        parts = [part for part in _PARTS.split(low) if part and part not in _ANYWHERE]
        return len(parts) > 1 and all(part in self.words for part in parts)
