"""Code that every process needs and that belongs to no domain: settings, errors, database, files, logs, messages."""
