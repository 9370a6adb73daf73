"""The processes beside the web: the supervisor, the broker, the Celery worker and upkeep."""
