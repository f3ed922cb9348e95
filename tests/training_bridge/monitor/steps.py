"""Settled steps of a run by the dozen: groups, rollouts, payouts and verdicts as rows, without walking each group."""

import hashlib

from grading.models import RolloutGroup, Run, Trajectory, Verdict, VerdictCandidate
from grading.states import GroupState, Outcome
from tests.factories import make_life, make_task
from training_bridge import payouts
from training_bridge.models import Payout, Receipt
from training_bridge.monitor import store
from training_bridge.redistribution import regimes

VALID = 64  # rollouts that a payout stands for: more than there are rows, as a step of a real run has


class Steps:
    """Appends steps to a run. Every keyword of `add` names what a step differs in from a healthy one."""

    def __init__(self, run: Run, *, groups: int = 3, size: int = 8):
        self.run, self.groups, self.size, self.step, self.n = run, groups, size, -1, 0
        self.points = []
        self.life = run.lives.order_by("-n").first() or make_life(run=run)
        self.task = make_task(team=run.team)

    def add(self, times: int = 1, **said) -> int:
        """So many steps alike. Returns the last one's number."""
        for _ in range(times):
            self.step += 1
            self._add(**said)
        store.add(self.run.pk, self.points)
        self.points = []
        return self.step

    def _add(
        self, *, passes=0.5, invalid=0.0, truncated=0.0, entropy=0.4, length=100.0, fallback=0.0, reason="deadline",
        bounded=0.25, kept=0.95, balance=0.0, tiers=None, ties=0, receipts=(), inverted=0, refused=0, **metrics,
    ):  # fmt: skip
        rows = RolloutGroup.objects.bulk_create(
            RolloutGroup(
                run=self.run, life=self.life, key=f"{self.step}/{i}", task=self.task, step=self.step,
                group_size=self.size, state=GroupState.DELIVERED,
            )
            for i in range(self.groups)
        )  # fmt: skip
        total = self.groups * self.size
        self._rollouts(rows, n_pass=round(passes * total), n_bad=round(invalid * total), n_cut=round(truncated * total))
        for i, group in enumerate(rows):
            share = (i + 0.5) / self.groups
            regime = regimes.FALLBACK if share < fallback else regimes.BOUNDED if share > 1 - bounded else regimes.EXACT
            self._pay(
                group, regime, reason if regime == regimes.FALLBACK else "", passes=round(passes * VALID),
                kept=kept, weighted=balance * 100, is_inverted=i < inverted, is_refused=i < refused,
            )  # fmt: skip
        if tiers:
            self._rank(rows[0], tiers, ties)
        self.metrics(self.step, entropy=entropy, response_tokens=length, **metrics)
        for group, status in zip(rows, receipts, strict=False):
            self.n += 1
            said = {"run": self.run, "life": self.life, "n": self.n, "group": group, "version": 1}
            Receipt.objects.create(**said, status=status, step=self.step)

    def metrics(self, step: int, **values) -> None:
        """What the job reports; a word stands for a number that is none."""
        pk = self.run.pk
        self.points += [store.point(name, step, value, run=pk) for name, value in values.items() if value is not None]

    def _rollouts(self, groups, *, n_pass: int, n_bad: int, n_cut: int) -> None:
        letters = [Outcome.PASSED] * n_pass + [Outcome.INFRA_INVALID] * n_bad
        letters += [Outcome.FAILED] * (len(groups) * self.size - len(letters))
        Trajectory.objects.bulk_create(
            Trajectory(
                group=groups[i % len(groups)], run=self.run, life=self.life, external_id=f"{self.step}/{i}",
                outcome=outcome, is_truncated=i >= len(letters) - n_cut,
                content_digest=hashlib.sha256(b"%d" % i).hexdigest(),
            )
            for i, outcome in enumerate(letters)
        )  # fmt: skip

    def _pay(self, group, regime, reason, *, passes, kept, weighted, is_inverted, is_refused) -> None:
        payout = Payout(
            group=group, run=self.run, step=self.step, version=1, regime=regime,
            reason="numbers_refused" if is_refused else reason, is_inverted=is_inverted, valid=VALID,
            passes=passes, credit_due=2.0, credit_paid=2.0 * kept, penalty_due=2.0, penalty_paid=2.0,
            advantage_tokens=weighted, tokens=100.0, declared_at=group.created_at, decided_at=group.created_at,
        )  # fmt: skip
        payouts.store([payout])

    def _rank(self, group, tiers, ties: int) -> None:
        """One verdict that puts so many passes into each tier; the first `ties` of a tier share a rank."""
        verdict = Verdict.objects.create(
            group=group, grader="scripted", rubric=self.run.rubric, is_valid=True, reply={}, ranking={}
        )
        ranked = [(tier, k) for tier, n in zip((1, 2, 3), tiers, strict=True) for k in range(n)]
        made = Trajectory.objects.bulk_create(
            Trajectory(
                group=group, run=self.run, life=self.life, external_id=f"{self.step}/ranked/{i}", is_late=True,
                outcome=Outcome.PASSED, content_digest="0" * 64,
            )
            for i in range(len(ranked))
        )  # fmt: skip
        VerdictCandidate.objects.bulk_create(
            VerdictCandidate(
                verdict=verdict, trajectory=row, scores={}, weighted_score=4, tier=tier, rank=max(0, k - ties + 1),
                factor=1.0,
            )
            for row, (tier, k) in zip(made, ranked, strict=True)
        )  # fmt: skip
