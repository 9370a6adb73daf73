"""Reports: the results of a run, a study, a society or a tournament, as one page and its files. Read-only."""
