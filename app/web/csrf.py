"""CSRF tokens that look different in every response, so that the size of compressed pages does not reveal them.

Source: Gluck, Harris & Prado 2013, BREACH, section 3.4; Django masks its tokens likewise
"""

import base64
import binascii
import secrets

from flask import Flask
from flask_wtf import CSRFProtect
from flask_wtf.csrf import generate_csrf


class MaskedCSRFProtect(CSRFProtect):  # type: ignore[misc]  # which has no types
    """Protects forms as Flask-WTF does, but sends its tokens under a single-use mask."""

    def init_app(self, app: Flask) -> None:
        """Check the forms of the app, and give its templates the masked token."""
        super().init_app(app)
        app.jinja_env.globals["csrf_token"] = masked_token
        app.context_processor(lambda: {"csrf_token": masked_token})

    def _get_csrf_token(self) -> str | None:
        given: str | None = super()._get_csrf_token()
        return None if given is None else _unmasked(given)


def masked_token() -> str:
    """The token of the session, under another mask each time."""
    token = generate_csrf().encode()
    pad = secrets.token_bytes(len(token))
    return base64.urlsafe_b64encode(pad + _xor(pad, token)).decode()


def _unmasked(given: str) -> str:
    """The token under a mask; one without a mask, as in a page opened before Parlor was updated, is returned
    unchanged.
    """
    try:
        both = base64.b64decode(given, altchars=b"-_", validate=True)
        half = len(both) // 2
        return _xor(both[:half], both[half:]).decode("ascii")
    except (ValueError, binascii.Error):
        return given


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
