"""Every error in one shape: JSON for the API, a page for people. A traceback goes to the log and nowhere else."""

from http import HTTPStatus
from typing import Any

import structlog
from flask import Flask, jsonify, render_template, request
from flask_babel import gettext, lazy_gettext
from flask_limiter import RateLimitExceeded
from flask_login import current_user
from flask_wtf.csrf import CSRFError
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from app.core.errors import RETRY_AFTER, AppError, FieldError, Unavailable
from app.core.extensions import is_away, reason_of
from app.web.labels import error_lang, error_text

log = structlog.get_logger()
API = "/api/v1"  # below this path, every error lists its parts, in English
_SECRETS = ("token", "signed", "code")  # parts of addresses that are links for one person or for one use

_TITLES = {
    400: lazy_gettext("That did not work."),
    403: lazy_gettext("This is not yours to open."),
    404: lazy_gettext("This page is not here."),
    409: lazy_gettext("Not just now."),
    429: lazy_gettext("A little too fast."),
    500: lazy_gettext("Something went wrong on our side."),
    503: lazy_gettext("We cannot take this just now."),
}
_MESSAGES = {
    404: lazy_gettext("The link may be old. Your games are safe."),
    405: lazy_gettext("This address cannot be used like that. Go back to the start and try from there."),
    413: lazy_gettext("That was more text than fits. Please make it shorter."),
    500: lazy_gettext("Nothing that you wrote is lost. Please try again in a moment."),
    503: lazy_gettext("The database does not answer. Nothing was changed; please try again in a moment."),
}

_API_MESSAGES = {
    404: f"There is nothing at this address; {API}/openapi.json says what there is.",
    405: f"This address does not take this method; {API}/openapi.json says which ones it takes.",
    415: "Expected a body of the type application/json, got another type.",
    429: "That was too much in a short time. Please wait a minute and try again.",
    500: "Something went wrong on our side. Please try again in a moment.",
    503: "The database does not answer. Nothing was changed; please try again in a moment.",
}

_SECRET = {"password", "new", "again"}  # fields of passwords

_LOST_TITLE = lazy_gettext("This link does not lead to a study.")
_LOST = lazy_gettext(
    "Part of it may be missing. Open the study again from the page where you found it, or open your private link: "
    "either takes you back to where you were."
)


def register(app: Flask) -> None:
    """Register the error handlers on the app."""
    app.register_error_handler(AppError, _app_error_reply)
    app.register_error_handler(CSRFError, _stale_form)
    app.register_error_handler(RateLimitExceeded, _too_many)
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(SQLAlchemyError, _database)
    app.register_error_handler(Exception, _internal_error_reply)
    app.after_request(_come_back)


def error_json(code: str, message: str, error: AppError | None = None) -> dict[str, Any]:
    """An error as API clients (below `API`) get it; unknown values are null."""
    texts = error.texts() if isinstance(error, FieldError) else dict.fromkeys(("expected", "got", "remedy"))
    return {"error": {"code": code, "message": message, "field": None if error is None else error.field, **texts}}


def is_for_api() -> bool:
    """Whether a request is for the API."""
    return request.path == API or request.path.startswith(f"{API}/")


def _app_error_reply(error: AppError) -> tuple[Response | str, int]:
    if is_for_api():
        return jsonify(error_json(error.code, error.message, error)), error.status
    if _is_for_programs():
        return _error_reply(error.status, error.code, error.message)
    return _error_reply(error.status, error.code, error_text(error), error_lang(error))


def _stale_form(_error: CSRFError) -> tuple[Response | str, int]:
    return _error_reply(
        400, "stale_form", gettext("The page was open for too long. Go back, reload it and send it again.")
    )


def _too_many(error: RateLimitExceeded) -> tuple[Response | str, int]:
    return _error_reply(429, "too_fast", error.description)


def _http(error: HTTPException) -> tuple[Response | str, int] | HTTPException:
    status = error.code or 500
    if status < 400:
        return error  # a redirect
    if status == 404 and _is_for_experimenters():
        return _error_reply(404, "not_found", gettext("There is nothing at this address. It may have been mistyped."))
    return _error_reply(status, HTTPStatus(status).name.lower(), str(_MESSAGES.get(status, _MESSAGES[404])))


def _database(error: SQLAlchemyError) -> tuple[Response | str, int]:
    if not is_away(error):
        return _internal_error_reply(error)
    log.warning("the database is away", path=_logged_path(), error=reason_of(error))
    return _error_reply(503, Unavailable.code, str(_MESSAGES[503]))


def _come_back(response: Response) -> Response:
    if response.status_code == 503:
        response.headers["Retry-After"] = str(RETRY_AFTER)
    return response


def _internal_error_reply(_error: Exception) -> tuple[Response | str, int]:
    log.exception("a request was not handled", path=_logged_path())
    return _error_reply(500, "internal", str(_MESSAGES[500]))


def _logged_path() -> str:
    """The path of the request without private links, so that readers of the log cannot follow them."""
    path = request.path
    for name, value in (request.view_args or {}).items():
        if name in _SECRETS:
            path = path.replace(str(value), f"<{name}>")
    return path


def _error_reply(status: int, code: str, message: str, lang: str = "") -> tuple[Response | str, int]:
    if request.path == "/healthz":
        return Response(f"{message}\n", status, mimetype="text/plain"), status
    if is_for_api():
        return jsonify(error_json(code, _API_MESSAGES.get(status, HTTPStatus(status).description))), status
    if _is_for_programs():
        return jsonify(error={"code": code, "message": message}), status
    title = str(_TITLES.get(status, _TITLES[400]))
    more = {
        "title": title,
        "message": message,
        "lang": lang,
        "typed": _unsaved_form_fields() if status == 503 else None,
    }
    if _is_in_study():
        if status == 404:  # the expected link is of no use to a person with another one
            more |= {"title": str(_LOST_TITLE), "message": str(_LOST), "lang": ""}
        elif status == 403:
            more["title"] = str(_TITLES[400])
        return render_template("study/error.html", **more, lost=status == 404), status
    page = "admin/error.html" if status < 500 and _is_for_experimenters() else "error.html"
    return render_template(page, **more), status


def _unsaved_form_fields() -> list[tuple[str, str]] | None:
    """The fields of a form that could not be saved, so that it can be sent again unchanged.

    None if there is no form, or if it has a password or a file, which no page may contain.
    """
    if request.method != "POST":
        return None
    try:
        files, form = request.files, request.form
    except HTTPException:  # it was not read before, and cannot be
        return None
    if any(file.filename for file in files.values()):
        return None
    fields = [pair for pair in form.items(multi=True) if pair[0] != "csrf_token"]
    return None if _SECRET & {name for name, _ in fields} else fields


def _is_in_study() -> bool:
    return request.path.startswith("/s/")


def _is_for_programs() -> bool:
    return request.path.startswith(("/api/", "/socket.io/"))


def _is_for_experimenters() -> bool:
    return request.path.startswith(("/admin/", "/account")) and bool(current_user.is_authenticated)
