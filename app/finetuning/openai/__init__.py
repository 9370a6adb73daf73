"""Trainings at OpenAI: the fields of a job, its rows as the vendor reads them, and what differs in its calls."""
