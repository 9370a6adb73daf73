"""Trainings at Together: which models are there, the fields of a job, its rows, the calls and what they bring."""
