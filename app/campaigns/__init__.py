"""Campaigns: play, filter, train, register, evaluate, and again with the new model."""
