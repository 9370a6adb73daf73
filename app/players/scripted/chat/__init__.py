"""Scripted members of a society: they answer chats at once and without a model, so that societies can be tried out."""
