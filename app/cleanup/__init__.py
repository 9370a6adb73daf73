"""Freeing disk space: what goes with a model, a dataset or a job, what depends on it, and restoring it."""
