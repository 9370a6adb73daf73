"""Freeing the disk: what would go with a model, a dataset or a job, what depends on it, and how it comes back."""
