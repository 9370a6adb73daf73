"""Notices to experimenters by mail or webhook: what they are about, an outbox of them, and how they are sent."""
