"""Trainings at OpenAI: the fields of a job, its rows as the vendor reads them, the calls, and the steps of a job."""
