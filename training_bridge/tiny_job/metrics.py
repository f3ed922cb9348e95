"""What one step reports: pure functions over rollouts and frozen sets."""

from collections import Counter

from training_bridge.client.sets import AdvantageSet
from training_bridge.tiny_job.language import Language
from training_bridge.tiny_job.rollout import Rollout
from training_bridge.tiny_job.trainer import Row


def response_length(language: Language, rollout: Rollout) -> int:
    """Return the number of tokens the model wrote."""
    return sum(language.is_response(token) for token in rollout.tokens)


def rollout_metrics(language: Language, rollouts: list[Rollout]) -> dict[str, float]:
    """Describe the rollouts of a step.

    Args:
        language: of their tokens.
        rollouts: at least one.
    Returns:
        pass_rate over the valid ones (0 if none is), means of turns and tokens, shares of truncated and invalid ones.
    """
    total = len(rollouts)
    valid = [rollout for rollout in rollouts if rollout.outcome != "infra_invalid"]
    return {
        "pass_rate": sum(rollout.outcome == "passed" for rollout in valid) / max(1, len(valid)),
        "turns": sum(rollout.turns for rollout in rollouts) / total,
        "tokens": sum(len(rollout.tokens) for rollout in rollouts) / total,
        "response_tokens": sum(response_length(language, rollout) for rollout in rollouts) / total,
        "truncated_share": sum(rollout.truncated for rollout in rollouts) / total,
        "invalid_share": (total - len(valid)) / total,
    }


def balance(language: Language, rows: list[Row]) -> float:
    """Return the token-weighted mean advantage, sum A len / sum len: what a token-mean loss sees."""
    lengths = [response_length(language, row.rollout) for row in rows]
    return sum(row.advantage * length for row, length in zip(rows, lengths, strict=True)) / sum(lengths)


def credit_metrics(sets: list[AdvantageSet]) -> dict[str, float]:
    """Compare the advantages that train with the outcome advantages they come from.

    Args:
        sets: frozen for a step.
    Returns:
        credit_kept = sum over passes of A_train / S+ and penalty_kept, the same for failures, over all groups that
        train; deficit, the credit per group that nobody got, S+ - sum over passes of A_train. Empty if none trains.
    """
    credit = given = penalty = taken = 0.0
    trained = [chosen for chosen in sets if chosen.train]
    for chosen in trained:
        valid = [name for name, outcome in chosen.outcome.items() if outcome != "infra_invalid"]
        mean = sum(chosen.outcome[name] == "passed" for name in valid) / max(1, len(valid))
        for name in valid:
            if chosen.outcome[name] == "passed":
                given, credit = given + 1 - mean, credit + chosen.advantage[name]
            else:
                taken, penalty = taken - mean, penalty + chosen.advantage[name]
    if not given or not taken:
        return {}
    return {
        "credit_kept": credit / given,
        "penalty_kept": penalty / taken,
        "deficit": (given - credit) / len(trained),
    }


def is_other_method(advantages: str, sets: list[AdvantageSet]) -> bool:
    """Return whether a decided set shows that the run has another method than the job was told."""
    decided = {chosen.regime for chosen in sets if chosen.version > 0}
    return bool(decided & ({"baseline"} if advantages == "redistribute" else {"exact", "bounded", "clipped"}))


def regimes(sets: list[AdvantageSet]) -> dict[str, int]:
    """Count the sets by regime, the most frequent first."""
    return dict(Counter(chosen.regime for chosen in sets).most_common())
