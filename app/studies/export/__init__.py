"""The data of a study for analysis: one archive of tables, with what each column means."""
