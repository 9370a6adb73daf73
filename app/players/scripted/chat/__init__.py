"""Scripted members of a society: they answer chats instantly and without a model, so that societies can be tried
out.
"""
