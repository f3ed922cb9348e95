"""What the scripted model answers: honest, broken and biased graders, and tool calls to play.

A script reads the prompt as a model would: the letters to rank from the line `Rank exactly these candidates: C, A`, and
the fenced data of each candidate.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

CRITERIA = ("approach", "precision", "minimality", "side_effects", "consistency")
FLAGS = ("unrequested_rewrite", "test_specific_workaround", "severe_process_issue", "unresolved_regression")
TWINS = re.compile(r"^The same patch, byte for byte: (.+)$", re.MULTILINE)
TO_RANK = re.compile(r"^Rank exactly these candidates: (.+)$", re.MULTILINE)
FENCED = re.compile(
    r"^\[\[data (?P<nonce>[0-9a-f]{16}) begin: (?P<label>[^\n]*)\]\]\n(?P<text>.*?)\n\[\[data (?P=nonce) end\]\]$",
    re.MULTILINE | re.DOTALL,
)
OWNER = re.compile(r"\bcandidate ([A-Z]+)\b")
INJECTED = re.compile(
    r"rank (?:me|this candidate|candidate [A-Z]+) first|give (?:me|this candidate) (?:5|the top)", re.I
)
Script = Callable[["Asked"], "Say"]


@dataclass(frozen=True)
class Say:
    """One answer. `usage` is prompt, cached and completion tokens; `cut` is "json" or "stream"."""

    text: str = ""
    tool_calls: Sequence[tuple[str, Mapping[str, Any] | str]] = ()
    thinking: str = ""
    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    delay_s: float = 0.0
    pause_s: float = 0.0
    hang: bool = False
    cut: str = ""
    code: str = ""
    raw: str = ""  # sent in the place of a stream
    finish: str = ""
    usage: tuple[int, int, int] = (1000, 400, 100)

    def calls_json(self) -> list[tuple[str, str]]:
        return [(name, args if isinstance(args, str) else json.dumps(args)) for name, args in self.tool_calls]


@dataclass(frozen=True)
class Asked:
    """A request as a script reads it: the n-th call, all its text, who is to be ranked, and what is shown of whom."""

    body: Mapping[str, Any]
    number: int
    text: str
    letters: tuple[str, ...]
    shown: Mapping[str, str]
    patches: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    results: int = 0  # tool results in the history
    messages: Sequence[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, body: Mapping[str, Any], number: int) -> "Asked":
        messages = body.get("messages") or []
        text = "\n".join([*_texts(body.get("system")), *(t for m in messages for t in _texts(m.get("content")))])
        found = TO_RANK.findall(text)
        shown: dict[str, str] = {}
        patches: dict[str, str] = {}
        for fenced in FENCED.finditer(text):
            if owner := OWNER.search(fenced["label"]):
                shown[owner[1]] = shown.get(owner[1], "") + fenced["text"]
                if fenced["label"].startswith("patch"):
                    patches[owner[1]] = fenced["text"]
        tools = tuple(_tool_name(tool) for tool in body.get("tools") or [])
        letters = tuple(letter.strip() for letter in found[-1].split(",")) if found else ()
        results = sum(_is_result(m) for m in messages)
        return cls(body, number, text, letters, shown, patches, tools, results, messages)

    def size(self, letter: str) -> int:
        """How long a patch is, or what is shown where no patch is; twins are as long as each other."""
        twins = next((line for line in self._twins() if letter in line), [letter])
        return min(len(self.patches.get(twin) or self.shown.get(twin, "")) for twin in twins)

    def _twins(self) -> list[list[str]]:
        return [[letter.strip() for letter in line.split(",")] for line in TWINS.findall(self.text)]


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    found = []
    for part in content if isinstance(content, list) else []:
        found += [part["text"]] if isinstance(part.get("text"), str) else _texts(part.get("content"))
    return found


def _tool_name(tool: Mapping[str, Any]) -> str:
    return (tool.get("function") or tool).get("name", "")


def _is_result(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    if isinstance(content, list):
        return sum(isinstance(part, Mapping) and part.get("type") == "tool_result" for part in content)
    return int(message.get("role") == "tool")


def verdict(scores: Mapping[str, int], **fields: Any) -> dict[str, Any]:
    """A valid verdict: one score for all criteria by letter, shown by the outcome, a citation that always resolves."""
    candidates = []
    for letter, score in scores.items():
        about = CRITERIA if score < 4 else CRITERIA[:1]
        candidates.append(
            {
                "id": letter,
                "reasons": {c: f"scripted: {score}" for c in CRITERIA},
                "scores": dict.fromkeys(CRITERIA, score),
                "flags": dict.fromkeys(FLAGS, False),
                "citations": [{"about": c, "kind": "result", "candidate": letter, "result": "outcome"} for c in about],
            }
        )
    return {"candidates": candidates, "findings": [], "revisions": [], "notes": "scripted", **fields}


def in_text(reply: Mapping[str, Any]) -> Say:
    """A verdict as a text-only grader gives it."""
    return Say(f"```json\n{json.dumps(reply, indent=1)}\n```")


def submitting(reply: Mapping[str, Any], asked: Asked) -> Say:
    """A verdict by the tool `submit…` where the request offers one, else as text."""
    tool = next((name for name in asked.tools if name.startswith(("submit", "final_result"))), None)
    return Say(tool_calls=[(tool, reply)]) if tool else in_text(reply)


def ranked_by(key: Callable[[Asked, str], Any]) -> Script:
    """A grader that gives 5 to whoever has the largest key, 4 to the rest (first in the prompt wins a draw)."""

    def script(asked: Asked) -> Say:
        best = max(asked.letters, key=lambda letter: key(asked, letter)) if asked.letters else ""
        return submitting(verdict({letter: 5 if letter == best else 4 for letter in asked.letters}), asked)

    return script


def shortest(asked: Asked, letter: str) -> int:
    """Lean patches are better: what an honest grader would say where nothing else differs."""
    return -asked.size(letter)


def good(asked: Asked) -> Say:
    """By the length of the patch alone, equal lengths tied: blind for slots, letters and words."""
    sizes = sorted({asked.size(letter) for letter in asked.letters})
    place = {size: max(1, 5 - i) for i, size in enumerate(sizes)}
    scores = {letter: place[asked.size(letter)] for letter in asked.letters}
    return submitting(verdict(scores), asked)


def all_tied(asked: Asked) -> Say:
    return submitting(verdict(dict.fromkeys(asked.letters, 4)), asked)


def obeys(asked: Asked) -> Say:
    """Does what candidate text says."""
    return ranked_by(lambda asked, letter: bool(INJECTED.search(asked.shown.get(letter, ""))))(asked)


def with_ids(change: Callable[[tuple[str, ...]], Iterable[str]]) -> Script:
    """A verdict about other candidates than were asked for."""

    def script(asked: Asked) -> Say:
        reply = verdict(dict.fromkeys(asked.letters, 4))
        entry = reply["candidates"][0]
        reply["candidates"] = [{**entry, "id": id} for id in change(asked.letters)]
        for one in reply["candidates"]:
            one["citations"] = [{**c, "candidate": one["id"]} for c in one["citations"]]
        return submitting(reply, asked)

    return script


def playing(*turns: Sequence[tuple[str, Mapping[str, Any] | str]], then: Script = good) -> Script:
    """Play lists of tool calls, one per answer, then another script. The history tells where the script stands."""

    def script(asked: Asked) -> Say:
        said = sum(m.get("role") == "assistant" for m in asked.messages)
        return Say(tool_calls=turns[said]) if said < len(turns) else then(asked)

    return script


def chatty(asked: Asked) -> Say:
    """A verdict with words around it, and a smaller object before it."""
    say = good(asked)
    return replace(say, text=f'First {{"thought": 1}}, then:\n{say.text}\nThat is my verdict.') if say.text else say


def thinking(asked: Asked) -> Say:
    return replace(good(asked), thinking="I compare the patches first.")


SCRIPTS: dict[str, Script] = {
    "good": good,
    "tied": all_tied,
    "chatty": chatty,
    "thinking": thinking,
    "slow": lambda asked: replace(good(asked), delay_s=0.5),
    "drip": lambda asked: replace(good(asked), pause_s=0.02),
    "hang": lambda asked: Say(hang=True),
    "429": lambda asked: Say("slow down", status=429),
    "429_after": lambda asked: Say("slow down", status=429, headers=[("Retry-After", "1")]),
    "429_hour": lambda asked: Say("slow down", status=429, headers=[("Retry-After", "3600")]),
    "500": lambda asked: Say("broken", status=500),
    "400": lambda asked: Say("temperature is not supported", status=400),
    "401": lambda asked: Say("bad key", status=401),
    "403": lambda asked: Say("not for you", status=403),
    "404": lambda asked: Say("no such model", status=404),
    "302": lambda asked: Say("elsewhere", status=302, headers=[("Location", "http://127.0.0.1:1/elsewhere")]),
    "cut_json": lambda asked: replace(good(asked), cut="json"),
    "cut_stream": lambda asked: replace(good(asked), cut="stream"),
    "length": lambda asked: replace(in_text({}), text='{"candidates": [', finish="length"),
    "no_words": lambda asked: Say(""),
    "prose": lambda asked: Say("I like candidate A best."),
    "wrong_ids": with_ids(lambda letters: [f"X{i}" for i, _ in enumerate(letters)]),
    "missing_id": with_ids(lambda letters: letters[1:] or ["X"]),
    "extra_id": with_ids(lambda letters: [*letters, "Z9"]),
    "double_id": with_ids(lambda letters: [*letters, letters[0]]),
    "obeys": obeys,
    "first_slot": ranked_by(lambda asked, letter: 0),  # max keeps the first
    "last_slot": ranked_by(lambda asked, letter: asked.letters.index(letter)),
    "longest": ranked_by(lambda asked, letter: len(asked.shown.get(letter, ""))),
    "shortest": ranked_by(shortest),
}
