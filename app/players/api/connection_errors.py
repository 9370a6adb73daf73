"""Connection errors in plain words: the libraries' own messages are about their classes."""

import os
import ssl

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorError,
    ClientPayloadError,
    ClientResponseError,
    ServerDisconnectedError,
)


def broken_connection(error: Exception) -> str:
    """What was expected of a connection and what came instead, for an error raised by aiohttp or the system."""
    if isinstance(error, ClientConnectorCertificateError):
        return f"expected a certificate that can be trusted, got {_first_line(error.certificate_error)}"
    if isinstance(error, ClientConnectorError):
        return f"expected a connection to {error.host}:{error.port}, got {system_error(error.os_error)}"
    if isinstance(error, ClientPayloadError):
        if "encoding" in str(error):
            return "expected an answer in the compression that it names, got one that cannot be unpacked"
        return "expected a whole answer, got one that breaks off"
    if isinstance(error, ServerDisconnectedError):
        return "expected an answer, got a connection that was closed without one"
    if isinstance(error, ClientResponseError):
        return f"expected an answer by HTTP, got something else: {_first_line(error.message)}"
    if isinstance(error, OSError):
        return f"expected an answer, got {system_error(error)}"
    return f"expected an answer, got {_first_line(error)}"


def system_error(error: OSError) -> str:
    """The system's message for a failed connection, such as "connection refused"."""
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or "no reason").replace("_", " ").lower()
        return f"no encrypted one ({reason}); does the address begin with https:// where the server speaks http://?"
    said = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or _first_line(error)
    return f"{said[:1].lower()}{said[1:]}" if said else "none"


def _first_line(error: object) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "nothing more is known")
