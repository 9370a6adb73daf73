"""Calls of language models outside of matches.

A request is one call: a test call of the registry, or a single question. Like a turn, it is a row that waits, and the
worker that makes it holds a lease: a message that comes twice calls the model once, and a lost one is sent again. In
jobs such as societies and assessments, models answer many chats from one event loop, each once. Every answer is a row
of the table of all generations.
"""
