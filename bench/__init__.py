"""Benchmarks: our figure and a floor or peer measured in the same run, and their ratio."""
