"""The one place where the parts of the web process and of the command line are put together."""

from collections.abc import Mapping
from typing import Any

from flask import Flask
from flask_talisman import Talisman
from werkzeug.middleware.proxy_fix import ProxyFix

from app import schema
from app.api import blueprint as program_api
from app.api.authentication import is_experimenter
from app.api.reference import pages as api_pages
from app.core import logs
from app.core.config import ROOT, Settings, load_settings
from app.inference import scheduler
from app.web import account, admin, api, compression, errors, facts, language, moves, play, study
from app.web.admin.datasets_import import refuse_upload
from app.web.body_limits import BodyLimits, UploadRequest
from app.web.extensions import csrf, limiter, login, socketio
from app.web.sockets import play_namespace, watch_namespace
from app.web.sockets.connections import ConnectionLimits, library_logger
from app.web.sockets.packets import TextPacket
from app.web.sockets.socket_manager import SocketManager

_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}


def create_app(overrides: Mapping[str, Any] | None = None) -> Flask:
    """Build the app from the environment, with `overrides` of single settings on top.

    Raises Invalid, in one line, for an invalid setting.
    """
    logs.set_up()
    settings = load_settings(overrides)
    scheduler.set_cache_limit(settings.INFERENCE_CACHE_MB)
    scheduler.set_model_memory(settings.MODEL_MEMORY_MB)
    app = Flask("parlor", root_path=str(ROOT), instance_path=str(settings.home))
    app.request_class = UploadRequest
    schema.bind(app, settings)
    app.config.update(_flask_config(settings))
    _extensions(app, settings)
    for part in (play, study, api, account, admin):
        app.register_blueprint(part.blueprint)
    app.register_blueprint(program_api)
    app.register_blueprint(api_pages)
    for for_programs in (api.blueprint, program_api):
        csrf.exempt(for_programs)
    language.register(app)
    moves.register(app)
    facts.register(app)
    errors.register(app)
    if settings.TRUSTED_PROXIES:
        hops = settings.TRUSTED_PROXIES
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=hops, x_proto=hops, x_host=hops)  # type: ignore[method-assign]
    return app


def _flask_config(settings: Settings) -> dict[str, Any]:
    return {
        "SETTINGS": settings,
        "SECRET_KEY": settings.secret_key,
        "SESSION_COOKIE_SAMESITE": "Lax",
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SECURE": settings.public_url.startswith("https://"),
        "PERMANENT_SESSION_LIFETIME": int(max(settings.TICKET_HOURS, settings.ADMIN_HOURS) * 3600),
        # A late response, for a picture for example, must not restore the cookie of a moment ago: a seat would be lost.
        "SESSION_REFRESH_EACH_REQUEST": False,
        "RATELIMIT_STORAGE_URI": settings.limiter_url,
        "RATELIMIT_IN_MEMORY_FALLBACK_ENABLED": True,
        "WTF_CSRF_TIME_LIMIT": None,  # as long as the session: a page left open over lunch still works
    }


def _extensions(app: Flask, settings: Settings) -> None:
    login.init_app(app)
    app.before_request(refuse_upload)
    bodies = BodyLimits(app, settings, is_experimenter)  # before the extensions that read forms
    csrf.init_app(app)
    limiter.init_app(app)
    compression.register(app)
    Talisman(
        app,
        content_security_policy=_POLICY,
        force_https=False,  # the proxy in front does that
        strict_transport_security=settings.public_url.startswith("https://"),
        session_cookie_secure=settings.public_url.startswith("https://"),
        referrer_policy="same-origin",
        x_xss_protection=False,
    )
    socketio.init_app(
        app,
        async_mode="gevent",
        async_handlers=False,
        serializer=TextPacket,
        client_manager=SocketManager(),
        logger=library_logger(),
        engineio_logger=library_logger(),
        max_http_buffer_size=1_000_000,
        ping_interval=settings.HEARTBEAT,
        # A heartbeat waits behind a move that is being committed: a busy moment is no lost connection.
        ping_timeout=3 * settings.HEARTBEAT,
    )
    limits = ConnectionLimits(socketio.server, settings, (play_namespace.NAMESPACE, watch_namespace.NAMESPACE))
    app.wsgi_app = bodies.install(limits.install(app.wsgi_app))  # type: ignore[method-assign,assignment]
    play_namespace.PlayNamespace(app, settings).register(socketio.server)
    watch_namespace.WatchNamespace(app).register(socketio.server)
