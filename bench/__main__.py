"""`make bench`: every benchmark in turn. Machines are noisy: read medians and ratios."""

from bench import redistribution

BENCHMARKS = [redistribution.main]

if __name__ == "__main__":
    for benchmark in BENCHMARKS:
        benchmark()
