"""`make bench`: every benchmark in turn. Machines are noisy: read medians and ratios."""

from bench import (
    delivery,
    explorer,
    grading,
    ingest,
    monitor,
    pages,
    peers,
    redistribution,
    steps,
    trainers,
    trajectories,
    what_if,
)

BENCHMARKS = [
    redistribution.main,
    trainers.main,
    ingest.main,
    steps.main,
    delivery.main,
    pages.main,
    explorer.main,
    monitor.apart,
    peers.main,
    trajectories.main,
    grading.main,
    what_if.main,
]

if __name__ == "__main__":
    for benchmark in BENCHMARKS:
        benchmark()
