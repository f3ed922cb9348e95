"""The states of a group and the one table of moves between them (architecture: States and decisions)."""

from django.db import models


class GroupState(models.TextChoices):
    COLLECTING = "collecting"
    COMPLETE = "complete"
    GRADING = "grading"
    GRADED = "graded"
    UNGRADED = "ungraded"
    DECIDED = "decided"
    DELIVERED = "delivered"


class EndReason(models.TextChoices):
    FILTERED_ALL_PASSED = "filtered_all_passed"
    FILTERED_ALL_FAILED = "filtered_all_failed"
    EXCLUDED_BROKEN_EVALUATION = "excluded_broken_evaluation"
    EXCLUDED_NO_VALID_TRAJECTORY = "excluded_no_valid_trajectory"
    EXCLUDED_BAD_REWARD = "excluded_bad_reward"
    ABANDONED = "abandoned"


S = GroupState
MOVES: dict[GroupState, frozenset[GroupState]] = {
    S.COLLECTING: frozenset({S.COMPLETE, S.DECIDED}),
    S.COMPLETE: frozenset({S.GRADING, S.DECIDED}),
    S.GRADING: frozenset({S.COMPLETE, S.GRADED, S.UNGRADED, S.DECIDED}),
    S.GRADED: frozenset({S.GRADING, S.DECIDED}),
    S.UNGRADED: frozenset({S.GRADING, S.DECIDED}),
    # decided -> decided is a correction: a new version. -> grading: a confirmed hack re-opened a filtered group.
    S.DECIDED: frozenset({S.DELIVERED, S.DECIDED, S.GRADING}),
    S.DELIVERED: frozenset({S.DECIDED, S.GRADING}),
}
OPEN = frozenset({S.COLLECTING, S.COMPLETE, S.GRADING, S.GRADED, S.UNGRADED})
AWAITING_REVIEW = frozenset({S.GRADED, S.UNGRADED})
ENDED = frozenset({S.DECIDED, S.DELIVERED})
FILTERED = frozenset({EndReason.FILTERED_ALL_PASSED, EndReason.FILTERED_ALL_FAILED})


class Outcome(models.TextChoices):
    PASSED = "passed"
    FAILED = "failed"
    INFRA_INVALID = "infra_invalid"


class Integrity(models.TextChoices):
    """Confirmed findings only: a flag with a resolving citation, by the grader or a person."""

    LEAK = "leak"
    HACK = "hack"


class Method(models.TextChoices):
    REDISTRIBUTE = "redistribute"
    OUTCOME = "outcome"
    DOWNWEIGHT_ONLY = "downweight_only"
    REWARD_DISCOUNT = "reward_discount"
    ADDITIVE_RUBRIC = "additive_rubric"  # our reading of PAPO: a standardised rubric term is added
    REDISTRIBUTE_SHUFFLED = "redistribute_shuffled"  # controls of an ablation: the factors on the wrong passes
    REDISTRIBUTE_INVERTED = "redistribute_inverted"


class Policy(models.TextChoices):
    """When a valid verdict counts: never (outcome advantages go out), at once, unless drawn, when a person says so."""

    SHADOW = "shadow"
    AUTO = "auto"
    SAMPLED = "sampled"
    MANUAL = "manual"


class DecisionKind(models.TextChoices):
    VERDICT = "verdict"
    FALLBACK = "fallback"
    BASELINE = "baseline"
    INELIGIBLE = "ineligible"
    FILTERED = "filtered"
    EXCLUDED = "excluded"
    ABANDONED = "abandoned"


class Purpose(models.TextChoices):
    """Only the first training verdict of a group can decide by itself."""

    TRAINING = "training"
    AUDIT = "audit"
    ANCHOR = "anchor"
    EXTRA = "extra"
