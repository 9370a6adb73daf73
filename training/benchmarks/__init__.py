"""Reasoning benchmarks of a checkpoint, or of answers that were recorded: `python -m training.benchmarks`.

Questions in a file are scored here, by the definitions of lm-evaluation-harness; all other tasks are the harness's own.
"""
