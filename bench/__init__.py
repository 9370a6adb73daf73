"""Benchmarks: one command each, with a ratio against a named baseline that is measured in the same run."""
