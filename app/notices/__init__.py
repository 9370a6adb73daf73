"""Notices to experimenters by mail or webhook: their causes, their outbox, and their delivery."""
