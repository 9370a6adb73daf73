"""The admin pages, for signed-in experimenters only: one module per subject, all on one blueprint."""

from importlib import import_module
from pkgutil import iter_modules

from app.web.admin.blueprint import blueprint

__all__ = ["blueprint"]

for _found in iter_modules(__path__):  # a module adds its pages to the blueprint when it is loaded
    import_module(f"{__name__}.{_found.name}")
