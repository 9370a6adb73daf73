"""The commands of `flask`, one file a group. Each parses, calls a service in one transaction, and prints."""
