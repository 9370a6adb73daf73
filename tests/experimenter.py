"""A browser in which an experimenter is signed in, for tests of the admin pages."""

from flask import Flask
from flask.testing import FlaskClient

from workers.prepare import new_admin_link


def signed_in(app: Flask) -> FlaskClient:
    """Signs in as an experimenter does who has no password yet: with a link."""
    client = app.test_client()
    assert client.post("/enter/" + new_admin_link(app).rpartition("/")[2]).status_code == 303
    return client
