"""Parlor from Python: run jobs, follow them, read what was played."""

from parlor_client.errors import JobFailed, NotReachable, ParlorError, Refused, ServerTooOld
from parlor_client.jobs import Job, Jobs
from parlor_client.lab import Lab
from parlor_client.tables import Table
from parlor_client.version import __version__

__all__ = [
    "Job",
    "JobFailed",
    "Jobs",
    "Lab",
    "NotReachable",
    "ParlorError",
    "Refused",
    "ServerTooOld",
    "Table",
    "__version__",
]
