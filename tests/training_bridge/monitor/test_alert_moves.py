"""Fires late enough to be real, ends late enough to stay ended; a boundary rings once."""

import random

import pytest

from training_bridge.monitor.alert_moves import BY_CLOCK, BY_STEP, FIRE, RESOLVE, advance
from training_bridge.monitor.alert_signs import SIGNS
from training_bridge.monitor.alert_values import is_bad, is_over


def moves_of(sign, values, pace=BY_STEP) -> list[tuple[int, str]]:
    """Which moves a series of values makes, and where."""
    memory, is_open, made = {}, False, []
    for at, value in enumerate(values):
        told = {"is_bad": is_bad(sign, sign.rule, value), "is_over": is_over(sign, sign.rule, value)}
        memory, move = advance(memory, at=at, is_open=is_open, pace=pace, **told)
        if move:
            is_open = move == FIRE
            made.append((at, move))
    return made


FALLBACK = SIGNS["fallback_share"]  # threshold 0.25, over at 0.20


def test_the_second_bad_step_fires_and_the_third_good_one_ends_it():
    assert moves_of(FALLBACK, [0.1, 0.3, 0.1, 0.3, 0.3, 0.1, 0.1, 0.1]) == [(4, FIRE), (7, RESOLVE)]


def test_between_threshold_and_band_nothing_changes():
    assert moves_of(FALLBACK, [0.22] * 20) == []
    assert moves_of(FALLBACK, [0.3, 0.3] + [0.22] * 20) == [(1, FIRE)]


def test_what_ends_stays_quiet_for_a_while_and_is_not_forgotten():
    ends_at = 4
    got = moves_of(FALLBACK, [0.3, 0.3, 0.1, 0.1, 0.1] + [0.3] * 20)
    assert got == [(1, FIRE), (ends_at, RESOLVE), (ends_at + BY_STEP.mute, FIRE)]


def test_low_is_bad_for_credit():
    credit = SIGNS["credit_kept"]  # threshold 0.75, over above 0.795
    assert moves_of(credit, [0.9, 0.7, 0.7, 0.78, 0.78, 0.78, 0.8, 0.8, 0.8]) == [(2, FIRE), (8, RESOLVE)]


@pytest.mark.parametrize("sign", [sign for sign in SIGNS.values() if sign.rule.threshold], ids=lambda sign: sign.key)
@pytest.mark.parametrize("pace", [BY_STEP, BY_CLOCK], ids=["steps", "seconds"])
def test_noise_at_the_boundary_rings_once(sign, pace):
    """Whatever the noise does inside the band, a thousand values fire at most once and never end."""
    draw = random.Random(sign.key)
    band = sign.band * sign.rule.threshold
    for _ in range(20):
        noisy = [sign.rule.threshold + draw.uniform(-0.95, 0.95) * band for _ in range(1000)]
        assert [move for _, move in moves_of(sign, noisy, pace)] in ([], [FIRE])


def test_noise_beyond_the_band_rings_no_oftener_than_the_pace_allows():
    draw = random.Random(7)
    moves = moves_of(FALLBACK, [draw.uniform(0, 0.5) for _ in range(20_000)])
    fired = [at for at, move in moves if move == FIRE]
    shortest = BY_STEP.calm + BY_STEP.mute
    assert len(fired) > 100 and all(b - a >= shortest for a, b in zip(fired, fired[1:], strict=False))


def test_a_job_that_goes_back_to_a_checkpoint_is_not_muted_for_ever():
    memory, fired = {"muted_to": 500}, []
    for at in range(20, 40):
        memory, move = advance(memory, at=at, is_bad=True, is_over=False, is_open=False, pace=BY_STEP)
        fired += [at] if move == FIRE else []
    assert fired[0] == 20 + BY_STEP.mute
