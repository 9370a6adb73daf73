"""The admin pages, for signed-in experimenters only: one module a subject, all on one blueprint."""

from app.web.admin import home, matches, models
from app.web.admin.blueprint import blueprint

__all__ = ["blueprint", "home", "matches", "models"]
