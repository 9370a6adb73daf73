"""The HTTP API for programs, `/api/v1`: the same services as pages and commands.

An operation is declared once (`operations.py`), as a route and for the OpenAPI document, which is made of the
operations, the specs of jobs and the columns of lists.
"""

from importlib import import_module
from pkgutil import iter_modules

from app.api.operations import blueprint

__all__ = ["blueprint"]

for _found in iter_modules(__path__):  # loading a module registers its operations on the blueprint
    import_module(f"{__name__}.{_found.name}")
