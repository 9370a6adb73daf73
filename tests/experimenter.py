"""A browser in which an experimenter is signed in, for tests of the admin pages, and their way through a long list."""

import html
import re
from collections.abc import Iterator

from flask import Flask
from flask.testing import FlaskClient

from app.web.labels import LABELS
from workers.prepare import new_admin_link


def signed_in(app: Flask) -> FlaskClient:
    """Signs in as an experimenter does who has no password yet: with a link."""
    client = app.test_client()
    assert client.post("/enter/" + new_admin_link(app).rpartition("/")[2]).status_code == 303
    return client


def labelled(refusal: str) -> str:
    """A refusal that begins with the name of a field, as a form's page shows it: with the field's label."""
    field, mark, rest = refusal.partition(": ")
    return f"{LABELS.get(field, field)}{mark}{rest}"


def leafed_through(client: FlaskClient, address: str) -> Iterator[str]:
    """The page at an address, and all that its button to the next one leads to."""
    while address:
        page = client.get(address).text
        yield page
        onward = re.search(r'<a class="button" href="([^"]+)">(?:Older|Next page)</a>', page)
        address = html.unescape(onward[1]) if onward else ""
