"""Files that a Parlor sends, written so that each is either complete or left as it was."""

import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parlor_client.connection import Connection, ConnectionLost, wait_to_ask_again


def downloaded(connection: Connection, address: str, params: Mapping[str, Any], path: Path) -> Path:
    """Write a response to a file, restarting from the beginning if it breaks off; returns the path.

    Raises Refused, NotReachable, OSError.
    """
    deadline = time.monotonic() + connection.patience
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        while True:
            try:
                with part.open("wb") as file, connection.stream(address, params) as response:
                    for piece in response.iter_bytes():
                        file.write(piece)
                break
            except ConnectionLost as error:
                wait_to_ask_again(error, deadline, "nothing was written")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path
