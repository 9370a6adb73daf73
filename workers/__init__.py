"""The processes besides the web process: the supervisor, the broker, the Celery workers and upkeep."""
