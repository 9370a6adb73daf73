"""Compresses pages, JSON, scripts and tables for clients that ask for gzip, piece by piece where they are sent so.

Server-sent events and sockets are never compressed, nor is what is compressed already. Pages hold secrets beside words
of an address, so what follows from the size alone is blurred: docs/adr/0009-compressed-pages.md.

Source: RFC 9110, section 12.5.3; RFC 1952; Gluck, Harris & Prado 2013, BREACH; Heitzmann et al. 2022, Heal the BREACH
"""

import contextlib
import secrets
import struct
import zlib
from collections.abc import Iterable, Iterator

from flask import Flask, Response, request

_LEVEL = 4  # 30 KiB of a page in half a millisecond; the result is a tenth larger than at 6
_LEAST = 860  # bytes; compressing a single packet saves no time
_MOST_PADDING = 100  # bytes
_TYPES = (
    "text/html", "text/css", "text/csv", "text/plain", "text/javascript", "application/json", "application/x-ndjson",
    "application/openapi+json", "application/yaml", "image/svg+xml",
)  # fmt: skip
_FILE_NAME = 8  # the RFC 1952 flag for a file name


def register(app: Flask) -> None:
    """Compress the app's responses."""
    app.after_request(_compressed)


def _compressed(response: Response) -> Response:
    if response.mimetype not in _TYPES or response.cache_control.no_transform:
        return response
    response.vary.add("Accept-Encoding")
    length = response.content_length
    unfit = response.status_code in (204, 206, 304) or "Content-Encoding" in response.headers
    if unfit or request.method == "HEAD" or (length is not None and length < _LEAST):
        return response
    if not request.accept_encodings["gzip"]:
        return response
    response.direct_passthrough = False
    pieces = response.iter_encoded() if response.is_streamed else [response.get_data()]
    if response.is_streamed:
        response.response = _gzip(pieces)
        response.headers.pop("Content-Length", None)
    else:
        response.set_data(b"".join(_gzip(pieces)))
    response.headers["Content-Encoding"] = "gzip"
    etag, is_weak = response.get_etag()
    if etag and not is_weak:
        response.set_etag(etag, weak=True)  # the bytes are equal only when unpacked
    response.headers.pop("Accept-Ranges", None)
    return response


def _gzip(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces as a gzip file with a name of random length in its header, so that its size reveals little of its
    content.
    """
    name = secrets.token_urlsafe(_MOST_PADDING)[: secrets.randbelow(_MOST_PADDING + 1)].encode()
    yield struct.pack("<BBBBLBB", 0x1F, 0x8B, 8, _FILE_NAME, 0, 0, 255) + name + b"\0"
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    check, size = 0, 0
    with contextlib.ExitStack() as stack:
        if (close := getattr(pieces, "close", None)) is not None:
            stack.callback(close)  # also if the client disconnects
        for piece in pieces:
            check, size = zlib.crc32(piece, check), size + len(piece)
            if packed := packer.compress(piece):
                yield packed
    yield packer.flush() + struct.pack("<LL", check, size & 0xFFFFFFFF)
