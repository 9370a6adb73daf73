"""Files that pages send piece by piece, so that others can keep playing, however fast the download is."""

import time
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from flask import Response

_PIECE = 1 << 16  # bytes


def download(pieces: Iterable[bytes], name: str, mimetype: str) -> Response:
    """The response with a file of that name."""
    response = Response(in_turn(pieces), mimetype=mimetype)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def in_turn(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, with a chance for other greenlets to run between them."""
    for piece in pieces:
        yield piece
        time.sleep(0)


def pieces_of(file: BinaryIO) -> Iterator[bytes]:
    """What an open file holds, which is closed at the end."""
    with file:
        while piece := file.read(_PIECE):
            yield piece
