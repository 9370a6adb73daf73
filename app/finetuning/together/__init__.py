"""Trainings at Together: which models are hosted there, a job's fields, its rows, the calls and their answers."""
