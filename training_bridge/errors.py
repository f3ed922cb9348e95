"""What the bridge refuses. The base carries status, what, got, expected."""

from grading.errors import GradingError


class BridgeError(GradingError):
    """Base of the bridge's own errors."""


class NoStream(BridgeError):
    """Imported runs have no job that waits, so no stream."""


class OutOfOrder(BridgeError):
    """A numbered message that does not follow the last one stored."""
