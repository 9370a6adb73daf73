"""Recipes: experiments of many jobs, each described by a file of steps that a run goes through."""
