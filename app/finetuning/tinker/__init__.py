"""Trainings at Tinker: a job's fields, and which models are hosted there. `training/tinker/` trains."""
