"""What every process needs and what belongs to no domain: settings, errors, the database, files, logs, messages."""
