"""Whether there is room on the disk of PARLOR_HOME."""

import errno
import shutil

from app.core.config import Settings

MB = 10**6


def free_mb(settings: Settings) -> int:
    """Megabytes that are free where PARLOR_HOME is. Raises OSError when it is not there."""
    return shutil.disk_usage(settings.home).free // MB


def low_disk(settings: Settings) -> int | None:
    """The megabytes that are left when they are fewer than LOW_DISK_MB, else None."""
    left = free_mb(settings)
    return left if left < settings.LOW_DISK_MB else None


def is_full(error: OSError) -> bool:
    """Whether something was not written for want of room."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
