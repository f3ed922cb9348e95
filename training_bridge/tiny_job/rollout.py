"""Rolls a batch of rollouts out in step, turn by turn, and has each one judged."""

import time
from dataclasses import asdict, dataclass

import torch

from training_bridge.tiny_job.catalog import Task
from training_bridge.tiny_job.judge import Judgement, judge
from training_bridge.tiny_job.language import SLOT_VERBS
from training_bridge.tiny_job.policy import Policy
from training_bridge.tiny_job.runner import Runner
from training_bridge.tiny_job.session import Session

TURN_CAP = 12


@dataclass(frozen=True)
class Rollout:
    """A finished rollout, plain enough for a checkpoint.

    Args:
        external_id: its id at the server.
        tokens: ids, the task first.
        log_probs: of each token when it was written; 0 for tokens of the environment.
        outcome: "passed", "failed" or "infra_invalid".
        truncated: whether the cap cut it off.
        patch: git-style diff.
        tests: {name, status, message} of the deciding tests.
        log: what the deciding tests printed.
        events: what was done and seen.
        turns: number of turns.
        duration_s: seconds by the wall, shared evenly by the batch.
    """

    external_id: str
    tokens: list[int]
    log_probs: list[float]
    outcome: str
    truncated: bool
    patch: bytes
    tests: list[dict]
    log: str
    events: list[dict]
    turns: int
    duration_s: float

    def plain(self) -> dict:
        """Return the fields as a dictionary."""
        return asdict(self)


class _Row:
    """A rollout while it is being written."""

    def __init__(self, policy: Policy, session: Session) -> None:
        self.session = session
        self.tokens = [policy.language.prompt(session.task)]
        self.log_probs = [0.0]

    def write(self, token: int, log_prob: float) -> None:
        self.tokens.append(token)
        self.log_probs.append(log_prob)

    def finish(self, name: str, judgement: Judgement, duration_s: float) -> Rollout:
        return Rollout(
            external_id=name,
            tokens=self.tokens,
            log_probs=self.log_probs,
            outcome=judgement.outcome,
            truncated=self.session.truncated,
            patch=self.session.patch(),
            tests=judgement.tests,
            log=judgement.log,
            events=self.session.events,
            turns=self.session.turns,
            duration_s=duration_s,
        )


@torch.no_grad()
def roll_out(
    policy: Policy,
    tasks: list[Task],
    names: list[str],
    runner: Runner,
    *,
    generator: torch.Generator,
    turn_cap: int = TURN_CAP,
) -> list[Rollout]:
    """Write one rollout for each entry of a list of tasks.

    Args:
        policy: writes.
        tasks: one entry a rollout.
        names: external id of each rollout.
        runner: executes tests.
        generator: source of the samples.
        turn_cap: turns after which a rollout is cut off.
    Returns:
        The judged rollouts, in the order given.
    """
    started = time.monotonic()
    rows = [_Row(policy, Session(task, runner, turn_cap)) for task in tasks]
    pen = _Pen(policy, generator)
    outputs_BH, state_1BH = pen.start(rows)
    active = list(range(len(rows)))
    while active:
        outputs_BH, state_1BH = pen.take_turn(rows, active, outputs_BH, state_1BH)
        active = [number for number in active if not rows[number].session.done]
    judged = [judge_session(row.session, runner) for row in rows]
    duration_s = round((time.monotonic() - started) / max(1, len(rows)), 4)
    return [row.finish(*given, duration_s) for row, *given in zip(rows, names, judged, strict=True)]


def judge_session(session: Session, runner: Runner) -> Judgement:
    """Judge what a session left; a session the harness let down is infra_invalid."""
    if session.harness_error is not None:
        return Judgement("infra_invalid", [], session.harness_error)
    return judge(session.task, session.tree, runner)


class _Pen:
    """Samples tokens for the active rows and keeps their hidden states."""

    def __init__(self, policy: Policy, generator: torch.Generator) -> None:
        self.policy = policy
        self.generator = generator

    def start(self, rows: list[_Row]) -> tuple[torch.Tensor, torch.Tensor]:
        prompts_B1 = torch.tensor([row.tokens for row in rows], device=self.policy.head.weight.device)
        outputs_B1H, state_1BH = self.policy.read(prompts_B1)
        return outputs_B1H[:, -1].clone(), state_1BH.clone()

    def take_turn(
        self, rows: list[_Row], active: list[int], outputs_BH: torch.Tensor, state_1BH: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        language = self.policy.language
        chosen = dict(zip(active, self._sample(rows, active, outputs_BH, None), strict=True))
        verbs = {number: language.tokens[token] for number, token in chosen.items()}
        outputs_BH, state_1BH = self._feed(chosen, outputs_BH, state_1BH)
        waiting = [number for number in active if verbs[number] in SLOT_VERBS]
        slots = dict.fromkeys(active, 0)
        if waiting:
            picked = dict(zip(waiting, self._sample(rows, waiting, outputs_BH, verbs), strict=True))
            slots |= {number: int(language.tokens[token].removeprefix("slot ")) for number, token in picked.items()}
            outputs_BH, state_1BH = self._feed(picked, outputs_BH, state_1BH)
        seen = {}
        for number in active:
            observation = rows[number].session.act(verbs[number], slots[number])
            if observation is not None:
                seen[number] = language.ids[observation]
                rows[number].write(seen[number], 0.0)
        return self._feed(seen, outputs_BH, state_1BH) if seen else (outputs_BH, state_1BH)

    def _sample(
        self, rows: list[_Row], numbers: list[int], outputs_BH: torch.Tensor, verbs: dict[int, str] | None
    ) -> list[int]:
        keys = [(rows[number].session.task.key, verbs[number] if verbs else None) for number in numbers]
        contexts = torch.tensor([self.policy.context_id[key] for key in keys], device=outputs_BH.device)
        log_probs = self.policy.log_probs(outputs_BH[numbers], contexts)
        tokens = torch.multinomial(log_probs.exp(), 1, generator=self.generator)
        taken = log_probs.gather(-1, tokens)
        for number, token, log_prob in zip(numbers, tokens[:, 0].tolist(), taken[:, 0].tolist(), strict=True):
            rows[number].write(token, log_prob)
        return tokens[:, 0].tolist()

    def _feed(
        self, tokens: dict[int, int], outputs_BH: torch.Tensor, state_1BH: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        numbers = list(tokens)
        tokens_B1 = torch.tensor([[tokens[number]] for number in numbers], device=outputs_BH.device)
        outputs_B1H, new_state_1BH = self.policy.read(tokens_B1, state_1BH[:, numbers].contiguous())
        outputs_BH[numbers] = outputs_B1H[:, 0]
        state_1BH[:, numbers] = new_state_1BH
        return outputs_BH, state_1BH
