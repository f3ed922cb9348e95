"""The walk of a group through the API, one call after the other."""

import pytest

from grading.models import Decision, Life, RolloutGroup, Trajectory
from grading.review import decisions
from grading.states import DecisionKind, GroupState
from tests.factories import make_group, make_life, make_run
from tests.grading.ingest.conftest import Job, rollout
from tests.verdicts import add_verdict

pytestmark = pytest.mark.django_db

EVENTS = [{"kind": "message", "text": "hello"}, {"kind": "action", "text": "ls", "tool": "bash", "exit_code": 0}]


def test_a_group_goes_from_declared_to_complete_with_its_bodies(job):
    assert job.client.post(f"{job.at}/lives", {"job": "trainer"}, format="json").json() == {"life": 2}
    job.life = Life.objects.get(run=job.run, n=2)
    declared = job.declare()
    assert declared.status_code == 201
    assert declared.json()["bodies"] == "undecided"
    first = job.hand_in(rollout("a", patch="diff --git a/x b/x\n", tests=[{"name": "t", "status": "passed"}]))
    assert (first.status_code, first.json()) == (201, {"items": [{"external_id": "a", "status": "created"}]})
    assert job.hand_in(rollout("b", "failed", reward=-0.5, counts={"turns": 3})).status_code == 201
    group = job.group()
    assert (group["state"], group["received"], group["bodies"]) == ("complete", 2, "wanted")
    assert not RolloutGroup.objects.get(key="g").bodies_ready
    assert job.hand_in({"group": "g", "external_id": "a", "events": EVENTS}).json()["items"][0]["status"] == "filled"
    assert not RolloutGroup.objects.get(key="g").bodies_ready
    second = job.hand_in(rollout("b", "failed", reward=-0.5, counts={"turns": 3}, events=[], log="no events here"))
    assert (second.status_code, second.json()["items"][0]["status"]) == (200, "filled")
    assert RolloutGroup.objects.get(key="g").bodies_ready
    assert job.group()["rollouts"] == [
        {"external_id": "a", "outcome": "passed", "events": 2, "has_log": False, "late": False},
        {"external_id": "b", "outcome": "failed", "events": 0, "has_log": True, "late": False},
    ]
    assert sorted(Trajectory.objects.values_list("letter", flat=True)) == ["A", "B"]


def test_the_same_again_changes_nothing_and_other_content_names_the_difference(job):
    assert job.declare().status_code == 201
    assert job.declare().status_code == 200
    other = job.declare(step=2)
    assert (other.status_code, other.json()["where"], other.json()["got"]) == (409, "step", {"step": 2})
    assert job.hand_in(rollout("a", reward=1)).status_code == 201
    again = job.hand_in(rollout("a", reward=1.0))
    assert (again.status_code, again.json()) == (200, {"items": [{"external_id": "a", "status": "exists"}]})
    conflict = job.hand_in(rollout("a", "failed", reward=1))
    assert (conflict.status_code, conflict.json()["where"]) == (409, "outcome")
    assert conflict.json()["got"] == {"outcome": "failed"}
    assert conflict.json()["expected"] == {"outcome": "passed"}
    assert Trajectory.objects.get().outcome == "passed"


def test_bodies_are_filled_once(job):
    job.declare(group_size=1)
    job.hand_in(rollout("a", events=EVENTS, log="log"))
    assert job.hand_in(rollout("a", events=EVENTS, log="log")).json()["items"][0]["status"] == "exists"
    assert job.hand_in(rollout("a")).json()["items"][0]["status"] == "exists"
    other = job.hand_in(rollout("a", events=EVENTS[:1]))
    assert (other.status_code, other.json()["where"]) == (409, "events")
    other = job.hand_in(rollout("a", log="other"))
    assert (other.status_code, other.json()["where"]) == (409, "log")


def test_a_streamed_log_without_events_says_that_there_are_none(job):
    job.declare()
    job.hand_in(rollout("a", events=[]), rollout("b", "failed"))
    lines = b'{"type": "trajectory", "group": "g", "external_id": "b"%b}\n{"type": "end"}\n'
    assert job.stream(lines % b"").json()["items"][0]["status"] == "exists"
    assert not RolloutGroup.objects.get().bodies_ready
    assert job.stream(lines % b', "log": "all there is"').json()["items"][0]["status"] == "filled"
    assert RolloutGroup.objects.get().bodies_ready
    event = b'{"type": "event", "kind": "message", "text": "after all"}\n{"type": "end"}'
    assert job.stream(lines.replace(b'{"type": "end"}', event) % b"").json()["items"][0]["status"] == "filled"


def test_fields_the_server_does_not_know_are_told(job):
    job.declare()
    item = job.hand_in(rollout("a", truncatd=True, **{"\0": 1})).json()["items"][0]
    assert (item["status"], item["ignored"]) == ("created", ["\\u0000", "truncatd"])


def test_several_items_answer_one_by_one(job):
    job.declare(group_size=3)
    job.hand_in(rollout("a"))
    answer = job.hand_in(rollout("a", "failed"), rollout("b"), rollout("c", "maybe"), rollout("d", group="unknown"))
    assert answer.status_code == 207
    items = answer.json()["items"]
    assert [item["status"] for item in items] == ["conflict", "created", "error", "error"]
    assert items[2]["error"] == {
        "what": "this has another type or value",
        "got": "maybe",
        "expected": "one of passed, failed, infra_invalid",
        "where": "trajectories[2]: outcome",
    }
    assert items[3]["error"]["what"] == "no such group"
    assert job.hand_in(rollout("e"), rollout("f", "failed")).status_code == 200


def test_a_rollout_after_complete_is_late_and_outside_statistics(job):
    job.declare(group_size=1)
    job.hand_in(rollout("a"))
    late = job.hand_in(rollout("b", "failed"))
    assert (late.status_code, late.json()["items"][0]["status"]) == (201, "late")
    again = job.hand_in(rollout("b", "failed"))
    assert (again.status_code, again.json()["items"][0]["status"]) == (200, "late")
    assert job.group()["received"] == 1
    assert Trajectory.objects.get(external_id="b").letter == ""


def test_sealing_completes_a_small_group_and_is_idempotent(job):
    job.declare(group_size=16)
    empty = job.post(f"{job.at}/groups/g/seal", {})
    assert (empty.status_code, empty.json()["expected"]) == (409, "at least 1 rollout")
    job.hand_in(rollout("a"), rollout("b", "failed"))
    assert job.post(f"{job.at}/groups/g/seal", {"life": 1}).json()["state"] == "complete"
    assert job.client.post(f"{job.at}/groups/g/seal").status_code == 200


def test_an_outcome_is_amended_explicitly_and_decided_anew(job):
    job.declare()
    job.hand_in(rollout("a"), rollout("b"))
    assert job.group()["end_reason"] == "filtered_all_passed"
    amended = job.post(
        f"{job.at}/groups/g/amend", {"external_id": "b", "outcome": "infra_invalid", "reason": "host died"}
    )
    assert (amended.status_code, amended.json()["version"]) == (200, 2)
    amended = job.post(f"{job.at}/groups/g/amend", {"external_id": "b", "outcome": "failed", "reason": "flaky"})
    assert (amended.json()["state"], amended.json()["bodies"]) == ("grading", "wanted")
    assert job.hand_in(rollout("b")).json()["items"][0]["status"] == "exists"  # a retry of the first post
    told = RolloutGroup.objects.get().events.filter(reason__contains="flaky").first()
    assert told.details["old"]["outcome"] == "infra_invalid"


def test_an_amendment_while_collecting_counts_when_complete(job):
    job.declare()
    job.hand_in(rollout("a"))
    job.post(f"{job.at}/groups/g/amend", {"external_id": "a", "outcome": "failed", "reason": "flaky"})
    job.hand_in(rollout("b"))
    assert job.group()["state"] == "complete"
    missing = job.post(f"{job.at}/groups/g/amend", {"external_id": "x", "outcome": "failed", "reason": "flaky"})
    assert missing.status_code == 404


@pytest.mark.parametrize("reward", ["NaN", "Infinity", "-Infinity"])
def test_a_reward_that_is_no_number_is_stored_and_excludes_the_group(job, reward):
    job.declare()
    job.hand_in(rollout("a", reward=reward))
    job.hand_in(rollout("b", "failed", reward=0))
    assert job.group()["end_reason"] == "excluded_bad_reward"
    assert Trajectory.objects.get(external_id="a").reward == reward


def test_groups_that_need_no_grade_are_decided_at_once(job):
    for key, outcomes, eligible, kind in (
        ("1", "PP", True, "filtered"),
        ("2", "FF", True, "filtered"),
        ("3", "II", True, "excluded"),
        ("4", "PF", False, "ineligible"),
    ):
        job.declare(key, eligible=eligible)
        names = {"P": "passed", "F": "failed", "I": "infra_invalid"}
        job.hand_in(*[rollout(f"{key}{at}", names[o], group=key) for at, o in enumerate(outcomes)])
        assert Decision.objects.get(group__key=key).kind == kind
    assert job.declare("5").status_code == 201


def test_a_share_of_the_other_bodies_is_wanted_too(db, bodies_folder):
    for share, bodies in ((0.0, "not_wanted"), (1.0, "wanted")):
        job = Job(bodies_share=share)
        job.declare()
        job.hand_in(rollout("a"), rollout("b"))
        assert job.group()["bodies"] == bodies


def test_a_run_that_is_not_graded_wants_a_share_only(db, bodies_folder):
    job = Job(method="outcome", bodies_share=0)
    job.declare()
    job.hand_in(rollout("a"), rollout("b", "failed"))
    group = RolloutGroup.objects.get()
    assert (group.bodies_wanted, group.bodies_ready, group.state) == (False, True, GroupState.DECIDED)
    assert (group.method, group.policy, group.rubric) == ("outcome", job.run.policy, job.run.rubric)


def test_keys_may_hold_slashes_and_any_printable_letter(job):
    for key in ("step-1/prompt 7", "größe/№5", "a/seal/b"):
        assert job.declare(key).status_code == 201
        assert job.group(key)["key"] == key
    job.hand_in(rollout("r/1", group="a/seal/b", events=EVENTS))
    got = job.reader.get(f"{job.at}/trajectories/r/1/events").json()
    assert got == {"total": 2, "start": 0, "next": None, "events": EVENTS}


def test_a_newer_life_fences_the_older(job):
    job.declare()
    job.declare("done", group_size=1)
    job.hand_in(rollout("x", group="done"))
    job.hand_in(rollout("a"))
    assert job.post(f"{job.at}/lives", {"job": "restart"}).json() == {"life": 2}
    left = RolloutGroup.objects.get(key="g")
    assert (left.state, left.end_reason) == ("decided", "abandoned")
    assert RolloutGroup.objects.get(key="done").end_reason == "filtered_all_passed"
    for refused in (
        job.hand_in(rollout("b")),
        job.declare("h"),
        job.post(f"{job.at}/groups/g/seal", {}),
        job.post(f"{job.at}/groups/g/amend", {"external_id": "a", "outcome": "failed", "reason": "r"}),
        job.stream(b'{"type": "trajectory"}\n'),
    ):
        assert (refused.status_code, refused.json()["where"]) == (409, "life")
    assert job.declare(life=2).status_code == 201  # the same key, rolled anew
    assert job.group()["life"] == 2
    assert job.client.get(f"{job.at}/groups/g?life=1").json()["end_reason"] == "abandoned"
    assert job.declare(life=9).status_code == 404


def test_readers_page_through_everything(job):
    for at in range(5):
        make_group(run=job.run, life=job.life, outcomes="PF", state=GroupState.COMPLETE, key=f"g{at}")
    other = make_group(outcomes="P")
    keys, after = [], 0
    while after is not None:
        page = job.reader.get(f"{job.at}/groups?limit=2&after={after}").json()
        keys += [item["key"] for item in page["items"]]
        after = page["next"]
    assert keys == [f"g{at}" for at in range(5)]
    rollouts = job.reader.get(f"{job.at}/trajectories?group=g3&life=1").json()["items"]
    assert [item["outcome"] for item in rollouts] == ["passed", "failed"]
    for path in ("verdicts", "decisions"):
        assert job.reader.get(f"{job.at}/{path}").json() == {"items": [], "next": None}
    tasks = job.reader.get("/api/v1/tasks").json()["items"]
    assert other.task.key not in [task["key"] for task in tasks]
    assert job.reader.get(f"{job.at}/groups?limit=0").status_code == 422
    assert job.reader.get(f"{job.at}/groups?after=-1").status_code == 422


def test_a_verdict_is_listed_once_no_person_has_to_order_the_group_blind(job):
    """A reader's token may lie with a person who still has to say what they think themselves."""
    said = {"run": job.run, "life": job.life, "state": GroupState.GRADED, "held": True, "hold_reason": "policy manual"}
    seen, blind = make_group(outcomes="PPF", **said), make_group(outcomes="PPF", is_blind=True, **said)
    for group in (seen, blind):
        add_verdict(group)
    assert [item["group"] for item in job.reader.get(f"{job.at}/verdicts").json()["items"]] == [seen.key]
    assert job.reader.get(f"{job.at}/verdicts?group={blind.key}").json()["items"] == []
    decisions.decide(blind, DecisionKind.FALLBACK, by="test", reason="skipped")
    assert len(job.reader.get(f"{job.at}/verdicts").json()["items"]) == 2


def test_bodies_come_back_as_they_were_sent(job):
    job.declare(group_size=1)
    job.hand_in(
        rollout(
            "a", patch_base64="/wD/", log="line\n", events=[{"kind": "message", "text": str(n)} for n in range(700)]
        )
    )
    patch = job.reader.get(f"{job.at}/trajectories/a/patch")
    assert (patch.content, patch["Content-Disposition"]) == (b"\xff\x00\xff", 'attachment; filename="patch"')
    assert job.reader.get(f"{job.at}/trajectories/a/log").content == b"line\n"
    page = job.reader.get(f"{job.at}/trajectories/a/events?start=10&stop=12").json()
    assert ([event["text"] for event in page["events"]], page["next"]) == (["10", "11"], 12)
    page = job.reader.get(f"{job.at}/trajectories/a/events?start=600").json()
    assert (len(page["events"]), page["next"]) == (100, None)
    assert job.reader.get(f"{job.at}/trajectories/nobody/events").status_code == 404


def test_a_second_life_may_use_an_id_again_and_one_life_may_not(job):
    job.declare("g")
    job.declare("h")
    job.hand_in(rollout("a"))
    twice = job.hand_in(rollout("a", group="h"))
    assert (twice.status_code, twice.json()["where"]) == (409, "group")
    make_life(run=job.run)
    job.life = Life.objects.get(run=job.run, n=2)
    job.declare("g", life=2)
    assert job.hand_in(rollout("a"), life=2).status_code == 201


def test_another_runs_address_is_unknown_to_a_token(job):
    for run in (make_run(), make_run(team=job.run.team)):
        for path in ("groups", "groups/g", "trajectories", "verdicts", "decisions"):
            assert job.client.get(f"/api/v1/runs/{run.public_id}/{path}").status_code in (403, 404)
        assert job.put(f"/api/v1/runs/{run.public_id}/groups/g", {}).status_code in (404, 422)
        assert job.post(f"/api/v1/runs/{run.public_id}/lives", {}).status_code == 404
    assert job.post("/api/v1/runs/nobody/lives", {}).status_code == 404
