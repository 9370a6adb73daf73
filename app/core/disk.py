"""Free space on the disk of PARLOR_HOME."""

import errno
import shutil

from app.core.config import Settings

MB = 10**6


def free_mb(settings: Settings) -> int:
    """Free megabytes on the disk of PARLOR_HOME. Raises OSError if it does not exist."""
    return shutil.disk_usage(settings.home).free // MB


def low_disk(settings: Settings) -> int | None:
    """The free megabytes if they are fewer than LOW_DISK_MB, else None."""
    left = free_mb(settings)
    return left if left < settings.LOW_DISK_MB else None


def is_full(error: OSError) -> bool:
    """Whether an error means that the disk is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
