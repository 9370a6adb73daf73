"""Campaigns: play, filter, train, register, evaluate, and repeat with the new model."""
