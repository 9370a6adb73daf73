"""Headers of responses that are for one reader at one moment."""

from flask import Response


def never_stored(response: Response) -> Response:
    """The response, marked so that nothing caches it and the back button requests it again."""
    response.headers["Cache-Control"] = "no-store"
    return response
