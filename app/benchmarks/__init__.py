"""Benchmarks: models scored on reasoning tasks, by `python -m training.benchmarks` in a separate process."""
