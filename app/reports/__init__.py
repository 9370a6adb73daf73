"""Reports: what a run, a study, a society or a tournament has shown, as one page and its files. Only reads."""
