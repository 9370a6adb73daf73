"""A form that does harm when it is sent twice is taken once: sent again, it leads to what came of it."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, func, select

from app.core.config import ROOT
from app.core.extensions import reading, writing
from app.models import FormRequest, LanguageModel, Rehearsal
from tests.enrolments import load_example
from tests.experimenter import signed_in
from tests.stack import PATIENCE

# Loading a study and importing a dataset find what is there by its content; the others have a key.
BY_CONTENT = ("study-new.html", "dataset-import.html")


@pytest.fixture
def study(engine: Engine, tmp_path: Path) -> int:
    with writing(engine) as session:
        return load_example(session, tmp_path).study_id


def key_of(client: FlaskClient, path: str) -> str:
    found = re.search(r'name="request_key" value="([^"]+)"', client.get(path).text)
    assert found is not None, path
    return found[1]


def count(engine: Engine, of: type[Rehearsal] | type[LanguageModel]) -> int:
    with reading(engine) as session:
        return session.scalar(select(func.count()).select_from(of)) or 0


def test_every_form_that_creates_something_has_a_key() -> None:
    folder = ROOT / "templates" / "admin"
    forms = [each for each in folder.glob("*-new.html") if each.name not in BY_CONTENT]
    assert forms
    for path in (*forms, folder / "job-form.html"):
        assert "request_key_field(" in path.read_text("utf-8"), path.name


def test_bots_are_sent_once_by_one_form(app: Flask, engine: Engine, study: int) -> None:
    client = signed_in(app)
    path = "/admin/rehearsals/new"
    form = {"study": "two-models", "bots": "4", "seed": "7", "request_key": key_of(client, path)}
    answers = [client.post(path, data=form) for _ in range(3)]
    assert {(each.status_code, each.location) for each in answers} == {(303, answers[0].location)}
    assert count(engine, Rehearsal) == 1
    client.post(path, data={**form, "seed": "8"})  # what was changed is another wish
    client.post(path, data={**form, "request_key": key_of(client, path)})  # and so is the form as it is opened anew
    assert count(engine, Rehearsal) == 3


def test_a_form_that_was_refused_can_be_sent_again(app: Flask, engine: Engine, study: int) -> None:
    client = signed_in(app)
    path = "/admin/rehearsals/new"
    form = {"study": "two-models", "bots": "1e3", "seed": "7", "request_key": key_of(client, path)}
    assert client.post(path, data=form).status_code == 400
    assert client.post(path, data={**form, "bots": "3"}).status_code == 303
    assert count(engine, Rehearsal) == 1


def test_a_form_that_is_sent_from_several_windows_at_once_is_taken_once(app: Flask, engine: Engine, study: int) -> None:
    windows = [signed_in(app) for _ in range(4)]
    path = "/admin/rehearsals/new"
    form = {"study": "two-models", "bots": "4", "seed": "7", "request_key": key_of(windows[0], path)}
    together = threading.Barrier(len(windows), timeout=PATIENCE)

    def send(client: FlaskClient) -> tuple[int, str]:
        together.wait()
        answer = client.post(path, data=form)
        return answer.status_code, answer.location

    with ThreadPoolExecutor(len(windows)) as pool:
        assert len(set(pool.map(send, windows))) == 1
    assert count(engine, Rehearsal) == 1
    with reading(engine) as session:
        assert len(session.scalars(select(FormRequest)).all()) == 1


def test_a_model_is_added_once_and_no_name_is_said_to_be_taken(app: Flask, engine: Engine) -> None:
    client = signed_in(app)
    before = count(engine, LanguageModel)
    form = {
        "name": "remote", "base_url": "http://127.0.0.1:9/v1", "model": "m", "games": ["negotiation"], "key_env": "",
        "retries": "0", "request_key": key_of(client, "/admin/models/new"),
    }  # fmt: skip
    answers = [client.post("/admin/models/new", data=form) for _ in range(3)]
    assert {(each.status_code, each.location) for each in answers} == {(303, answers[0].location)}
    assert count(engine, LanguageModel) == before + 1
