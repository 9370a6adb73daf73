"""Readers of published formats: each goes through its source game by game and yields `ImportedMatch`es."""
