"""Recipes: experiments that consist of many jobs, each described by a file of steps that a run executes."""
