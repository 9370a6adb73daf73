"""Backups: one file with everything that an installation has, written while it is used, and put back as a whole.

`archive` is the file, `tables` are the rows of a database in it, `create` and `restore` are what the commands do.
"""
