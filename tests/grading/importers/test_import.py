"""`import_trajectories` stores what it reads once, says what it could not read, and leaves no half group."""

import io
import json
from collections import Counter

import pytest
from django.core.management import CommandError, call_command

from grading import bodies
from grading.grader import job
from grading.importers import import_groups
from grading.models import Run, Team, Trajectory
from grading.models.groups import RolloutGroup
from grading.states import EndReason, GroupState
from tests.factories import flash, make_run
from tests.grading.importers.files import (
    PATCH,
    SHARED,
    mini_document,
    needs_shared,
    swe_agent_document,
    write_group,
    write_json,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def rubric():
    return flash()


def imported(path, *args) -> str:
    flash()  # other files' tests call this too, and transactional ones before them empty the tables
    out = io.StringIO()
    call_command("import_trajectories", str(path), *args, stdout=out)
    return out.getvalue()


def tally(path, *args) -> dict:
    return json.loads(imported(path, "--json", *args))


def test_an_imported_run_is_graded_by_the_grader_of_the_server_or_the_one_that_was_asked_for(tmp_path, settings):
    folder = write_group(tmp_path / "g")
    settings.GAGAR_GRADER = "agentic"
    tally(folder, "--run", "one")
    tally(folder, "--run", "two", "--grader", "single_pass")
    assert dict(Run.objects.values_list("public_id", "grader")) == {"one": "agentic", "two": "single_pass"}
    with pytest.raises(CommandError, match="graded by single_pass.*Grader page"):
        tally(folder, "--run", "two", "--grader", "static")


def test_the_tally_counts_what_was_read_and_names_every_problem(tmp_path):
    got = tally(write_group(tmp_path / "g"))
    assert got["groups"] == 1
    assert got["candidates"] == 4
    assert got["events"] == {"read": 11, "kept": 11, "dropped": 0, "unlinked": 0}
    assert got["patches"] == {"parsed": 1, "unparsed": 1}  # two candidates have none
    assert [(p["candidate"], p["problem"]) for p in got["problems"]] == [
        ("c", "format_not_read"),
        ("d", "no_outcome"),
        ("c", "patch_unparsed"),
    ]
    assert list(got) == ["groups", "candidates", "events", "patches", "problems"]


def test_a_group_is_stored_with_task_bodies_and_hidden_facts(tmp_path):
    imported(write_group(tmp_path / "g"), "--run", "public")
    group = RolloutGroup.objects.get()
    run = group.run
    assert (run.public_id, run.team.slug, run.kind, run.policy) == ("public", "default", "imported", "manual")
    assert {run.collect_deadline_s, run.grading_deadline_s, run.review_deadline_s} == {None}
    assert {group.collect_by, group.grade_by, group.review_by} == {None}
    assert bodies.read_bytes(group.task.reference_patch) == PATCH.encode()
    a, b, c, d = group.trajectories.order_by("external_id")
    assert [t.external_id for t in (a, b, c, d)] == ["g1:a", "g1:b", "g1:c", "g1:d"]
    assert bodies.read_events(a.event_body, 1, 2) == [{"kind": "observation", "text": "f.py"}]
    assert (bodies.read_bytes(a.patch), bodies.read_bytes(a.log)) == (PATCH.encode(), b"1 passed")
    assert (a.extra["model"], a.extra["repository"]) == ("m-1", "ours/f")
    assert (b.event_count, b.patch, b.counts["turns"]) == (9, "", 3)
    assert (c.event_count, bool(c.raw_body)) == (None, True)
    assert (d.outcome, d.problem, d.event_count) == ("infra_invalid", "no_outcome", None)
    assert (group.state, group.bodies_ready) == (GroupState.COMPLETE, True)


def test_importing_twice_stores_nothing_twice(tmp_path):
    first = tally(write_group(tmp_path / "g"))
    rows = {model: model.objects.count() for model in (Run, Team, RolloutGroup, Trajectory)}
    assert tally(tmp_path / "g") == first
    assert {model: model.objects.count() for model in rows} == rows
    assert Counter(line.split()[5] for line in imported(tmp_path / "g").splitlines()[1:3]) == {"exists": 2}


def test_the_listing_says_where_no_trajectory_was_given(tmp_path):
    lines = {line.split()[1]: line for line in imported(write_group(tmp_path / "g")).splitlines()[1:5]}
    assert "none given" in lines["d"]
    assert "kept raw" in lines["c"]
    assert " 9 " in lines["b"]


@pytest.mark.parametrize(("name", "document"), [("f.traj", swe_agent_document()), ("f.traj.json", mini_document())])
def test_a_lone_trajectory_file_is_a_group_of_one(tmp_path, name, document):
    got = tally(write_json(tmp_path / name, document))
    assert (got["groups"], got["candidates"], got["patches"]["parsed"]) == (1, 1, 1)
    assert [p["problem"] for p in got["problems"]] == ["no_outcome"]
    trajectory = Trajectory.objects.get()
    assert (trajectory.external_id, trajectory.event_count) == ("f", got["events"]["kept"])
    assert trajectory.group.end_reason == EndReason.EXCLUDED_NO_VALID_TRAJECTORY


def test_the_tally_says_what_happens_next(tmp_path):
    lone = imported(write_json(tmp_path / "f.traj", swe_agent_document()))
    assert "1 group: no labelled candidate, so excluded: not waiting in the queue" in lone
    path = write_group(tmp_path / "g")
    assert "1 group: graded next, then in the queue" in imported(path)
    RolloutGroup.objects.filter(key="g1").update(state=GroupState.GRADED)
    assert "1 group: imported before, graded by now" in imported(path)


def test_a_run_of_another_team_is_named_with_the_way_out(tmp_path):
    path = write_group(tmp_path / "g")
    imported(path)
    with pytest.raises(CommandError, match="run imported belongs to team default, .* or another run with --run"):
        imported(path, "--team", "nobody")
    assert not Team.objects.filter(slug="nobody").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("trajectory/f.traj", '{"trajectory": [], "history": [], "info": {}}'),
        ("trajectory/f.traj.json", "[]"),
        ("trajectory/f.traj", '{"trajectory": [1'),
        ("events.jsonl", ""),
        ("events.jsonl", "[1]\nnot json\n"),
    ],
)
def test_a_file_without_a_single_event_refuses_its_group_and_no_other(tmp_path, name, content):
    write_group(tmp_path / "groups" / "good", key="good")
    bad = write_group(tmp_path / "groups" / "bad", key="bad") / "candidates" / "d" / name
    bad.parent.mkdir(exist_ok=True)
    bad.write_text(content)
    out = io.StringIO()
    with pytest.raises(CommandError, match="not imported:\n.*groups/bad") as refused:
        call_command("import_trajectories", str(tmp_path / "groups"), "--json", stdout=out)
    assert refused.value.returncode == 1
    assert [group.key for group in RolloutGroup.objects.all()] == ["good"]
    got = json.loads(out.getvalue())
    assert got["groups"] == 1
    assert "refused" in [p["problem"] for p in got["problems"]]


def test_a_path_that_cannot_be_read_is_an_error_and_makes_no_run(tmp_path):
    (tmp_path / "x.json").write_text('{"no": "trajectory"}')
    (tmp_path / "empty").mkdir()
    for name in ("missing", "empty", "x.json"):
        with pytest.raises(CommandError, match="does not exist|of no format that is read"):
            imported(tmp_path / name)
    assert not Run.objects.exists()


def test_an_import_goes_into_no_live_run_and_into_no_other_team(tmp_path):
    write_group(tmp_path / "g")
    make_run(public_id="job")
    with pytest.raises(CommandError, match="belongs to team|is a live job"):
        imported(tmp_path / "g", "--run", "job", "--team", "team-x")
    imported(tmp_path / "g", "--run", "mine", "--team", "one")
    with pytest.raises(CommandError, match="belongs to team one"):
        imported(tmp_path / "g", "--run", "mine", "--team", "two")
    with pytest.raises(CommandError, match="bad name of a run"):
        imported(tmp_path / "g", "--run", "not a slug")


def test_other_content_under_the_same_name_is_refused_and_says_where(tmp_path):
    folder = write_group(tmp_path / "g")
    imported(folder)
    (folder / "candidates" / "a" / "patch.diff").write_text(PATCH.replace("x = 2", "x = 3"))
    with pytest.raises(CommandError, match="g1:a came before with other content"):
        imported(folder)
    assert Trajectory.objects.count() == 4


def test_a_task_that_is_known_with_other_words_is_kept_and_said(tmp_path):
    imported(write_group(tmp_path / "g"))
    folder = write_group(tmp_path / "h", key="g2")
    whole = json.loads((folder / "group.json").read_text())
    whole["task"]["problem_statement"] = "Other words."
    write_json(folder / "group.json", whole)
    assert "task_differs" in [p["problem"] for p in tally(folder)["problems"]]
    assert RolloutGroup.objects.get(key="g2").task.statement == "Fix the bug."


def test_a_group_that_breaks_halfway_leaves_no_row(tmp_path, monkeypatch):
    add = import_groups.assemble.add_trajectory

    def stops_at_c(group, rollout, *, by):
        if rollout.external_id.endswith(":c"):
            raise RuntimeError("the disk is full")
        return add(group, rollout, by=by)

    monkeypatch.setattr(import_groups.assemble, "add_trajectory", stops_at_c)
    with pytest.raises(RuntimeError):
        imported(write_group(tmp_path / "g"))
    assert not RolloutGroup.objects.exists()
    monkeypatch.undo()
    assert tally(tmp_path / "g")["candidates"] == 4


def test_a_mixed_imported_group_is_graded_and_held_for_a_person(tmp_path):
    imported(write_group(tmp_path / "g"))
    while job.drain():
        pass
    group = RolloutGroup.objects.get()
    assert group.state in (GroupState.GRADED, GroupState.UNGRADED)
    assert group.held
    assert list(RolloutGroup.objects.awaiting_review()) == [group]


@needs_shared
def test_all_98_candidates_of_the_real_groups_are_imported_with_all_their_events():
    got = tally(SHARED / "groups")
    assert (got["groups"], got["candidates"]) == (8, 98)
    assert got["events"]["read"] == got["events"]["kept"] == 1136
    assert sum(got["patches"].values()) == 95
    assert Counter(p["problem"] for p in got["problems"])["format_not_read"] == 26
    rows = Trajectory.objects.all()
    assert rows.count() == 98
    assert sum(row.event_count or 0 for row in rows) == 1136
    assert rows.exclude(raw_body="").count() == 26
    assert sum(bodies.count(row.event_body) for row in rows.exclude(event_body="")) == 1136
    states = Counter(RolloutGroup.objects.values_list("state", "end_reason"))
    assert states == {("complete", ""): 7, ("decided", "filtered_all_passed"): 1}
    assert tally(SHARED / "groups") == got
    assert rows.count() == 98


def test_names_that_no_column_takes_are_refused(tmp_path):
    with pytest.raises(CommandError, match="too long names"):
        imported(write_group(tmp_path / "g", key="k" * 199))
    assert not RolloutGroup.objects.exists()
