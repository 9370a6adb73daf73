"""Trainings at Tinker: rows are rendered and losses computed here, and Tinker holds and changes the weights."""
