"""Patches of whole small trees, as git writes them: for pages that compare candidates."""

import difflib

BASE = {
    "src/cache.py": [
        "class Cache:",
        '    """Keeps what was computed."""',
        "",
        "    def __init__(self, store):",
        "        self.store = store",
        "        self.hits = 0",
        "",
        *(f"    def level_{n}(self):\n        return {n}\n".split("\n")[k] for n in range(8) for k in range(3)),
        "    def get(self, key, default=None):",
        "        value = self.store[key]",
        "        self.hits += 1",
        "        return value",
        "",
        "    def drop(self, key):",
        "        del self.store[key]",
    ],
    "README.md": ["# Cache", "", "Keeps what was computed."],
    "settings.ini": ["[cache]", "size = 10", "ttl = 60"],
}


def patch_of(**results: list[str] | None) -> bytes:
    """A git diff from BASE; names are paths with `__` for `/` and `_dot_` for `.`."""
    parts = []
    for name, new in results.items():
        path = name.replace("__", "/").replace("_dot_", ".")
        old = BASE.get(path)
        parts.append(file_patch(path, old, new))
    return "".join(parts).encode()


def file_patch(path: str, old: list[str] | None, new: list[str] | None) -> str:
    head = f"diff --git a/{path} b/{path}\n"
    head += "new file mode 100644\n" if old is None else "deleted file mode 100644\n" if new is None else ""
    names = ("/dev/null" if old is None else f"a/{path}", "/dev/null" if new is None else f"b/{path}")
    return head + "".join(f"{line}\n" for line in difflib.unified_diff(old or [], new or [], *names, lineterm=""))


def cache(*edits: tuple[str, list[str]]) -> list[str]:
    """src/cache.py with whole lines replaced."""
    lines = list(BASE["src/cache.py"])
    for old, new in edits:
        at = lines.index(old)
        lines[at : at + 1] = new
    return lines


GET = ("        value = self.store[key]", ["        value = self.store.get(key, default)"])
COUNT = ("        self.hits += 1", ["        if value is not default:", "            self.hits += 1"])
DROP = ("        del self.store[key]", ["        self.store.pop(key, None)  # a key that is gone stays gone"])
INIT = ("        self.store = store", ["        self.store = store or {}", "        self.misses = 0"])


def candidates() -> list[bytes]:
    """A small, B wide, C like A with other blanks, D failing with one file, E without a patch."""
    test = ["from src.cache import Cache", "", "", "def test_get():", "    assert Cache({}).get('a') is None"]
    a = patch_of(src__cache_dot_py=cache(GET, COUNT))
    wide = cache(GET, COUNT, INIT, DROP, ("        self.hits = 0", ["        self.hits  =  0"]))
    ini = ["[cache]", "size = 10", "ttl = 600"]
    b = patch_of(README_dot_md=[*BASE["README.md"], "", "`get` takes a default."], src__cache_dot_py=wide,
                 settings_dot_ini=ini, tests__test_cache_dot_py=test)  # fmt: skip
    c = patch_of(src__cache_dot_py=cache(GET, COUNT, ("        return value", ["        return  value"])))
    d = patch_of(settings_dot_ini=["[cache]", "size = 10", "ttl = 6000"])
    return [a, b, c, d, b""]
