"""Matches in a terminal: `lines.py` has what all games share, and the modules named after a game have the rest."""
