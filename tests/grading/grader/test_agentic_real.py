"""The real public groups are graded by each grader without a crash; the agentic one uses every tool on everybody."""

import time

from grading.grader import agentic
from grading.grader.graders import GRADERS
from grading.grader.options import GradingOptions
from grading.grader.overview import OVERVIEW_CHARS
from grading.grader.parse import check
from grading.grader.record import Record
from grading.grader.workspace import Workspace
from grading.models import RolloutGroup
from tests.grading.importers.files import SHARED, needs_shared
from tests.grading.importers.test_import import tally
from tests.model_scripts import good, playing
from tests.model_server import ModelServer


def looks(ws) -> list[list[tuple[str, dict]]]:
    """A turn for each candidate that uses all its tools, then one that compares and searches."""
    turns = []
    for letter in ws.shown:
        own = {"candidate": letter}
        events = [("read_events", {**own, "start": start, "stop": start + 20}) for start in (0, 20, 40)]
        turns.append([("read_patch", own), ("read_tests", own), ("read_log", own), *events])
    first = next(iter(ws.shown))
    compared = [("compare", {"candidate": first, "other": letter}) for letter in ws.shown if letter != first]
    turns += [compared[at : at + 4] for at in range(0, len(compared), 4)]
    return [*turns, [("list_candidates", {}), ("search_events", {"words": ["git log", "pip install"]})]]


@needs_shared
def test_every_real_group_is_graded_by_each_grader_and_with_every_tool_on_every_candidate(db, settings):
    tally(SHARED / "groups")
    took = {}
    with ModelServer() as server:
        settings.GAGAR_GRADER_MODEL, settings.GAGAR_GRADER_URL = "openai:scripted", server.url
        for group in RolloutGroup.objects.select_related("run", "task"):
            with Workspace.open(group, seed=1) as ws:
                if not ws.ranked:
                    continue
                for plain in ("static", "single_pass"):
                    server.play(good)
                    answer = GRADERS[plain](ws, GradingOptions(), Record())
                    assert check(answer.reply, ws.material, group.run.rubric.rubric, answer.unread).valid, plain
                    assert server.calls == (plain == "single_pass"), "one call, without a repair"
                server.play(playing(*looks(ws), then=good))
                record, began = Record(), time.monotonic()
                answer = agentic.grade(ws, GradingOptions(), record)
                took[group.key] = time.monotonic() - began
                checked = check(answer.reply, ws.material, group.run.rubric.rubric, answer.unread)
                assert checked.valid, (group.key, checked.problems[:3])
                first = server.requests[0].body["messages"][1]["content"]
                assert len(first) < OVERVIEW_CHARS + 30_000 + 12_000 + 400 * len(ws.shown) + 5_000
                said = [m["content"] for m in server.requests[-1].body["messages"] if m["role"] == "tool"]
                ran = [text for text in said if not text.startswith("Not run")]  # letters are drawn, and so are lengths
                assert len(ran) == record.tool_calls >= 0.9 * len(said), group.key
                assert not [text for text in ran if "could not be answered" in text]
    assert len(took) >= 7
    print({key: round(seconds, 2) for key, seconds in took.items()})
