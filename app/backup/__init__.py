"""Backups: one file with everything in an installation, written while in use, and restored as a whole.

`archive` is the file, `tables` are the rows of a database in it, `create` and `restore` implement the commands.
"""
