"""Steps on real rows: deadlines, racers, lives that end."""

import hashlib
import threading
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from grading import bodies
from grading.errors import Conflict, Fenced, NotFound, WrongShape, WrongState
from grading.ingest import assemble, declaring, lives, tasks_register
from grading.ingest.completing import _letters
from grading.ingest.rollout import Rollout
from grading.models import Decision, Life, Repository, RolloutGroup, Trajectory
from grading.states import GroupState
from tests.factories import make_group, make_life, make_run, make_task, make_team

pytestmark = pytest.mark.usefixtures("bodies_folder")
EVENTS = [{"kind": "message", "text": "hello"}]


def declared(**fields) -> RolloutGroup:
    run = fields.pop("run", None) or make_run()
    life = run.lives.first() or make_life(run=run)
    task = make_task(team=run.team)
    said = {"key": "g", "task": task.key, "step": 1, "group_size": 2} | fields
    return declaring.declare_group(run=run, life=life.n, **said)[0]


def add(group, external_id="a", outcome="passed", **fields):
    return assemble.add_trajectory(group, Rollout(external_id, outcome, **fields), by="test")


def overdue(group, **fields) -> RolloutGroup:
    RolloutGroup.objects.filter(pk=group.pk).update(collect_by=timezone.now() - timedelta(seconds=1), **fields)
    group.refresh_from_db()
    return group


def both(first, second) -> list:
    """Run both at once in threads; what each returned or raised."""
    ready, results = threading.Barrier(2), [None, None]

    def run(place, what):
        try:
            ready.wait(10)
            results[place] = what()
        except Exception as raised:
            results[place] = raised
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate((first, second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


@pytest.mark.django_db(transaction=True)
def test_of_two_last_rollouts_one_completes_the_group_and_the_other_is_late():
    group = declared(group_size=2)
    add(group, "a")
    results = both(lambda: add(group, "b", "failed"), lambda: add(group, "c", "failed"))
    assert sorted(str(added.status) for added in results) == ["created", "late"]
    group.refresh_from_db()
    assert group.state == GroupState.COMPLETE
    assert group.events.filter(new=GroupState.COMPLETE, old=GroupState.COLLECTING).count() == 1
    assert sorted(group.trajectories.counted().values_list("letter", flat=True)) == ["A", "B"]


@pytest.mark.django_db(transaction=True)
def test_the_same_rollout_sent_twice_at_once_is_one_row():
    group = declared(group_size=5)
    results = both(lambda: add(group, "a"), lambda: add(group, "a"))
    assert sorted(str(added.status) for added in results) == ["created", "exists"]
    assert Trajectory.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_id_in_two_groups_at_once_is_in_one_of_them():
    first = declared(group_size=5)
    second = declared(run=first.run, key="h", group_size=5)
    results = both(lambda: add(first, "a"), lambda: add(second, "a"))
    assert sorted(type(result).__name__ for result in results) == ["Added", "Conflict"]
    assert Trajectory.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_lives_issued_at_once_are_numbered_and_one_of_them_is_fenced():
    run = make_run()
    both(lambda: lives.issue_life(run, "one"), lambda: lives.issue_life(run, "two"))
    assert list(Life.objects.order_by("n").values_list("n", flat=True)) == [1, 2]
    assert Life.objects.get(fenced_at=None).n == 2


@pytest.mark.django_db(transaction=True)
def test_sealing_and_the_last_rollout_meet_and_the_group_completes_once():
    group = declared(group_size=2)
    add(group, "a")
    results = both(lambda: assemble.seal(group, by="test"), lambda: add(group, "b", "failed"))
    assert not [result for result in results if isinstance(result, Exception)]
    assert group.events.filter(old=GroupState.COLLECTING, new=GroupState.COMPLETE).count() == 1


@pytest.mark.django_db
def test_the_collect_deadline_completes_what_has_rollouts_and_excludes_what_has_none():
    some, none, later = (declared(key=key) for key in ("some", "none", "later"))
    add(some, "a")
    overdue(some)
    overdue(none)
    assert assemble.close_overdue(timezone.now()) == 2
    assert assemble.close_overdue(timezone.now()) == 0
    for group in (some, none, later):
        group.refresh_from_db()
    assert (some.state, some.end_reason) == (GroupState.DECIDED, "filtered_all_passed")
    assert (none.state, none.end_reason) == (GroupState.DECIDED, "excluded_no_valid_trajectory")
    assert Decision.objects.get(group=none).by == "policy:deadline"
    assert later.state == GroupState.COLLECTING


@pytest.mark.django_db
def test_missing_bodies_are_waited_for_until_the_collect_deadline():
    group = declared()
    add(group, "a", events=EVENTS)
    add(group, "b", "failed")
    group.refresh_from_db()
    assert (group.state, group.bodies_wanted, group.bodies_ready) == (GroupState.COMPLETE, True, False)
    assert not RolloutGroup.objects.gradable(timezone.now()).exists()
    assert assemble.close_overdue(timezone.now()) == 0
    overdue(group)
    assert assemble.close_overdue(timezone.now()) == 1
    assert RolloutGroup.objects.gradable(timezone.now()).exists()


@pytest.mark.django_db
def test_a_group_whose_rollouts_came_with_events_is_gradable_at_once():
    group = declared(group_size=3)
    add(group, "a", events=EVENTS)
    add(group, "b", "failed", events=iter(EVENTS))
    add(group, "c", "infra_invalid")
    group.refresh_from_db()
    assert group.bodies_ready
    assert group.grade_by == group.completed_at + timedelta(seconds=group.run.grading_deadline_s)


@pytest.mark.django_db
def test_late_rollouts_and_bodies_fill_after_the_decision():
    group = declared()
    add(group, "a")
    add(group, "b")
    assert add(group, "a", events=EVENTS).status == "filled"
    late = add(group, "c", "failed", events=EVENTS)
    assert (late.status, late.trajectory.is_late) == ("late", True)
    assert bodies.read_events(Trajectory.objects.get(external_id="a").event_body) == EVENTS


@pytest.mark.django_db
def test_events_that_break_off_store_no_row():
    group = declared()

    def broken():
        yield EVENTS[0]
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        add(group, "a", events=broken())
    assert not Trajectory.objects.exists()


@pytest.mark.django_db
def test_an_imported_run_waits_for_nobody():
    group = declared(run=make_run(kind="imported", policy="manual"))
    assert group.collect_by is None
    add(group, "a")
    add(group, "b", "failed")
    group.refresh_from_db()
    assert (group.state, group.bodies_wanted, group.bodies_ready, group.grade_by) == ("complete", False, True, None)


@pytest.mark.django_db
def test_a_life_that_is_over_writes_nothing():
    group = declared()
    add(group, "a")
    lives.issue_life(group.run)
    for refused in (
        lambda: add(group, "b"),
        lambda: add(group, "a"),
        lambda: assemble.seal(group, by="test"),
        lambda: declared(run=group.run, key="h"),
        lambda: assemble.amend(group, external_id="a", outcome="failed", reason="r", by="test"),
    ):
        with pytest.raises(Fenced, match="life 1 is fenced"):
            refused()
    assert Trajectory.objects.count() == 1


@pytest.mark.django_db
def test_groups_left_open_by_a_server_that_died_while_fencing_are_abandoned_later():
    run = make_run()
    old = make_life(run=run, fenced_at=timezone.now())
    make_life(run=run)
    for state in (GroupState.COLLECTING, GroupState.COMPLETE, GroupState.GRADING, GroupState.GRADED):
        make_group(run=run, life=old, state=state, outcomes="PF")
    assert lives.abandon_fenced() == 4
    assert set(RolloutGroup.objects.values_list("end_reason", flat=True)) == {"abandoned"}
    assert lives.abandon_fenced() == 0


@pytest.mark.django_db
def test_only_the_reward_may_be_amended_and_the_same_again_is_nothing():
    group = declared()
    add(group, "a")
    add(group, "b")
    assemble.amend(group, external_id="a", outcome="passed", reward="0.5", reason="scored anew", by="test")
    group.refresh_from_db()
    assert (group.version, Trajectory.objects.get(external_id="a").reward) == (2, "0.5")
    assemble.amend(group, external_id="a", outcome="passed", reason="again", by="test")
    group.refresh_from_db()
    assert group.version == 2
    with pytest.raises(NotFound):
        assemble.amend(group, external_id="x", outcome="passed", reason="r", by="test")


def test_letters_go_on_after_z():
    assert _letters(28)[-3:] == ["Z", "AA", "AB"]


@pytest.mark.django_db
def test_a_task_is_written_once():
    team = make_team()
    said = {"team": team, "key": "t", "statement": "Fix it.", "reference_patch": b"diff"}
    assert tasks_register.put_task(**said)[1]
    assert not tasks_register.put_task(**said)[1]
    with pytest.raises(Conflict) as refused:
        tasks_register.put_task(**said | {"statement": "Break it."})
    assert refused.value.where == "statement"
    with pytest.raises(WrongShape, match="no such task"):
        declaring.declare_group(run=make_life().run, life=1, key="g", task="t", step=1, group_size=1)


@pytest.mark.django_db
def test_a_git_url_is_taken_from_allowed_hosts_only(settings):
    settings.GAGAR_GIT_HOSTS = ["git.example.org"]
    team = make_team()
    task, _ = tasks_register.put_task(
        team=team, key="t", statement="", repository="https://git.example.org/a.git", base_commit="c0ffee"
    )
    assert (task.repository_url, task.repository) == ("https://git.example.org/a.git", None)
    for url in ("https://git.example.org.evil/a", "http://git.example.org/a", "https://u:p@git.example.org/a"):
        with pytest.raises(WrongShape):
            tasks_register.put_task(team=team, key="u", statement="", repository=url)


@pytest.mark.django_db
def test_nothing_to_seal_is_said():
    with pytest.raises(WrongState, match="no rollouts to seal"):
        assemble.seal(declared(), by="test")


def test_a_repository_is_kept_if_it_is_what_its_key_says(job):
    data = b"bundle" * 100_000
    sha256 = hashlib.sha256(data).hexdigest()
    put = {"path": f"/api/v1/repositories/{sha256}", "content_type": "application/octet-stream"}
    assert job.client.generic("PUT", data=data[:-1], **put).status_code == 400
    assert not Repository.objects.exists()
    assert job.client.generic("PUT", data=data, **put).status_code == 201
    assert job.client.generic("PUT", data=data, **put).json() == {"sha256": sha256, "bytes": len(data)}
    assert bodies.read_bytes(sha256) == data
    task = job.put("/api/v1/tasks/new", {"statement": "s", "repository": sha256, "base_commit": "c0ffee"})
    assert (task.status_code, task.json()["repository"]) == (201, sha256)
    assert job.reader.get("/api/v1/tasks/new").json()["base_commit"] == "c0ffee"
