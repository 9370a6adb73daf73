"""Trainings at OpenAI: a job's fields, its rows in the vendor's format, and the differences in its API calls."""
