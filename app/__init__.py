"""Parlor: people and language models play language games, and what was played makes the next model."""

__version__ = "0.1.0"
