"""Adversarial Taboo."""

from app.games.taboo.rules import TABOO

GAME = TABOO
