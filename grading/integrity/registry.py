"""All detectors by name. A detector is a function over (candidate, patch, events, log) that yields signals. Core."""

from collections.abc import Mapping

from grading.integrity.h1_tests import edited_tests
from grading.integrity.h2_harness import steered_tests
from grading.integrity.h8_peeking import peeking
from grading.integrity.signals import Detector, Events, Signal
from grading.review.diffs.patch import Patch

DETECTORS: Mapping[str, Detector] = {"H1": edited_tests, "H2": steered_tests, "H8": peeking}
SIGNALS_KEPT = 50  # of one detector and candidate: the strong ones first


def detect(candidate: str, patch: Patch, events: Events = (), log: bytes = b"") -> list[Signal]:
    """Run every detector over one rollout.

    Args:
        candidate: its id.
        patch: its patch, parsed.
        events: its events in order, in our smaller shape or as ATIF steps; may be walked several times.
        log: its test log as it was stored.
    Returns:
        Signals by detector, strong ones first; at most `SIGNALS_KEPT` of each.
    """
    found: list[Signal] = []
    for detector in DETECTORS.values():
        signals = sorted(detector(candidate, patch, events, log), key=lambda signal: signal.strength != "strong")
        found += signals[:SIGNALS_KEPT]
    return found
