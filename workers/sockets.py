"""The folders of unix sockets, whose permissions restrict a socket to its user."""

import errno
import os
import stat
from pathlib import Path

from app.core.errors import Invalid, Verbatim


def make_folder_of(socket: Path) -> None:
    """Make the folder of the socket, which no other user may own or read. Raises Invalid."""
    try:
        socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = socket.parent.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(errno.EPERM, "it is somebody else's")
        socket.parent.chmod(0o700)
    except OSError as error:
        raise Invalid(
            "PARLOR_HOME",
            expected="a folder for its sockets that this user alone may write to",
            got=Verbatim(f"{socket.parent} ({error.strerror})"),
            remedy="choose a shorter PARLOR_HOME, or give the folder to this user",
        ) from None
