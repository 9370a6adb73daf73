"""The blueprint of all admin pages, and what holds for every one of them: nobody else gets in, nothing is cached."""

from flask import Blueprint, abort
from flask_login import login_required

from app.web.form_writes import request_key_field
from app.web.headers import never_stored

blueprint = Blueprint("admin", __name__, url_prefix="/admin")


@blueprint.before_request
@login_required  # type: ignore[untyped-decorator]
def _signed_in() -> None:
    """Let nobody else in, whatever pages are added."""


blueprint.after_request(never_stored)
blueprint.add_app_template_global(request_key_field)


@blueprint.get("/<path:_anything>")
def nothing_here(_anything: str) -> str:
    """An address that was guessed: nobody learns from it which ones there are, except who is signed in."""
    abort(404)
