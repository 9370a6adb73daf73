"""Trainings at Tinker: the fields of a job, and which models are there. `training/tinker/` trains."""
