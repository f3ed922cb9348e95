"""`make bench`: every benchmark in turn. Machines are noisy: read medians and ratios."""

from bench import ingest, redistribution

BENCHMARKS = [redistribution.main, ingest.main]

if __name__ == "__main__":
    for benchmark in BENCHMARKS:
        benchmark()
