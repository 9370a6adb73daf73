"""The data of a study for analysis: one archive of tables, with the meaning of each column."""
