"""Errors of the tiny job; each names the boundary that broke."""


class TinyJobError(Exception):
    """Base of every error of the tiny job."""


class BrokenTask(TinyJobError):
    """A task file does not say what a task needs."""


class HarnessFailure(TinyJobError):
    """The test harness failed for a reason outside the candidate: the rollout is infra_invalid."""


class WrongCheckpoint(TinyJobError):
    """A checkpoint belongs to another job, or cannot be read."""
