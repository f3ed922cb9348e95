"""Pages of a large run: the review page, the queue, the list of groups. The floor is the same page with little to show.

python -m bench.pages [--json] [--long] prints ours and the floor in milliseconds, their ratio, the queries, the goal.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

CANDIDATES, EVENTS, CHANGED_LINES = 16, 300, 1_000
HELD, DONE = 1_568, 20_000
WIDE_FILES, WIDE_LINES = 200, 30
DRAWN_LINES = 5_000
ROUNDS = 5
FILTERS = {
    "steps 10 to 40, highest first": "step=10-40&sort=-step",
    "most influence first": "sort=influence",
    "with T3": "tier=3",
    "strong signal of H7": "signal=H7-strong",
    "fallbacks": "decision=fallback",
}
opened: set[str] = set()  # names of files read while a page was made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    parser.add_argument("--long", action="store_true", help="100 steps: 156,800 groups in the list")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gagar-bench-", ignore_cleanup_errors=True) as folder:
        start_django(folder)
        lines = measure(long=options.long)
    if options.json:
        print(json.dumps(lines))
        return
    print(f"{'what':<66}{'ours ms':>10}{'floor ms':>10}{'ratio':>8}{'queries':>9}  goal")
    for line in lines:
        print("{what:<66}{ours:>10.1f}{floor:>10.1f}{ratio:>8.2f}{queries:>9}  {goal}".format(**line))


def start_django(folder: str) -> None:
    os.environ |= {"GAGAR_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "gagar_web.settings", "GAGAR_LOG_LEVEL": "ERROR"}
    import django

    django.setup()
    from gagar_web.setup import set_up

    set_up()
    sys.addaudithook(lambda event, said: opened.add(Path(str(said[0])).name) if event == "open" else None)


def measure(*, long: bool = False) -> list[dict]:
    """Return a line of the table for each page: what, ours, floor, ratio, queries, goal."""
    from bench.rows import done_groups, held_groups
    from grading.models import Life, RolloutGroup, RubricVersion, Run, Team
    from grading.review import placing

    team = Team.objects.get(slug="default")
    run = Run.objects.create(team=team, public_id="bench", rubric=RubricVersion.flash(), policy="manual")
    life = Life.objects.create(run=run, n=1)
    small, large = review_group(run, life, "small", 2, 10), review_group(run, life, "large", CANDIDATES, CHANGED_LINES)
    few = {url: timed(url) for url in ("/queue/", "/groups/")}
    pages = [compared(f"review page, {CANDIDATES} x {EVENTS} events, {CHANGED_LINES:,} lines", large, timed(small))]
    pages[0]["goal"] += ", < 20 queries"
    wide = review_group(run, life, "wide", 2, WIDE_FILES * WIDE_LINES, lines_a_file=WIDE_LINES)
    pages.append(
        compared(f"review page, two patches of {WIDE_FILES} files, not read before", wide, timed(small), forget)
    )
    held_groups(run, life, step=1, many=HELD)
    placing.place(RolloutGroup.objects.awaiting_review())  # as grading leaves them
    pages.append(compared(f"queue page, {HELD:,} groups held", "/queue/", few["/queue/"]))
    done = 100 * HELD if long else DONE
    done_groups(run, life, many=done, rollouts=16 if long else 2)
    pages.append(compared(f"list of groups, {done + HELD:,} groups", "/groups/", few["/groups/"]))
    for what, query in FILTERS.items():
        pages.append(compared(f"list of groups, {what}", f"/groups/?{query}", few["/groups/"]))
    pages.append(compared("list of groups, its last page", "/groups/?page=9999", few["/groups/"]))
    return pages + diffs()


def diffs() -> list[dict]:
    """A patch drawn whole, over the same without colours and word marks; two results compared, over reading both."""
    from grading.review.diffs import RowOptions, file_rows_html, interdiff, paired_files, parse_patch

    bytes_of = [patch_of(seed, DRAWN_LINES) for seed in (1, 1)]
    bytes_of[1] = bytes_of[1].replace(b"# faster", b"# quicker")
    left, right = map(parse_patch, bytes_of)

    def draw(**looks):
        for index, file in enumerate(left.files):
            file_rows_html(file, cited={}, options=RowOptions("A", index, **looks))

    def compare():
        for one, other in paired_files(left, right):
            interdiff(left.files[one], right.files[other])

    plain = _spent_ms(lambda: draw(highlight=False, word_marks=False))
    read = _spent_ms(lambda: [parse_patch(data) for data in bytes_of])
    measured = [
        (f"diff, {DRAWN_LINES:,} changed lines, unified", _spent_ms(draw), plain, "< 600 ms"),
        (f"diff, {DRAWN_LINES:,} changed lines, split", _spent_ms(lambda: draw(view="split")), plain, "< 600 ms"),
        (f"interdiff, {DRAWN_LINES:,} changed lines a side", _spent_ms(compare), read, "< 600 ms"),
    ]
    return [
        {"what": what, "ours": ours, "floor": floor, "ratio": ours / floor, "queries": 0, "goal": goal}
        for what, ours, floor, goal in measured
    ]


def _spent_ms(work) -> float:
    times_s = []
    for _ in range(ROUNDS):
        start_s = time.process_time()
        work()
        times_s.append(time.process_time() - start_s)
    return 1_000 * statistics.median(times_s)


def review_group(run, life, key: str, candidates: int, changed: int, *, lines_a_file: int = 100) -> str:
    """A held group with real bodies: patches of new lines, events, a verdict. Returns: the address of its page."""
    from bench.rows import held_groups
    from grading import bodies

    [group] = held_groups(run, life, step=candidates + lines_a_file, many=1)
    rows = list(group.trajectories.all())
    for n, trajectory in enumerate(rows):
        patch = patch_of(n, changed, lines_a_file)
        stored = bodies.write_events([{"kind": "action", "text": f"{n} {k} " + "x" * 2_000} for k in range(EVENTS)])
        trajectory.patch, trajectory.patch_bytes = bodies.write_bytes(patch), len(patch)
        trajectory.event_body, trajectory.event_count = stored.sha256, stored.events
        if n % (len(rows) // candidates):
            trajectory.is_late, trajectory.letter = True, ""
        trajectory.save()
    grade(group)
    return f"/groups/{group.pk}/"


def grade(group) -> None:
    """Store a verdict of scores 3 to 5 with a citation for each criterion below 4."""
    from grading.grader import gather, verdicts
    from grading.grader.parse import check
    from grading.grader.shape import CandidateReply, Cited, GraderReply
    from grading.review.anchors import Citation
    from grading.scoring.criteria import CRITERIA

    entries = []
    for n, trajectory in enumerate(group.trajectories.filter(outcome="passed", is_late=False)):
        where = Citation("patch_line", trajectory.external_id, path="pack/file_0.py", side="new", line=2)
        cited = tuple(Cited(criterion, where) for criterion in CRITERIA) if n % 3 == 0 else ()
        scores = dict.fromkeys(CRITERIA, 3 + n % 3)
        entries.append(CandidateReply(trajectory.external_id, scores, citations=cited))
    reply, material = GraderReply(tuple(entries)), gather.material_of(group)
    verdicts.store(group, reply, check(reply, material, group.run.rubric.rubric), material, grader="static")


def patch_of(seed: int, changed: int, lines_a_file: int = 100) -> bytes:
    """A patch that takes away and adds lines of Python, half each, in files of so many changed lines."""
    files = []
    for file in range(max(1, changed // lines_a_file)):
        many = min(changed, lines_a_file) // 2
        path, old, new = f"pack/file_{file}.py", [], []
        for n in range(many):
            old.append(f"-    value_{n} = compute({n}, scale={seed})")
            new.append(f"+    value_{n} = compute({n + file}, scale={seed + 1})  # faster")
        head = [f"diff --git a/{path} b/{path}", f"--- a/{path}", f"+++ b/{path}", f"@@ -1,{many + 1} +1,{many + 1} @@"]
        files += [*head, " def answer():", *old, *new]
    return "\n".join([*files, ""]).encode()


def forget() -> None:
    """As a process that has just started: no patch is parsed, no share counted, no citation looked up."""
    from grading.grader import gather
    from grading.review.pages import bodies_read

    for kept in (gather.kept_patch, bodies_read._shares, bodies_read._resolved):
        kept.cache_clear()


def compared(what: str, url: str, floor: dict, before=lambda: None) -> dict:
    """Time a page. Raises RuntimeError when it read a body of events."""
    ours = timed(url, before)
    floor_ms = floor["ms"]
    goal = "< 100 ms" if what.startswith("review") else "< 200 ms, as many queries as the floor"
    line = {"what": what, "ours": ours["ms"], "floor": floor_ms, "ratio": ours["ms"] / floor_ms}
    return line | {"queries": ours["queries"], "floor_queries": floor["queries"], "goal": goal}


def timed(url: str, before=lambda: None) -> dict:
    """Open a page some times, each time after `before`.

    Returns: median ms of processor time until the whole answer is made, and its queries.
    """
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from grading.models import Trajectory, User

    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(User.objects.get(is_superuser=True))
    bodies_of_events = set(Trajectory.objects.exclude(event_body="").values_list("event_body", flat=True))
    with CaptureQueriesContext(connection):
        opened.clear()
        answer = client.get(url)
        asked = len(connection.queries_log)  # a later request empties the log
    if answer.status_code != 200:
        raise RuntimeError(f"{url} answered {answer.status_code}")
    if read := {name for name in opened if name.partition(".")[0] in bodies_of_events}:
        raise RuntimeError(f"{url} read bodies of events: {sorted(read)[:3]}")
    times_s = []
    for _ in range(ROUNDS):
        before()
        start_s = time.process_time()
        client.get(url)
        times_s.append(time.process_time() - start_s)
    return {"ms": 1_000 * statistics.median(times_s), "queries": asked}


if __name__ == "__main__":
    main()
