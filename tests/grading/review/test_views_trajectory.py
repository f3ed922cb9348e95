"""Around the events of a trajectory or a grading: map, jumps, marks, files, paper, images, the log."""

import json

import pytest
from django.urls import reverse

from grading import bodies
from grading.models import Check, Evidence, Grading, Role, Signal
from grading.review.pages import events, evidence, log_page, outline
from grading.review.pages.event_words import parts_of, seen_kind
from grading.review.pages.sitting import Sitting
from grading.states import GroupState
from tests.factories import make_group, make_run, make_trajectory, make_user
from tests.grading.review.test_images import SVG, png, url
from tests.verdicts import held_group

EVENTS = [
    {"kind": "message", "role": "user", "text": "mend it"},
    {"kind": "action", "tool": "bash", "args": {"command": "cd app && python -m pytest -q"}},
    {"kind": "observation", "text": "\x1b[31m1 failed\x1b[0m\r\n5 %\r100 % \u202eevil", "exit_code": 1},
    {
        "kind": "action",
        "tool": "str_replace_editor",
        "args": {"command": "create", "file_text": "a\nb", "path": "a.py"},
    },
    {"kind": "action", "tool": "bash", "args": {"command": "pytest tests"}},
    {"kind": "submit", "text": "done"},
    {"kind": "observation"},
]


@pytest.fixture
def run(db):
    return make_run(policy="manual")


@pytest.fixture
def reader(run, client):
    user = make_user(role=Role.REVIEWER, team=run.team)
    client.force_login(user)
    return client


@pytest.fixture
def group(run):
    return held_group(run=run, outcomes="PF", events=EVENTS)


def html_of(answer) -> str:
    assert answer.status_code == 200, answer.content.decode()[-3000:]
    return answer.content.decode()


def page_of(group, query: str = "") -> str:
    return reverse("trajectory", args=[group.pk, "A"]) + query


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("pytest -q", "test"),
        ("cd /repo && PYTHONPATH=. timeout 60 python3 -m pytest x", "test"),
        ("./tests/runtests.py cache", "test"),
        ("npm run test", "test"),
        ("grep pytest setup.cfg", "action"),
        ("cat tests/test_pytest.py", "action"),
        ("sed -i s/a/b/ x.py", "edit"),
        ("cat > x.py <<'EOF'\nprint(1)\nEOF", "edit"),
        ("sed -n 1,3p x.py", "action"),
    ],
)
def test_a_command_shows_what_it_does(command, kind):
    assert seen_kind({"kind": "action", "tool": "bash", "args": {"command": command}}) == kind
    step = {"source": "agent", "tool_calls": [{"function_name": "bash", "arguments": {"command": command}}]}
    assert seen_kind(step) == kind


def test_a_tool_shows_what_it_does():
    assert seen_kind({"kind": "action", "tool": "str_replace_editor", "args": {"command": "create"}}) == "edit"
    assert seen_kind({"kind": "action", "tool": "str_replace_editor", "args": {"command": "view"}}) == "action"
    assert seen_kind({"kind": "action", "tool": "finish"}) == "submit"
    assert seen_kind({"kind": "observation", "text": "pytest -q"}) == "observation"


def test_a_command_made_to_be_slow_is_read_at_once():
    for hostile in (";" * 100_000, "A=A" * 50_000, "cat" * 40_000, "timeout " * 20_000, "a/" * 60_000):
        assert seen_kind({"kind": "action", "args": {"command": hostile}}) == "action"


def test_fields_of_a_call_are_read_one_by_one_with_their_lines():
    shown = [(part.title, part.text) for part in parts_of(EVENTS[3])]
    assert ("str_replace_editor: file_text", "a\nb") in shown


def test_jumps_and_map_are_of_all_events(reader, group):
    html = html_of(reader.get(page_of(group)))
    for words, index in (("first test run", 1), ("first bad exit", 2), ("first edit", 3), ("last test run", 4)):
        assert f'?at={index}#e{index}">{words}<' in html
    assert html.count("<title>e") == len(EVENTS) and "e2, observation, bad exit" in html
    assert "test 2" in html and "bad exit 1" in html


def test_a_map_of_many_events_has_few_places_and_leaves_no_mark_out(db):
    many = [{"kind": "action", "text": str(n), "exit_code": int(n == 777)} for n in range(10_000)]
    drawn = outline.map_of(bodies.write_events(many).sha256, cited={5_001}, signals={9_999})
    assert len(drawn["cells"]) <= outline.CELLS and drawn["events"] == 10_000
    assert [cell["at"] for cell in drawn["cells"] if cell["is_cited"]] == [5_001]
    assert [cell["at"] for cell in drawn["cells"] if cell["is_signal"]] == [9_999]
    assert len([cell for cell in drawn["cells"] if cell["is_bad"]]) == 1


def test_the_map_of_a_long_trajectory_comes_after_the_page(reader, group, monkeypatch):
    monkeypatch.setattr(outline, "AT_ONCE_BYTES", 10)
    html = html_of(reader.get(page_of(group)))
    assert "first edit" not in html and "part=map" in html
    part = html_of(reader.get(page_of(group, "?part=map")))
    assert "first edit" in part and "<html" not in part
    assert "first edit" in html_of(reader.get(page_of(group, "?map=1")))


def test_signals_are_marked_and_walked_to(reader, group):
    rollout = group.trajectories.get(letter="A")
    for event in (1, 4):
        place = {"kind": "event", "event": event, "quote": "pytest"}
        Signal.objects.create(trajectory=rollout, detector="H3", words="it ran tests", is_strong=True, place=place)
    html = html_of(reader.get(page_of(group, "?at=1")))
    assert 'data-walk="1 4"' in html and "2 signals" in html and "e4, test, signal" in html
    assert 'data-walk-by="1" data-key="s" href="' + page_of(group, "?at=4#e4") in html.replace("&amp;", "&")


def test_all_events_are_saved_as_stored_and_as_seen(reader, group):
    stored = b"".join(reader.get(reverse("events", args=[group.pk, "A", "ndjson"])))
    assert [json.loads(line) for line in stored.splitlines()] == EVENTS
    answer = reader.get(reverse("events", args=[group.pk, "A", "txt"]))
    text = b"".join(answer).decode()
    assert answer["Content-Disposition"].startswith("attachment") and answer["X-Content-Type-Options"] == "nosniff"
    assert text.startswith("7 events.") and text.count("=====") == 7
    assert "1 failed\n100 % ⟨U+202E⟩evil" in text and "\x1b" not in text
    assert reader.get(reverse("events", args=[group.pk, "A", "exe"])).status_code == 404


def test_paper_has_every_event_open_and_says_what_it_leaves_out(reader, group, monkeypatch):
    address = reverse("events-print", args=[group.pk, "A"])
    html = html_of(reader.get(address))
    assert html.count('class="event-body"') == 7 and "not on this page" not in html
    monkeypatch.setattr(events, "PRINTED_CHARS", 5)
    assert "The last 6 events are not on this page" in html_of(reader.get(address))


def test_an_event_that_says_nothing_is_shown_as_stored(reader, group):
    html = html_of(reader.get(page_of(group, "?at=6")))
    assert "it says nothing; as stored" in html and "says nothing</span>" in html
    stored = reader.get(reverse("event", args=[group.pk, "A", 3]), {"part": "stored"})
    assert json.loads(stored.content) == EVENTS[3]


def test_search_finds_what_a_reader_sees_and_marks_it(reader, group):
    html = html_of(reader.get(page_of(group, "?q=FAILED")))
    assert '1 <mark class="hit">failed</mark>' in html
    assert "</mark>s</a>" in html_of(reader.get(page_of(group, "?q=pytest+test")))  # no blank that is not there
    assert "1 event with" in html_of(reader.get(page_of(group, "?q=1+failed")))


def test_images_are_drawn_by_their_bytes_and_others_are_said(reader, run):
    message = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url(png())}}]
    shot = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": url(png()).split(",")[1]}}
    told = [
        {"kind": "message", "text": message},
        {"kind": "observation", "text": f"{url(SVG, 'image/png')} {url(png())}"},
    ]
    told += [{"source": "user", "message": [shot, {"type": "text", "text": "after"}]}]
    group = held_group(run=run, outcomes="P", events=told)
    for index, images in ((0, 1), (1, 1), (2, 1)):
        body = html_of(reader.get(reverse("event", args=[group.pk, "A", index]), {"part": "body"}))
        assert body.count("<img ") == images and body.count('src="data:image/png;base64,') == images
    assert "not drawn, it is no PNG" in html_of(reader.get(reverse("event", args=[group.pk, "A", 1]), {"part": "body"}))
    line = html_of(reader.get(page_of(group)))
    assert "base64" not in line and "[data URL, image/png]" in line


def test_a_transcript_is_searched_walked_and_saved_like_a_trajectory(reader, group):
    said = [{"kind": "action", "tool": "submit_verdict", "args": {"order": ["A"]}}]
    said += [{"kind": "system", "role": "retry", "text": "A has no score"}, {"kind": "message", "text": "sorry"}] * 2
    stored = bodies.write_events(said)
    grading = Grading.objects.create(group=group, grader="agentic", transcript=stored.sha256, event_count=5)
    address = reverse("grading", args=[grading.pk])
    html = html_of(reader.get(address))
    assert f'{address}?at=1#e1">retry or error<' in html and f'{address}?at=3#e3">retry or error<' in html
    assert "2 events with" in html_of(reader.get(address, {"q": "no score"}))
    assert "<html" not in html_of(reader.get(address, {"part": "events", "after": "2"}))
    saved = reader.get(reverse("grading-events", args=[grading.pk, "ndjson"]))
    assert b"".join(saved).count(b"\n") == 5
    assert "all events" in html_of(reader.get(reverse("grading-print", args=[grading.pk])))


# --- the log


@pytest.fixture
def logged(run):
    group = make_group(run=run, state=GroupState.COMPLETE)
    lines = [b"line %d" % n for n in range(1, 2_501)]
    lines[1_499] = b"\x1b[31mFAILED tests/test_a.py::test_x - boom"
    lines[1_500] = b"still red\x1b[0m <script>alert(1)</script> \xff " + b"x" * 5_000
    tests = [{"name": "tests/test_a.py::test_x", "status": "failed"}]
    make_trajectory(group=group, letter="A", log=b"\n".join(lines) + b"\n", tests=tests)
    return group


def log_of(group, query: str = "") -> str:
    return reverse("trajectory-log", args=[group.pk, "A"]) + query


def test_a_log_has_pages_of_lines_with_addresses(reader, logged):
    html = html_of(reader.get(log_of(logged)))
    assert 'id="l1000"' in html and 'id="l1001"' not in html and "2500 lines" in html and "start=1001" in html
    html = html_of(reader.get(log_of(logged, "?line=1500")))
    assert 'id="l1450"' in html and 'id="l1449"' not in html
    assert "alert(1)&lt;" in html and '<span class="ansi-red">still red</span>' in html and "3.0 kB more" in html
    assert "No line here" in html_of(reader.get(log_of(logged, "?line=9999")))


def test_a_line_of_a_log_is_cited_as_the_result_that_it_names(reader, logged):
    html = html_of(reader.get(log_of(logged, "?line=1500")))
    assert 'data-result="tests/test_a.py::test_x"' in html
    assert "cite_kind=result&amp;cite_place=tests%2Ftest_a.py%3A%3Atest_x" in html
    assert "cite_place=outcome" in html


def test_a_whole_log_is_a_file_and_never_a_page(reader, logged):
    answer = reader.get(log_of(logged, "?part=whole"))
    assert answer.content.startswith(b"line 1\n") and answer["Content-Type"].startswith("text/plain")
    assert answer["X-Content-Type-Options"] == "nosniff" and answer["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_lines_are_the_same_however_the_log_is_cut(size):
    log = b"\nab\n\ncde\nf"
    chunks = [log[at : at + size] for at in range(0, len(log), size)]
    assert log_page.lines_between(chunks, 1, 99) == ([(b"", 0), (b"ab", 2), (b"", 0), (b"cde", 3), (b"f", 1)], 5)
    assert log_page.lines_between(chunks, 2, 4) == ([(b"ab", 2), (b"", 0)], 5)
    assert log_page.lines_between([b"a\n"], 1, 9) == ([(b"a", 1)], 1)
    assert log_page.lines_between([], 1, 9) == ([], 0)


# --- evidence


def test_the_state_of_a_citation_is_counted_anew_at_each_look(reader, run):
    group = held_group(run=run, outcomes="PPF", events=EVENTS)
    rollout = group.trajectories.get(letter="A")
    check = Check.objects.create(
        group=group, trajectory=rollout, name="check:1", key="0" * 64, asked={"argv": ["true"]}, sandbox="bubblewrap",
        outcome="passed", duration_s=0.1,
    )  # fmt: skip
    said = {"candidate": rollout.external_id}
    cited = [
        {"kind": "event", "event": 2, "quote": "1 failed", **said},
        {"kind": "event", "event": 2, "quote": "1  failed", **said},
        {"kind": "event", "event": 2, "quote": "never said", **said},
        {"kind": "result", "result": check.name, **said},
    ]
    verdict = group.verdicts.last()
    for n, citation in enumerate(cited, 1):
        row = {"about": "approach", "number": n, "citation": citation, "state": "exact"}
        Evidence.objects.create(verdict=verdict, trajectory=rollout, **row)
    sitting = Sitting(group, make_user(role=Role.REVIEWER, team=run.team))
    items = [evidence.item(sitting, row, rollout, row.number, ()) for row in verdict.evidence.all()]
    assert [item["state"] for item in items] == ["exact", "moved", "lost", "exact"]
    assert items[1]["detail"] == "white space differs" and items[2]["detail"] == "now, exact when it was given"
