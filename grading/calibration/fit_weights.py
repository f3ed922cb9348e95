"""Weights from people's orders: pairwise logistic on the simplex, ties by Davidson, shrunk to those in force. Core.

P(a before b) = e^(s/2) / Z, P(tie) = nu / Z, Z = e^(s/2) + e^(-s/2) + nu, s = beta w.(scores a - scores b).
With u = beta w >= 0 the likelihood is concave in u; then beta = sum u, w = u / beta.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import scipy

NOTHING = 1e-6  # beta: below it the scores say nothing about the order
PRIOR_SD = 0.15  # of each weight around the version in force; 0.15 is worth about 40 pairs
FLAT = 1e-3  # ridge on u while no version pulls: separable pairs stay finite
OFFSET_SD = 0.5  # of a reviewer's log sharpness and log readiness to tie
REVIEWERS = 3  # from so many on each has offsets of their own
RESAMPLES = 2000


@dataclass(frozen=True)
class PairData:
    """Pairs of candidates that one person ordered.

    difference_PC: (P, C) float, points; scores of a less those of b. first_P: (P,) float: 1 a stands first, 0 b, 1/2
    tied. group_P, reviewer_P: (P,) int, of any numbering.
    """

    difference_PC: np.ndarray
    first_P: np.ndarray
    group_P: np.ndarray
    reviewer_P: np.ndarray


@dataclass(frozen=True)
class Weights:
    """weights_C: (C,) on the simplex, None where not identified. beta: 1/points. nu: readiness to tie.

    sharpness, tying: reviewer -> factor on beta and on nu; empty below three reviewers.
    """

    weights_C: np.ndarray | None
    beta: float
    nu: float
    nll: float
    sharpness: dict[int, float]
    tying: dict[int, float]


def fit(pairs: PairData, base_C: np.ndarray | None = None, *, times_P: np.ndarray | None = None) -> Weights:
    """Fit once.

    Args:
        pairs: at least one.
        base_C: (C,) weights in force, toward which w is shrunk; None: no shrinking and no ridge.
        times_P: (P,) how often each pair counts; None: once.
    Returns:
        The fit. Scores that go against every order: beta 0, weights None.
    """
    times_P = np.ones(len(pairs.first_P)) if times_P is None else times_P
    free = _minimised(pairs, times_P, centre_C=None, precision=FLAT if base_C is not None else 0.0)
    if base_C is None or free.beta < NOTHING:
        return free
    return _minimised(pairs, times_P, centre_C=free.beta * base_C, precision=1 / (free.beta * PRIOR_SD) ** 2)


def _minimised(pairs: PairData, times_P: np.ndarray, *, centre_C, precision: float) -> Weights:
    n_weights = pairs.difference_PC.shape[1]
    centre_C = np.zeros(n_weights) if centre_C is None else centre_C
    names, reviewer_P = np.unique(pairs.reviewer_P, return_inverse=True)
    own = len(names) if len(names) >= REVIEWERS else 0
    has_ties = bool((pairs.first_P == 0.5).any())

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        u_C, offsets = x[:n_weights], x[n_weights + 1 :]
        log_nu = x[n_weights] if has_ties else None
        value, slope = _likelihood(pairs, u_C, log_nu, offsets=offsets, reviewer_P=reviewer_P, times_P=times_P)
        value += precision / 2 * ((u_C - centre_C) ** 2).sum() + (offsets**2).sum() / (2 * OFFSET_SD**2)
        slope[:n_weights] += precision * (u_C - centre_C)
        slope[n_weights + 1 :] += offsets / OFFSET_SD**2
        return value, slope

    start = np.concatenate([np.maximum(centre_C, 0.1), np.zeros(1 + 2 * own)])
    bounds = [(0, 50)] * n_weights + [(-10, 5) if has_ties else (0, 0)] + [(-3, 3)] * (2 * own)
    found = scipy.optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-11, "gtol": 1e-7}
    )
    u_C, offsets = found.x[:n_weights], np.exp(found.x[n_weights + 1 :]).tolist()
    beta, names = float(u_C.sum()), names.tolist()[:own]
    return Weights(
        weights_C=u_C / beta if beta >= NOTHING else None,
        beta=beta if beta >= NOTHING else 0.0,
        nu=float(np.exp(found.x[n_weights])) if has_ties else 0.0,
        nll=float(found.fun),
        sharpness=dict(zip(names, offsets[:own], strict=True)),
        tying=dict(zip(names, offsets[own:], strict=True)),
    )


def _likelihood(
    pairs: PairData, u_C: np.ndarray, log_nu: float | None, *, offsets, reviewer_P, times_P
) -> tuple[float, np.ndarray]:
    """The negative log likelihood, and its slope by u, log nu, each reviewer's log sharpness and log tying."""
    own = len(offsets) // 2
    sharp_P, tying_P = (offsets[:own][reviewer_P], offsets[own:][reviewer_P]) if own else (0.0, 0.0)
    s_P = np.clip(np.exp(sharp_P) * np.einsum("pc,c->p", pairs.difference_PC, u_C), -60, 60)
    nu_P = 0.0 if log_nu is None else np.exp(log_nu + tying_P)
    up_P, down_P, is_tie_P = np.exp(s_P / 2), np.exp(-s_P / 2), pairs.first_P == 0.5
    z_P = up_P + down_P + nu_P
    tied_P = 0.0 if log_nu is None else log_nu + tying_P
    said_P = np.where(is_tie_P, tied_P, (pairs.first_P - 0.5) * s_P) - np.log(z_P)
    by_s_P = times_P * (pairs.first_P - 0.5 - (up_P - down_P) / (2 * z_P))
    by_nu_P = np.zeros(len(s_P)) if log_nu is None else times_P * (is_tie_P - nu_P / z_P)
    by_u_C = np.einsum("pc,p->c", pairs.difference_PC, np.exp(sharp_P) * by_s_P)  # no BLAS: its threads cost more
    by_offset = [np.bincount(reviewer_P, by_P, own) for by_P in (by_s_P * s_P, by_nu_P)] if own else []
    return -(times_P * said_P).sum(), -np.concatenate([by_u_C, [by_nu_P.sum()], *by_offset])


def intervals(
    pairs: PairData, base_C: np.ndarray, made: Weights, *, resamples: int = RESAMPLES, seed: int = 0
) -> list[tuple[float, float]] | None:
    """95 % interval of each weight: whole groups drawn again, each draw fitted by one Newton step from the fit.

    Args:
        pairs, base_C: what the fit was made of.
        made: the fit, with weights.
    Returns:
        (low, high) by criterion, at the levels that t asks for with few groups; None for fewer than two groups, or
        where more than a tenth of the draws identify no weights.
    """
    names, group_P = np.unique(pairs.group_P, return_inverse=True)
    if len(names) < 2 or made.weights_C is None:
        return None
    u_C, n = made.beta * made.weights_C, len(base_C)
    slope_GX, curve_GXX = _by_group(pairs, made, u_C, group_P, len(names))
    precision = 1 / (made.beta * PRIOR_SD) ** 2
    prior_X, prior_XX = -slope_GX.sum(0), np.zeros(curve_GXX.shape[1:])  # the fit stands where both slopes cancel
    prior_XX[:n, :n] = precision * np.eye(n)
    drawn_RG = np.random.default_rng(seed).multinomial(len(names), np.full(len(names), 1 / len(names)), size=resamples)
    slope_RX = np.einsum("rg,gx->rx", drawn_RG, slope_GX) + prior_X
    curve_RXX = np.einsum("rg,gxy->rxy", drawn_RG, curve_GXX) + prior_XX + 1e-9 * np.eye(n + 1)
    u_RC = np.maximum(u_C + np.linalg.solve(curve_RXX, slope_RX[..., None])[:, :n, 0], 0)
    beta_R = u_RC.sum(-1)
    known_RC = u_RC[beta_R > NOTHING] / beta_R[beta_R > NOTHING, None]
    if len(known_RC) < 0.9 * resamples:
        return None
    widen = sqrt(len(names) / (len(names) - 1))
    tail = scipy.stats.norm.cdf(-widen * scipy.stats.t.ppf(0.975, len(names) - 1))
    low_C, high_C = np.quantile(known_RC, [tail, 1 - tail], axis=0)
    return list(zip(low_C.tolist(), high_C.tolist(), strict=True))


def _by_group(pairs: PairData, made: Weights, u_C, group_P, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Slope and curvature of each group's log likelihood by (u, log nu), reviewers' offsets as fitted.

    Returns:
        (G, C + 1) and (G, C + 1, C + 1) floats, the curvature with the sign that makes it positive.
    """
    sharp_P, tying_P = (
        np.array([of[r] for r in pairs.reviewer_P.tolist()]) if of else np.ones(len(pairs.first_P))
        for of in (made.sharpness, made.tying)
    )
    difference_PC = pairs.difference_PC * sharp_P[:, None]
    s_P = np.clip(np.einsum("pc,c->p", difference_PC, u_C), -60, 60)
    up_P, down_P, nu_P = np.exp(s_P / 2), np.exp(-s_P / 2), made.nu * tying_P
    z_P = up_P + down_P + nu_P
    m_P, q_P, is_tie_P = (up_P - down_P) / (2 * z_P), nu_P / z_P, pairs.first_P == 0.5
    by_s_P, by_nu_P = pairs.first_P - 0.5 - m_P, is_tie_P - q_P
    slope_PX = np.column_stack([difference_PC * by_s_P[:, None], by_nu_P])
    ones_PX = np.column_stack([difference_PC, np.ones(len(s_P))])
    curve_PXX = ones_PX[:, :, None] * ones_PX[:, None, :]
    curve_PXX[:, :-1, :-1] *= ((up_P + down_P) / (4 * z_P) - m_P**2)[:, None, None]
    curve_PXX[:, -1, :-1] *= (-m_P * q_P)[:, None]
    curve_PXX[:, :-1, -1] *= (-m_P * q_P)[:, None]
    curve_PXX[:, -1, -1] *= q_P * (1 - q_P)
    slope_GX = np.zeros((groups, slope_PX.shape[1]))
    curve_GXX = np.zeros((groups, *curve_PXX.shape[1:]))
    np.add.at(slope_GX, group_P, slope_PX)
    np.add.at(curve_GXX, group_P, curve_PXX)
    return slope_GX, curve_GXX
