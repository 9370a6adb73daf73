"""The language of a page: the one that was switched to, else the browser's, else the first one offered."""

import re
from datetime import datetime
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from babel import Locale, negotiate_locale
from flask import Blueprint, Flask, Response, g, has_request_context, redirect, request, session, url_for
from flask.globals import request_ctx
from flask_babel import get_locale, get_timezone, gettext, refresh
from flask_login import current_user
from werkzeug.wrappers import Response as AnyResponse

from app.core.config import ENGLISH
from app.core.errors import AppError
from app.web.labels import error_lang, error_text, in_code
from app.web.seats import settings
from app.web.stored_texts import stored_text
from app.web.translations import PageTranslations, script_words

blueprint = Blueprint("language", __name__)
_OWN_PATH = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")  # nothing that a browser takes for another host
_babel = PageTranslations()


def register(app: Flask) -> None:
    """Enable translated pages, and let them know their language."""
    _babel.init_app(app, default_locale=ENGLISH, locale_selector=_select, timezone_selector=_time_zone)
    app.register_blueprint(blueprint)
    app.context_processor(_in_templates)
    app.add_template_filter(_translated, "translated")
    app.add_template_filter(_error_in_code, "error_text")
    app.add_template_filter(in_code)
    app.add_template_filter(error_lang)
    app.add_template_filter(stored_text)
    app.after_request(_varies)


def _error_in_code(error: AppError, *, labels: bool = False, at: str = "") -> str:
    return in_code(error_text(error, labels=labels, at=at))


def own_path(text: str) -> str | None:
    """A path on this server that a form may ask to go on to; None for anything else."""
    return text if _OWN_PATH.fullmatch(text) else None


def use_language(language: str) -> None:
    """Answer this request in a given language, whatever its reader has chosen, because a study is in one language."""
    g.language_of_study = language
    refresh()


@blueprint.post("/language")
def switch() -> AnyResponse:
    """Remember a language that is offered, and go back to the page."""
    wanted = request.form.get("language", "")
    if wanted in settings().languages:
        session["language"] = wanted
        session.permanent = True
    return redirect(_page_before(), 303)


def _time_zone() -> str | None:
    """The time zone of the experimenter whose page it is; None, meaning UTC, for all other pages."""
    is_for_experimenters = has_request_context() and request.blueprint in ("admin", "auth")
    return current_user.time_zone if is_for_experimenters and current_user.is_authenticated else None


def midnight() -> datetime:
    """The start of the day in the time zone of the page."""
    return datetime.now(ZoneInfo(str(get_timezone()))).replace(hour=0, minute=0, second=0, microsecond=0)


def _select() -> str:
    """The language of this request. API clients are answered in English, as the protocol requires."""
    if not has_request_context() or request.path.startswith("/api/"):
        return ENGLISH
    if "language_of_study" in g:
        return str(g.language_of_study)
    offered = settings().languages
    remembered = session.get("language")
    if remembered in offered:
        return str(remembered)
    wanted = [each.replace("-", "_") for each, weight in request.accept_languages if weight > 0]
    return negotiate_locale(wanted, offered) or offered[0]


def _in_templates() -> dict[str, object]:
    language = str(get_locale() or ENGLISH)
    return {
        "language": language,
        "languages": {} if "language_of_study" in g else {each: _own_name(each) for each in settings().languages},
        "script_words": script_words,
        "time_zone": lambda: str(get_timezone()),
    }


def _translated(text: str) -> str:
    """A text from the layers below, in the page's language if it is known there."""
    return gettext(text) if text else ""


def _own_name(language: str) -> str:
    name = Locale.parse(language).get_display_name() or language
    return name[:1].upper() + name[1:]


def _page_before() -> str:
    """The page whose switch was used; the home page if that page cannot be opened, because it answered a form."""
    before = urlsplit(request.referrer or "")
    path, adapter = own_path(before.path), request_ctx.url_adapter
    if path is None or adapter is None or not adapter.test(path, "GET"):
        return url_for("play.home")
    return f"{path}?{before.query}" if before.query else path


def _varies(response: Response) -> Response:
    if response.mimetype in ("text/html", "application/json"):  # JSON may be a chart
        response.vary.add("Accept-Language")
    return response
