"""Points of one series in few bytes and few points: packed whole, and thinned so that extremes and gaps stay. Core."""

import numpy as np
from tsdownsample import MinMaxDownsampler

SIZE = 128  # points of a packed segment at level 0
CHILDREN = 8  # segments that one of the next level stands for
BINS = SIZE // 2  # of which each level keeps the lowest, the highest and a gap

Points = tuple[np.ndarray, np.ndarray]  # steps_N int64, rising; values_N float64, NaN where there is a gap


def to_bytes(steps_N: np.ndarray, values_N: np.ndarray) -> bytes:
    """Pack points. Args: steps_N (N,) int, rising; values_N (N,) float, NaN is a gap. Returns: 16 bytes a point."""
    return np.asarray(steps_N, "<i8").tobytes() + np.asarray(values_N, "<f8").tobytes()


def from_bytes(packed: bytes) -> Points:
    """Unpack what `to_bytes` packed.

    Raises:
        ValueError: the length is no multiple of 16.
    """
    half, rest = divmod(len(packed), 2)
    if rest or half % 8:
        raise ValueError(f"packed points are {len(packed)} bytes, expected a multiple of 16")
    return np.frombuffer(packed, "<i8", half // 8), np.frombuffer(packed, "<f8", half // 8, half)


def thin(steps_N: np.ndarray, values_N: np.ndarray, bins: int) -> Points:
    """Keep the lowest and the highest value of each bin of consecutive points, one gap of each, and both ends.

    Args:
        steps_N: (N,) int, rising.
        values_N: (N,) float, any unit; NaN is a gap.
        bins: at least 1, how many of about the same number of points.
    Returns:
        At most 3 bins + 2 points in their order, no value changed. As many points or fewer: the input.
    Raises:
        ValueError: the shapes differ, or `bins` is below 1.
    """
    if steps_N.shape != values_N.shape or bins < 1:
        raise ValueError(f"got {steps_N.shape} steps, {values_N.shape} values, {bins} bins; expected one shape, a bin")
    if len(steps_N) <= 2 * bins:
        return steps_N, values_N
    gaps_N = np.isnan(values_N)
    finite = np.flatnonzero(~gaps_N)
    kept = [np.array([0, len(steps_N) - 1])]
    if len(finite) > 2 * bins:
        kept.append(finite[MinMaxDownsampler().downsample(np.ascontiguousarray(values_N[finite]), n_out=2 * bins)])
    else:
        kept.append(finite)
    if len(finite) < len(steps_N):
        begins = np.flatnonzero(gaps_N & ~np.r_[False, gaps_N[:-1]])
        _, first = np.unique(begins * bins // len(steps_N), return_index=True)
        kept.append(begins[first])
    chosen = np.unique(np.concatenate(kept).astype(np.int64))
    return steps_N[chosen], values_N[chosen]


def placed(steps_N: np.ndarray, values_N: np.ndarray, late: dict[int, float]) -> Points:
    """Put late values in their places; at a step that is there the late one counts.

    Args:
        steps_N, values_N: as in `thin`.
        late: step -> value, NaN for a gap.
    """
    by_step = dict(zip(steps_N.tolist(), values_N.tolist(), strict=True)) | late
    steps = sorted(by_step)
    return np.array(steps, np.int64), np.array([by_step[step] for step in steps], float)


def joined(parts: list[Points]) -> Points:
    """One series of parts that follow each other."""
    if not parts:
        return np.array([], np.int64), np.array([], float)
    return np.concatenate([steps for steps, _ in parts]), np.concatenate([values for _, values in parts])
