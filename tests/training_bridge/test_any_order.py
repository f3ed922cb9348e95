"""Whatever people, graders, the job and the clock do in whatever order: the story of every group stays whole."""

from datetime import timedelta
from random import Random

import pytest

from grading import clock
from grading.errors import GradingError
from grading.grader import job
from grading.grader.shape import Cited, Finding
from grading.ingest import assemble, declaring, lives
from grading.ingest.rollout import Rollout
from grading.models import RolloutGroup, Run, Trajectory
from grading.review import corrections, deadlines, decisions, findings
from grading.states import AWAITING_REVIEW, GroupState, Method, Policy
from tests.factories import PATCH, make_run, make_task, make_user
from tests.training_bridge.whole import check_paid, check_rows, check_story
from tests.verdicts import line_of, reply_for
from training_bridge import delivery, pausing
from training_bridge.models import Delivery, Stream

pytestmark = pytest.mark.django_db
MOVES_EACH = 90
OUTCOMES = (*["passed"] * 4, *["failed"] * 3, "infra_invalid")
OFTEN = {"declare": 3, "roll": 4, "take": 5, "answer": 5, "deliver": 2, "approve": 5, "correct": 3, "fall_back": 2}
OFTEN |= {"confirm": 3, "withdraw": 3, "amend": 2}


class Nobody(Exception):
    """There is no such rollout to choose yet."""


class World:
    """One run, and everybody who can touch it. Each method is one thing that somebody does."""

    def __init__(self, seed: int):
        self.random = Random(seed)
        pick = self.random.choice
        self.run = make_run(
            policy=pick([Policy.AUTO, Policy.MANUAL, *Policy]), method=pick([Method.REDISTRIBUTE] * 3 + [*Method]),
            hold_share=0.5, bodies_share=pick([0.0, 1.0]), mask_truncated=pick([True, False]),
        )  # fmt: skip
        self.tasks = [make_task(team=self.run.team) for _ in range(2)]
        self.people = [make_user() for _ in range(2)]
        self.life = lives.issue_life(self.run).n
        self.workers = []
        self.declared = 0
        for _ in range(3):
            self.declare()

    def group(self) -> RolloutGroup:
        rows = RolloutGroup.objects.filter(run=self.run).select_related("run", "life", "task", "rubric")
        held = list(rows.filter(state__in=AWAITING_REVIEW)) if self.random.random() < 0.5 else []
        return self.random.choice(held or list(rows))

    def rollout(self, **fields) -> Trajectory:
        found = list(Trajectory.objects.filter(run=self.run, **fields))
        if not found:
            raise Nobody
        return self.random.choice(found)

    def person(self):
        return self.random.choice(self.people)

    # ---- the job ----

    def declare(self):
        self.declared += 1
        declaring.declare_group(
            run=Run.objects.get(pk=self.run.pk), life=self.life, key=f"g{self.declared}",
            task=self.random.choice(self.tasks).key, step=self.declared, group_size=4,
            eligible=self.random.random() < 0.85,
        )  # fmt: skip

    def roll(self):
        collecting = RolloutGroup.objects.filter(run=self.run, state=GroupState.COLLECTING)
        for group in collecting.select_related("run", "life", "task"):
            for _ in range(self.random.randint(1, 4)):
                self.declared += 1
                rollout = Rollout(
                    external_id=f"r{self.declared}", outcome=self.random.choice(OUTCOMES),
                    reward=self.random.choice([*[None] * 20, *["0.75"] * 6, *["-0.5"] * 6, "NaN"]),
                    is_truncated=self.random.random() < 0.1, events=self.random.choice([None, *[[]] * 9]),
                    patch=PATCH.replace(b"42", b"%d" % self.declared),
                )  # fmt: skip
                assemble.add_trajectory(group, rollout, by="job")

    def seal(self):
        assemble.seal(self.group(), by="job")

    def amend(self):
        rollout = self.rollout()
        assemble.amend(
            rollout.group, external_id=rollout.external_id, reason="flaky", by="job",
            outcome=self.random.choice(["passed", "failed", "infra_invalid"]),
            reward=self.random.choice([None, None, None, "", "0.5", "Infinity"]),
        )  # fmt: skip

    def want(self):
        group = self.group()
        deadlines.want(self.run, group.life.n, [group.key], within_s=self.random.choice([0, 60, 60, 60]))

    def restart(self):
        if self.random.random() < 0.1:
            self.life = lives.issue_life(self.run).n
            self.declare()

    # ---- graders ----

    def drain(self):
        job.drain()

    def take(self):
        waiting = RolloutGroup.objects.filter(run=self.run, state__in=[GroupState.COMPLETE, GroupState.GRADING])
        group = waiting.select_related("run", "task", "rubric").first()
        if group and group.claim(by="worker", lease_s=60):
            self.workers.append((group, group.fencing, reply_for(group, self.scores())))

    def answer(self):
        if self.workers:
            group, fencing, reply = self.workers.pop(self.random.randrange(len(self.workers)))
            if self.random.random() < 0.3:
                reply = type(reply)(reply.candidates[1:])
            if self.random.random() < 0.3 and reply.candidates:
                found = group.trajectories.get(external_id=reply.candidates[0].id)
                finding = Finding(found.external_id, "hack", "hard-coded", (line_of(found),))
                reply = type(reply)(reply.candidates, findings=(finding,))
            job.store_verdict(group, reply, fencing=fencing)

    def extra(self):
        group = self.group()
        job.accept(group, reply_for(group, self.scores()), grader="ours")

    def scores(self) -> dict[str, int]:
        return {letter: self.random.randint(1, 5) for letter in "ABCD"}

    # ---- people ----

    def approve(self):
        group = self.group()
        verdicts = list(group.verdicts.order_by("-pk").values_list("pk", flat=True)[:2]) or [0]
        decisions.approve(group, seen_verdict=self.random.choice(verdicts), user=self.person())

    def fall_back(self):
        decisions.fall_back(self.group(), user=self.person(), reason=self.random.choice(["", "odd"]))

    def correct(self):
        group, user = self.group(), self.person()
        newest = decisions.newest_verdict(group)
        passing = list(group.trajectories.filter(outcome="passed"))
        if newest and passing:
            chosen = self.random.choice(passing)
            cited = tuple(Cited(about, line_of(chosen)) for about in ("approach", "minimality"))
            corrections.correct(
                group, parent=newest.pk, user=user, reason="closer look", flags={},
                scores={chosen.external_id: {"minimality": self.random.randint(1, 5)}},
                citations={chosen.external_id: cited},
            )  # fmt: skip

    def confirm(self):
        rollout = self.rollout()
        kind = self.random.choice(["leak", "hack"])
        findings.confirm(rollout, kind=kind, reason="seen", citations=[line_of(rollout)], user=self.person())

    def withdraw(self):
        findings.withdraw(self.rollout(integrity__gt=""), reason="not so", user=self.person())

    def quarantine(self):
        if self.random.random() < 0.7:
            return
        findings.quarantine(
            self.random.choice(self.tasks), reason="broken", user=self.person(),
            group=self.random.choice([None, self.group()]),
        )  # fmt: skip

    def release(self):
        for task in self.tasks:
            task.refresh_from_db()
        broken = [task for task in self.tasks if task.is_broken] or self.tasks
        findings.release(self.random.choice(broken), reason="works", user=self.person())

    def pause(self):
        pausing.switch(self.run, paused=self.random.choice([False, False, True]), reason="test", by="alice")

    # ---- the clock and the bridge ----

    def pass_time(self):
        past = clock.now() - timedelta(seconds=1)
        name = self.random.choice(["collect_by", "grade_by", "review_by", "claimed_until"])
        RolloutGroup.objects.filter(pk=self.group().pk, **{f"{name}__isnull": False}).update(**{name: past})

    def sweep(self):
        deadlines.sweep()

    def deliver(self):
        delivery.deliver(self.run)

    def be_killed_while_delivering(self):
        delivery.store(self.run)

    def new_epoch(self):
        if self.random.random() < 0.3:
            delivery.stream_of(self.run)
            delivery.open_epoch(self.run, reason="test")

    def come_to_rest(self):
        """Every deadline passes, graders work, the bridge delivers."""
        past = clock.now() - timedelta(seconds=1)
        for _ in range(3):
            for name in ("collect_by", "grade_by", "review_by", "claimed_until"):
                RolloutGroup.objects.filter(**{f"{name}__isnull": False}).update(**{name: past})
            deadlines.sweep()
            job.drain()
        delivery.sweep()


STEPS = [name for name, step in vars(World).items() if callable(step) and not name.startswith("_")]
STEPS = [name for name in STEPS if name not in ("group", "rollout", "person", "scores", "come_to_rest")]


@pytest.mark.parametrize("seed", range(6))
def test_every_group_ends_in_one_newest_row_whatever_happened_in_whatever_order(seed):
    world = World(seed)
    weights = [OFTEN.get(name, 1) for name in STEPS]
    for name in world.random.choices(STEPS, weights, k=MOVES_EACH):
        try:
            getattr(world, name)()
        except (GradingError, Nobody):
            pass  # said no, in words; anything else fails the test
        for group in RolloutGroup.objects.filter(run=world.run):
            check_story(group)
    world.come_to_rest()
    check_rows(world.run)
    check_paid(world.run)
    epoch = Stream.objects.get(run=world.run).epoch
    for group in RolloutGroup.objects.filter(run=world.run):
        check_story(group)
        assert group.state == GroupState.DELIVERED, (group.key, group.state)
        assert Delivery.objects.filter(group=group).order_by("-epoch", "-version").first().version == group.version
        current = Delivery.objects.filter(group=group, epoch=epoch).values_list("version", flat=True)
        assert len(set(current)) == len(current)
