"""The common lifecycle of all long jobs of workers: rounds, training jobs, campaigns."""
