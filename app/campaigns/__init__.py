"""Campaigns: play, filter, train, register, evaluate, and again with what came of it."""
