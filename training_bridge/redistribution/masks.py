"""Masked rows and sums over a group, fast enough for a whole update on one thread."""

import numpy as np

# A sum below this is no sum: dividing by it would make a number out of rounding errors.
TINY = 1e-12


def as_floats(values_BG: np.ndarray) -> np.ndarray:
    """Return floats: float32 and float64 as they are, anything else as float64."""
    values_BG = np.asarray(values_BG)
    return values_BG if values_BG.dtype in (np.float32, np.float64) else values_BG.astype(np.float64)


def keep(values_BG: np.ndarray, mask_BG: np.ndarray) -> np.ndarray:
    """Return the values where the mask is True and 0 elsewhere, whatever stood there, NaN included.

    Args:
        values_BG: (..., G) float32 or float64.
        mask_BG: (..., G) bool.
    Returns:
        (..., G), the dtype of the values.
    """
    # Bits, because np.where mispredicts on a random mask: 0.15 ms against 0.02 for 1,568 x 16.
    bits = np.int32 if values_BG.dtype == np.float32 else np.int64
    kept_BG = np.negative(mask_BG.view(np.int8), dtype=bits)
    kept_BG &= values_BG.view(bits)
    return kept_BG.view(values_BG.dtype)


def keep_valid(values_BG: np.ndarray, valid_BG: np.ndarray) -> np.ndarray:
    """Do as `keep` does, but return the values themselves where nothing is masked, which is the rule."""
    return values_BG if valid_BG.all() else keep(values_BG, valid_BG)


def weigh(kept_BG: np.ndarray, factors_BG: np.ndarray, passing_BG: np.ndarray) -> np.ndarray:
    """Multiply passing advantages, 0 elsewhere, by their factors; a factor elsewhere may be NaN."""
    weighted_BG = keep(as_floats(factors_BG), passing_BG)
    return np.multiply(weighted_BG, kept_BG, out=weighted_BG if weighted_BG.dtype == kept_BG.dtype else None)


def group_sums(values_BG: np.ndarray) -> np.ndarray:
    """Sum over the rollouts of each group.

    Args:
        values_BG: (..., G) float.
    Returns:
        (..., 1) float.
    """
    # einsum has no per-row overhead (0.015 ms against 0.05 for sum) and does not depend on a BLAS.
    return np.einsum("...g->...", values_BG)[..., None]


def group_sizes(mask_BG: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Count the True of each group.

    Args:
        mask_BG: (..., G) bool.
        like: whose dtype the answer has.
    Returns:
        (..., 1) float.
    """
    if mask_BG.all():
        return np.full((*mask_BG.shape[:-1], 1), mask_BG.shape[-1], like.dtype)
    return group_sums(mask_BG.astype(like.dtype))


def check_masks(values_BG: np.ndarray, *masks_BG: np.ndarray) -> None:
    """Refuse masks that are not bool or not of the shape of the values.

    Raises:
        ValueError: naming both shapes or the dtype.
    """
    for mask_BG in masks_BG:
        if mask_BG.shape != values_BG.shape:
            raise ValueError(f"a mask has shape {mask_BG.shape}, expected {values_BG.shape} as the values")
        if mask_BG.dtype != np.bool_:
            raise ValueError(f"a mask has dtype {mask_BG.dtype}, expected bool")


def check_factors(factors_BG: np.ndarray, passing_BG: np.ndarray) -> None:
    """Refuse a factor outside (0, 1], where it is read.

    Args:
        factors_BG: (..., G) float, no unit.
        passing_BG: (..., G) bool; factors elsewhere are not read and may be NaN.
    Raises:
        ValueError: shapes differ or a factor is outside (0, 1]; names the first place.
    """
    check_masks(factors_BG, passing_BG)
    if factors_BG.size and factors_BG.min() > 0 and factors_BG.max() <= 1:  # half the price; NaN compares as False
        return
    bad_BG = passing_BG & ~((factors_BG > 0) & (factors_BG <= 1))
    if bad_BG.any():
        where = tuple(int(i) for i in np.argwhere(bad_BG)[0])
        raise ValueError(f"the factor at {where} is {factors_BG[where]}, expected more than 0 and at most 1")
