"""Curves and means over seeds from the lines of an ablation. Core. Axes: `_S` seeds, `_T` steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from training_bridge.ablation.lines import ARMS, Line

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its interval (Student's t); `low` and `high` are None where one seed says nothing of it.

    values: one a seed, in the order of the seeds; None where a seed has no number.
    """

    mean: float | None
    low: float | None
    high: float | None
    values: tuple[float | None, ...]

    @property
    def n(self) -> int:
        """Seeds that have a number."""
        return sum(value is not None for value in self.values)


@dataclass(frozen=True)
class Ablation:
    """Lines cut to the steps that every run has, so that all arms are compared at one age.

    lines: by (method, seed), the steps in order.
    steps: how many each run has.
    """

    lines: dict[tuple[str, int], list[Line]]
    steps: int

    @classmethod
    def of(cls, lines: Sequence[Line]) -> "Ablation":
        """Sort lines by run.

        Raises:
            ValueError: a run has no line, or lacks a step in the middle; names it.
        """
        runs: dict[tuple[str, int], list[Line]] = {}
        for line in sorted(lines, key=lambda line: (line["seed"], line["step"])):
            runs.setdefault((line["method"], line["seed"]), []).append(line)
        seeds = sorted({seed for _, seed in runs})
        for run in ((method, seed) for seed in seeds for method in ARMS):
            found = [line["step"] for line in runs.get(run, [])]
            if not found or found != list(range(len(found))):
                raise ValueError(f"run {run} has steps {found[:3]}…, expected every step from 0 on")
        steps = min(map(len, runs.values()), default=0)
        if not steps:
            raise ValueError("there is no line, expected some of every run: has the ablation been started?")
        return cls({run: found[:steps] for run, found in runs.items()}, steps)

    @property
    def seeds(self) -> list[int]:
        """The seeds, in order."""
        return sorted({seed for _, seed in self.lines})

    def series(self, method: str, name: str) -> np.ndarray:
        """Return (S, T) float64, NaN where a step has no such number (nothing passed, say)."""
        values = [[line.get(name) for line in self.lines[method, seed]] for seed in self.seeds]
        return np.array([[np.nan if value is None else value for value in row] for row in values], float)

    def curve(self, method: str, name: str, window: int) -> np.ndarray:
        """Return (S, T) float64, means of the last `window` steps (of fewer at the start); NaN where none has one."""
        series_ST = self.series(method, name)
        known_ST = np.isfinite(series_ST)
        known, sums = _running(known_ST.astype(float), window), _running(np.where(known_ST, series_ST, 0.0), window)
        return np.where(known > 0, sums / np.maximum(known, 1), np.nan)

    def late(self, method: str, name: str, share: float = 1 / 3) -> Estimate:
        """Estimate a mean over the last share of the steps; 1 for all of them."""
        return estimate(_means(self.series(method, name)[:, -max(1, round(self.steps * share)) :]))

    def difference(self, method: str, other: str, name: str, share: float = 1 / 3) -> Estimate:
        """Estimate how much higher a method lies than another one, seed by seed: they start from the same policy."""
        pairs = zip(self.late(method, name, share).values, self.late(other, name, share).values, strict=True)
        return estimate([None if a is None or b is None else a - b for a, b in pairs])


def estimate(values: Sequence[float | None]) -> Estimate:
    """Estimate a mean over seeds, with a 95 % interval of Student's t over those that have a number."""
    known = np.array([value for value in values if value is not None], float)
    if not len(known):
        return Estimate(None, None, None, tuple(values))
    mean = float(known.mean())
    if len(known) < 2:
        return Estimate(mean, None, None, tuple(values))
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known)))
    return Estimate(mean, mean - half, mean + half, tuple(values))


def _running(values_ST: np.ndarray, window: int) -> np.ndarray:
    sums_ST = values_ST.cumsum(1)
    sums_ST[:, window:] -= sums_ST[:, :-window].copy()
    return sums_ST


def _means(values_ST: np.ndarray) -> list[float | None]:
    rows = [row[np.isfinite(row)] for row in values_ST]
    return [float(row.mean()) if len(row) else None for row in rows]
