"""`make bench`: every benchmark in turn. Machines are noisy: read medians and ratios."""

from bench import delivery, ingest, pages, redistribution

BENCHMARKS = [redistribution.main, ingest.main, delivery.main, pages.main]

if __name__ == "__main__":
    for benchmark in BENCHMARKS:
        benchmark()
