"""The page that lists the operations of the API, for signed-in experimenters."""

from collections.abc import Iterator
from typing import NamedTuple

from flask import Blueprint, render_template
from flask_login import login_required

from app.api.openapi import operations, path_of, summary_of
from app.web.errors import API
from app.web.seats import settings

pages = Blueprint("api_reference", __name__)


class ReferenceLine(NamedTuple):
    """An operation as shown to people."""

    method: str
    address: str
    summary: str
    scope: str | None


def lines() -> Iterator[ReferenceLine]:
    """All operations by address."""
    for each, kind in operations():
        yield ReferenceLine(each.method, API + path_of(each, kind), summary_of(each, kind), each.scope)


@pages.get("/account/api")
@login_required  # type: ignore[untyped-decorator]
def reference() -> str:
    """The page of all operations that programs can use, with their scopes."""
    return render_template("admin/api.html", lines=[*lines()], address=settings().public_url + API)
