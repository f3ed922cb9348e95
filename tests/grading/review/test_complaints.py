"""What users of other tools complained about in public, tried here; the table of all of them is docs/complaints.md."""

import difflib
import json
import re
from pathlib import Path

import pytest
from django.db.models import QuerySet
from django.urls import reverse

from grading import bodies
from grading.errors import BadInput, NotFound
from grading.ingest.strict_json import strict_json
from grading.models import Role, Verdict
from grading.review.diffs import RowOptions, file_rows_html, parse_patch
from grading.states import EndReason, GroupState
from tests.factories import make_group, make_run, make_user
from tests.verdicts import held_group

CYRILLIC = "--- a/ru.txt\n+++ b/ru.txt\n@@ -1,2 +1,2 @@\n привет\n-старый\n+новый\n"
SIGNED = b"diff --git a/old.py b/new.py\nsimilarity index 100%\nrename from old.py\nrename to new.py\n-- \n2.39.2\n"


@pytest.fixture
def reader(client, db):
    run = make_run(policy="manual")
    client.force_login(make_user(role=Role.REVIEWER, team=run.team))
    return client, run


@pytest.mark.parametrize("encoding", ["utf-8", "cp1251", "latin-1"])
@pytest.mark.parametrize("view", ["unified", "split"])
def test_a_file_of_another_alphabet_is_text_in_both_views(encoding, view):
    """rietveld#230 and jj#7723: side by side was empty; another encoding than UTF-8 was called binary."""
    words = (
        CYRILLIC
        if encoding != "latin-1"
        else CYRILLIC.replace("привет", "é").replace("старый", "è").replace("новый", "à")
    )
    [file] = parse_patch(words.encode(encoding)).files
    rows = str(file_rows_html(file, cited={}, options=RowOptions("A", 0, view=view)))
    assert "Binary" not in rows and "binary" not in rows
    assert rows.count("<tr") >= 2
    if encoding == "utf-8":
        assert "старый" in rows.replace('<span class="word">', "").replace("</span>", "")


def test_a_signature_of_format_patch_is_no_file_and_no_line():
    """python-unidiff#73."""
    [file] = parse_patch(SIGNED).files
    assert (file.old_path, file.new_path) == ("old.py", "new.py")
    assert not file.hunks


def test_a_diff_of_difflib_without_names_says_that_it_names_no_file():
    """python-unidiff#115."""
    lines = difflib.unified_diff(["a\n", "b\n"], ["a\n", "c\n"])
    patch = parse_patch("".join(lines).encode())
    assert patch.problems[0] == "line 1: '--- ' names no file"


def test_thousands_of_notes_of_a_grader_cost_the_page_little(reader):
    """inspect_ai#2249: a scoring tab that crashes."""
    client, run = reader
    group = held_group(run=run, outcomes="PPF")
    notes = [f"note {n}: left out, no such place" for n in range(6_700)]
    assert QuerySet(Verdict).update(notes=notes) == 1  # around the rule that a verdict is never edited
    html = client.get(reverse("group", args=[group.pk])).content.decode()
    assert "note 0: left out" in html
    assert len(html) < 400_000


def test_a_group_of_equal_outcomes_is_named_as_one_that_does_not_train(reader):
    """trl#3857, ms-swift#4570: a loss of zero, because all rewards are equal, and nobody sees it."""
    client, run = reader
    group = make_group(run=run, outcomes="PPP", state=GroupState.DECIDED, end_reason=EndReason.FILTERED_ALL_PASSED)
    html = client.get(reverse("group", args=[group.pk])).content.decode()
    assert "Every valid rollout passed, so the group does not train." in html
    assert "filtered" in client.get(reverse("groups")).content.decode()


def test_lists_and_the_review_page_open_without_any_body_of_events(reader):
    """langfuse#1352: a list fails because its rows carry huge inputs."""
    client, run = reader
    group = held_group(run=run, outcomes="PPF", events=[{"kind": "action", "text": "ls"}])
    for key in group.trajectories.values_list("event_body", flat=True):
        bodies._storage().delete(bodies._events_name(key))  # whoever needs one fails
    with pytest.raises(NotFound):
        list(bodies.iter_events(key))
    for address in (reverse("queue"), reverse("groups"), reverse("tasks"), reverse("group", args=[group.pk])):
        assert client.get(address).status_code == 200


def test_a_call_of_64_levels_is_drawn_and_a_deeper_one_is_refused(reader):
    """langfuse#9933: 130 levels."""
    client, run = reader

    def nested(levels: int):
        return "the end" if levels == 0 else {"down": nested(levels - 1)}

    group = held_group(run=run, outcomes="PPF", events=[{"kind": "action", "tool": "t", "args": nested(60)}])
    html = client.get(reverse("event", args=[group.pk, "A", 0]) + "?part=body").content.decode()
    assert "the end" in html
    with pytest.raises(BadInput, match="64"):
        strict_json(json.dumps(nested(130)).encode(), where="line 1")


def test_every_complaint_of_the_table_names_a_test_that_is_there():
    root = Path(__file__).resolve().parents[3]
    named = set(re.findall(r"`(test_\w+)`", (root / "docs" / "complaints.md").read_text()))
    sources = [path.read_text() for path in (root / "tests").rglob("test_*.py")]
    there = {name for source in sources for name in re.findall(r"def (test_\w+)", source)}
    assert len(named) > 40
    assert named - there == set()
