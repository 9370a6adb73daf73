"""The commands of `flask`, one file per group. Each parses, calls a service in one transaction, and prints."""
