"""Warms the policy up on scripted rollouts of mixed quality, as the paper starts from a fine-tuned checkpoint."""

import random

import torch

from training_bridge.tiny_job import edits
from training_bridge.tiny_job.catalog import Task
from training_bridge.tiny_job.language import SLOT_VERBS, Language
from training_bridge.tiny_job.policy import Policy
from training_bridge.tiny_job.rollout import TURN_CAP
from training_bridge.tiny_job.runner import Runner
from training_bridge.tiny_job.sequences import Sequences, pad
from training_bridge.tiny_job.session import Session

# How often the script tries which kind of edit. Chosen so that the warmed-up policy passes 0.3 to 0.6 of the time.
MIXTURE = {"fix": 0.33, "partial": 0.25, "break": 0.14, "rewrite": 0.07, "special": 0.07, "test": 0.07, "paste": 0.07}


def demonstrate(task: Task, language: Language, runner: Runner, rng: random.Random) -> list[int]:
    """Write one scripted rollout.

    Args:
        task: what is worked on.
        language: of the tokens.
        runner: executes the tests the script asks for.
        rng: source of the choices.
    Returns:
        Token ids, the task first.
    """
    session = Session(task, runner, TURN_CAP)
    tokens = [language.prompt(task)]

    def do(verb: str, slot: int = 0) -> str | None:
        observation = session.act(verb, slot)
        tokens.append(language.ids[verb])
        if verb in SLOT_VERBS:
            tokens.append(language.ids[f"slot {slot}"])
        if observation is not None:
            tokens.append(language.ids[observation])
        return observation

    if rng.random() < 0.6:
        do("open")
    if rng.random() < 0.3:
        do("run")
    for _ in range(3):
        verb, slot = _pick(task, rng)
        if verb == "paste":
            do("peek")
        observation = do(verb, slot)
        if rng.random() < 0.3:
            do("tidy", rng.randrange(language.slots[task.key, "tidy"]))
        if observation == "edited" and (rng.random() < 0.4 or do("run") == "tests_pass" or rng.random() < 0.4):
            break
    do("submit")
    return tokens


def warm_up(
    policy: Policy,
    tasks: dict[str, Task],
    runner: Runner,
    *,
    seed: int,
    demonstrations: int = 48,
    epochs: int = 24,
    batch: int = 96,
) -> float:
    """Fit the policy to scripted rollouts.

    Args:
        policy: is changed in place.
        tasks: all of them are demonstrated.
        runner: executes the tests of the script.
        seed: of the script and of the order.
        demonstrations: number for each task.
        epochs: number of passes over them.
        batch: sequences in one step.
    Returns:
        The mean negative log likelihood of a response token in the last pass, nats.
    """
    rng = random.Random(seed)
    script = [demonstrate(task, policy.language, runner, rng) for task in tasks.values() for _ in range(demonstrations)]
    optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
    mean = 0.0
    for _ in range(epochs):
        rng.shuffle(script)
        losses = [
            _imitate(policy, optimizer, pad(policy, script[start : start + batch]))
            for start in range(0, len(script), batch)
        ]
        mean = sum(losses) / len(losses)
    return mean


def _imitate(policy: Policy, optimizer: torch.optim.Optimizer, sequences: Sequences) -> float:
    log_probs_BT, _ = policy.score(sequences.tokens_BT, sequences.contexts_BT)
    loss = -(log_probs_BT * sequences.mask_BT).sum() / sequences.mask_BT.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def _pick(task: Task, rng: random.Random) -> tuple[str, int]:
    kind = rng.choices(list(MIXTURE), list(MIXTURE.values()))[0]
    verb = edits.VERB_OF[kind]
    fitting = [slot for slot, edit in enumerate(edits.vocabulary(task)[verb]) if edit.kind == kind]
    return verb, rng.choice(fitting)
