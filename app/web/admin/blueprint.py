"""The blueprint of all admin pages, and the rules for all of them: only signed-in users, no caching."""

from flask import Blueprint, abort
from flask_login import login_required

from app.web.form_writes import request_key_field
from app.web.headers import never_stored

blueprint = Blueprint("admin", __name__, url_prefix="/admin")


@blueprint.before_request
@login_required  # type: ignore[untyped-decorator]
def _signed_in() -> None:
    """Admit only signed-in users, to all pages including new ones."""


blueprint.after_request(never_stored)
blueprint.add_app_template_global(request_key_field)


@blueprint.get("/<path:_anything>")
def nothing_here(_anything: str) -> str:
    """A guessed address: only signed-in users learn from it which addresses exist."""
    abort(404)
