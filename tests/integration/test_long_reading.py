"""What takes long to read is read beside the event loop: those who play do not wait for it."""

import io
from collections.abc import Callable
from typing import Any

import gevent
import pytest
from flask import Flask
from flask.testing import FlaskClient

from app.core.extensions import writing
from app.web.study.page_texts import html_of
from tests.experimenter import signed_in
from tests.integration.test_admin_rounds import form
from tests.waves import new_wave


def _arms(client: FlaskClient) -> Any:
    with writing() as session:
        number = new_wave(session, places=2).id
    file = (io.BytesIO(b"order,arm\n1,none\n"), "arms.csv")
    return lambda: client.post(f"/admin/studies/waves/{number}", data={"action": "list", "list": file})


def _archive(client: FlaskClient) -> Any:
    return lambda: client.post("/admin/studies/new", data={"files": (io.BytesIO(b"PK"), "study.zip")})


def _words(client: FlaskClient) -> Any:
    data = form("taboo", words="upload", words_text="cat\ncat", action="start")
    return lambda: client.post("/admin/rounds/new", data=data)


def _text(client: FlaskClient) -> Any:
    return lambda: html_of("> " * 3000, {})


@pytest.mark.parametrize("given", [_arms, _archive, _words, _text])
def test_others_have_their_turn_while_it_is_read(app: Flask, given: Callable[[FlaskClient], Any]) -> None:
    turns = 0

    def play() -> None:
        nonlocal turns
        while True:
            turns += 1
            gevent.sleep(0)

    send = given(signed_in(app))
    player = gevent.spawn(play)
    answer = send()
    player.kill()
    assert turns > 0
    assert getattr(answer, "status_code", 400) == 400
