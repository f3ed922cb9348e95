"""The fidelity probe: are the advantages inside the trainer's loss the ones that were delivered? Core.

Every trainer has settings that silently change them. A mismatch stops the job and names the likely setting.
"""

from collections.abc import Iterator, Sequence

import numpy as np

TOLERANCE = 1e-5  # float32 rewards of the size of 1, centred in float32
SHOWN = 4


class FidelityError(RuntimeError):
    """The trainer trains on other advantages than were decided. Training on would waste the run."""


def check(
    expected_G: Sequence[float], got_G: Sequence[float], *, group: str, trainer: str, tolerance: float = TOLERANCE
) -> float:
    """Compare one group's advantages with those that the trainer is about to use.

    Args:
        expected_G: (G,) decided advantages, reward units; 0 for invalid rollouts.
        got_G: (G,) what stands in the trainer's batch, same order.
        group: its key, for the message.
        trainer: its name and the setting that should be looked at, for the message.
        tolerance: largest difference that float32 explains.
    Returns:
        The largest difference.
    Raises:
        FidelityError: a difference above the tolerance, or NaN; the message says what the numbers look like.
    """
    expected, got = np.asarray(expected_G, dtype=float), np.asarray(got_G, dtype=float)
    if expected.shape != got.shape:
        raise FidelityError(
            f"group {group}: {trainer} trains on {got.size} rollouts, expected {expected.size}: "
            "it dropped or added some after they were submitted"
        )
    worst = float(np.max(np.abs(expected - got), initial=0.0))
    if worst <= tolerance:  # a NaN is not
        return worst
    raise FidelityError(
        f"group {group}: {trainer} trains on other advantages, off by up to {worst:.3g}: "
        f"got {_said(got)}, expected {_said(expected)}. {likely_cause(expected, got, tolerance)}"
    )


def likely_cause(expected_G: np.ndarray, got_G: np.ndarray, tolerance: float = TOLERANCE) -> str:
    """Say which known way of changing advantages explains the difference.

    Args:
        expected_G, got_G: (G,) as in `check`.
        tolerance: as in `check`, relative to the size of the numbers.
    Returns:
        One sentence; an honest one where nothing known fits.
    """
    if not np.isfinite(got_G).all():
        return "There are NaN or infinite values: a reward was lost on its way."
    for words, guess_G in _guesses(expected_G, got_G):
        if np.allclose(guess_G, got_G, rtol=2e-3, atol=max(tolerance, 1e-6)):
            return words
    return "No known setting explains it: look at what happens between the reward and the loss."


def _guesses(expected_G: np.ndarray, got_G: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    valid_G = expected_G[expected_G != 0.0]
    n = len(expected_G)
    yield "They are all zero: the trainer filtered or masked the group.", np.zeros(n)
    if np.allclose(np.sort(expected_G), np.sort(got_G), atol=1e-4):
        yield "They are the right numbers in another order: rows were shuffled or mapped by position.", got_G
    for ddof in (1, 0):
        if n > ddof and (std := expected_G.std(ddof=ddof)) > 0:
            words = "It looks like a division by the group's standard deviation: switch the scaling of rewards off."
            yield words, expected_G / (std + 1e-4)
            yield words, expected_G / (std + 1e-6)
    for many in {n, len(valid_G)} - {0, 1}:
        words = "It looks like a leave-one-out baseline: the mean must be over all rollouts of the group."
        yield words, expected_G * many / (many - 1)
    most = np.abs(got_G).max()
    yield (
        f"It looks like clipping at {most:.4g}: switch the clipping of rewards or advantages off.",
        np.clip(expected_G, -most, most),
    )
    shift = got_G - expected_G
    if np.allclose(shift, shift.mean(), atol=1e-4):
        words = f"They are all shifted by {shift.mean():.4g}: the baseline is not the mean of this group."
        yield words, expected_G + shift.mean()
    size = float(expected_G @ expected_G)
    if size > 0 and (scale := float(got_G @ expected_G) / size) != 0:
        words = f"They are all multiplied by {scale:.4g}: a normalisation over the batch, or a reward weight."
        yield words, expected_G * scale


def _said(values_G: np.ndarray) -> str:
    shown = ", ".join(f"{value:+.4f}" for value in values_G[:SHOWN])
    return f"[{shown}{', …' if len(values_G) > SHOWN else ''}]"
