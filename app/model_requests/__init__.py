"""Requests to language models that belong to no match: test calls of the registry, and single questions.

Like a turn, a request is a row that waits, and whoever makes it holds a lease: a message that comes twice calls the
model once, and a lost one is sent again. The answer is a row of the table of all generations.
"""
