"""The maximum length of a request body by route; bodies are read before anything else sees them.

This wraps the whole application, which gets every body complete, in memory or on disk, so that no handler ever waits
for a client. A client that announces or sends more than the route accepts, or sends too slowly, gets an error page or
JSON before the rest has arrived; the server then hangs up (`workers/web_worker.py`).
"""

import contextlib
import io
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, BinaryIO, cast

from flask import Flask, Request, request
from flask_login import current_user
from gunicorn.http.errors import LimitRequestHeaders, ParseException
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException

from app.core.config import Settings
from app.core.disk import is_full
from app.core.errors import AppError, Phrase, Unavailable
from app.games.base import JSON
from app.web.bucket import Bucket
from app.web.errors import API, error_json
from app.web.threads import off_loop

SMALL = 100_000  # bytes that anybody may send to any address, even a missing one
ANSWERS = 1_000_000  # a participant's answers to a page of questions
STUDY = 1_000_000  # the files of a study
TEXTS = 2_000_000  # forms with experimenters' texts
JOB = 8_000_000  # a job with its files' texts; those of a recipe may have 5 MB, and more as JSON
_ENVELOPE = 100_000  # bytes of a request besides its file
_PIECE = 1 << 18  # bytes read at once
_PAGES_A_SECOND = 3.0  # refusals answered as pages
_REFUSAL, _SPOOLED = "parlor.body_refusal", "parlor.body_on_disk"

WsgiApp = Callable[[JSON, Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """The maximum number of bytes a route accepts; if `signed_in`, from experimenters only, and SMALL from others."""

    most: int
    signed_in: bool = True


def body_limits(settings: Settings) -> Mapping[str, BodyLimit]:
    """The routes that take more than SMALL, by their endpoints."""
    texts = (
        "act_on_draft",
        "act_on_wave",
        "save_figure",
        "start_alignment",
        "start_assessment",
        "start_campaign",
        "start_recipe",
        "start_round",
        "start_society",
    )
    return {
        "study.send": BodyLimit(ANSWERS, signed_in=False),
        **{f"admin.{name}": BodyLimit(TEXTS) for name in texts},
        "api_v1.create_job": BodyLimit(JOB),
        "admin.upload_study": BodyLimit(STUDY),
        "admin.import_dataset": BodyLimit(int(settings.DATASET_UPLOAD_MB * 1e6) + _ENVELOPE),
    }


class TooLarge(AppError):
    """A request has a longer body than its route takes."""

    code = "too_large"
    status = 413


class TooSlow(AppError):
    """A body did not come in time."""

    code = "too_slow"
    status = 408


class BrokenBody(AppError):
    """A body arrived incomplete, or not in the form that its headers state."""

    code = "broken_body"


class UploadRequest(Request):
    """A request whose large files are stored in PARLOR_HOME, which has room for what is made from them."""

    def _get_file_stream(
        self,
        total_content_length: int | None,
        content_type: str | None,
        filename: str | None = None,
        content_length: int | None = None,
    ) -> Any:
        if (folder := self.environ.get(_SPOOLED)) is not None:
            return tempfile.TemporaryFile(dir=folder)
        return super()._get_file_stream(total_content_length, content_type, filename, content_length)


class BodyLimits:
    """The limits of one application."""

    def __init__(self, app: Flask, settings: Settings, has_token: Callable[[], bool]) -> None:
        """`has_token` says whether a request has a token of the API."""
        self._app = app
        self._has_token = has_token
        self._limits = body_limits(settings)
        self._folder = str(settings.home)
        self._pages = Bucket(_PAGES_A_SECOND, time.monotonic())
        app.before_request(_refuse)
        app.before_request(_read_form_in_thread)

    def install(self, inner: WsgiApp) -> WsgiApp:
        """Wrap `inner` in the limits; the application itself writes the refusals, in its own form and language."""

        def application(environ: JSON, start_response: Callable[..., Any]) -> Iterable[bytes]:
            try:
                body, size = self._receive(environ)
            except AppError as error:
                if not self._pages.take(time.monotonic()):
                    return _one_line(error, environ, start_response)
                _put_body(environ, io.BytesIO(), 0)
                environ[_REFUSAL] = error
                return Flask.wsgi_app(self._app, environ, start_response)
            _put_body(environ, body, size)
            return inner(environ, start_response)

        return application

    def _receive(self, environ: JSON) -> tuple[BinaryIO, int]:
        """The body and its length in bytes.

        Raises TooLarge, TooSlow, BrokenBody, Unavailable if it cannot be stored anywhere, and OSError if the client is
        gone.
        """
        announced = _announced(environ)
        if announced == 0:
            return io.BytesIO(), 0
        most = self._most(environ, announced)
        if announced is not None and announced > most:
            raise too_large(most)
        body, size = self._read_body(environ, most, announced)
        if announced is not None and size < announced:
            body.close()
            raise BrokenBody(Phrase("expected a body of %(length)s bytes, got %(got)s", length=announced, got=size))
        if _SPOOLED in environ:
            off_loop(_rewind, body)
        else:
            body.seek(0)
        return body, size

    def _read_body(self, environ: JSON, most: int, announced: int | None) -> tuple[BinaryIO, int]:
        body: BinaryIO = io.BytesIO()
        size = 0
        try:
            # After a body of known length, some servers wait for the next request.
            while piece := _next_piece(
                environ["wsgi.input"], most, _PIECE if announced is None else min(_PIECE, announced - size)
            ):
                size += len(piece)
                if size > most:
                    raise too_large(most)
                if size > SMALL and _SPOOLED not in environ:
                    environ[_SPOOLED] = self._folder
                    head, body = cast(io.BytesIO, body).getvalue(), self._on_disk()
                    piece = head + piece
                if _SPOOLED in environ:
                    off_loop(_keep_piece, body, piece)
                else:
                    body.write(piece)
        except BaseException:
            with contextlib.suppress(OSError):  # OSError: on a full disk, which the rest was to be written to
                body.close()  # now rather than when the error is forgotten: its space is needed
            raise
        return body, size

    def _on_disk(self) -> BinaryIO:
        """A file that nobody else sees and that disappears when it is closed, whatever happens."""
        with _room_needed():
            return cast(BinaryIO, tempfile.TemporaryFile(dir=self._folder))

    def _most(self, environ: JSON, announced: int | None) -> int:
        """The maximum size of this request in bytes. Raises Unavailable if its sender cannot be determined."""
        if announced is not None and announced <= SMALL:
            return SMALL
        try:
            endpoint, _ = self._app.url_map.bind_to_environ(environ).match()
        except HTTPException:
            return SMALL
        limit = self._limits.get(endpoint, BodyLimit(SMALL, signed_in=False))
        return SMALL if limit.signed_in and not self._is_signed_in(environ) else limit.most

    def _is_signed_in(self, environ: JSON) -> bool:
        try:
            with self._app.request_context({**environ, "wsgi.input": io.BytesIO()}):
                return bool(current_user.is_authenticated) or self._has_token()
        except SQLAlchemyError:
            raise Unavailable(Phrase("The database does not answer. Nothing was changed.")) from None


def refused_body() -> AppError | None:
    """Why the body of this request was refused, if it was."""
    return cast(AppError | None, request.environ.get(_REFUSAL))


def too_large(most: int) -> TooLarge:
    """The refusal of a body of more than `most` bytes."""
    return TooLarge(
        Phrase("This is too large: at most %(most)s MB can be sent to this address at once.", most=f"{most / 1e6:g}")
    )


def _one_line(error: AppError, environ: JSON, start_response: Callable[..., Any]) -> list[bytes]:
    """The refusal in one line, for clients that send many such requests in a row."""
    kind, line = "text/plain; charset=utf-8", error.message
    if environ.get("PATH_INFO", "").startswith(f"{API}/"):
        kind, line = "application/json", json.dumps(error_json(error.code, error.message, error))
    start_response(f"{error.status} {HTTPStatus(error.status).phrase}", [("Content-Type", kind)])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [f"{line}\n".encode()]


def _refuse() -> None:
    if (error := refused_body()) is not None:
        raise error


def _read_form_in_thread() -> None:
    """Parse a large form before any of its fields is used: this writes its files to the disk once more."""
    if _SPOOLED not in request.environ:
        return
    real = cast(Any, request)._get_current_object()
    # Already checked; texts may be as long as a whole form with texts.
    real.max_content_length, real.max_form_memory_size = None, TEXTS

    def read() -> None:
        with _room_needed():
            _ = real.form

    off_loop(read)


def _announced(environ: JSON) -> int | None:
    """The length of the body in bytes that the request headers state; None if it comes in chunks."""
    return None if environ.get("HTTP_TRANSFER_ENCODING") else int(environ.get("CONTENT_LENGTH") or 0)


def _next_piece(source: Any, most: int, size: int) -> bytes:
    """The next piece of a body, of `size` bytes at most; none at its end.

    Raises TooLarge, TooSlow, BrokenBody, and OSError.
    """
    try:
        return cast(bytes, source.read(size))
    except TimeoutError:
        raise TooSlow(Phrase("The request did not come in time. Please send it again.")) from None
    except LimitRequestHeaders:  # of chunks, also those with larger headers than content
        raise too_large(most) from None
    except ParseException as error:
        raise BrokenBody(Phrase("expected a body in chunks, got %(got)s", got=str(error))) from None


def _keep_piece(body: BinaryIO, piece: bytes) -> None:
    with _room_needed():
        body.write(piece)


def _rewind(body: BinaryIO) -> None:
    with _room_needed():  # the last bytes may still have to be written to the disk
        body.seek(0)


@contextlib.contextmanager
def _room_needed() -> Iterator[None]:
    """Raises Unavailable where the disk is full."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise Unavailable(Phrase("There is no room on the server's disk. Nothing was changed.")) from None


def _put_body(environ: JSON, body: BinaryIO, size: int) -> None:
    environ["wsgi.input"] = body
    environ["CONTENT_LENGTH"] = str(size)
    environ.pop("HTTP_TRANSFER_ENCODING", None)
