"""Matches in a terminal: what every game has is in `lines.py`, what a game has of its own under its name."""
