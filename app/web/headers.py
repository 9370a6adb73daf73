"""Headers of answers that are for one reader at one moment."""

from flask import Response


def never_stored(response: Response) -> Response:
    """The response, asked for again by the back button and kept by nobody on the way."""
    response.headers["Cache-Control"] = "no-store"
    return response
