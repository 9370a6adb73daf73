"""The admin pages of rehearsals: bots are sent from the page of a study, followed, cancelled and sent again."""

import re
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, func, select

from app.core.extensions import reading, writing
from app.matches.filter import REHEARSAL_SUFFIX
from app.models import Rehearsal, RehearsedBot, Wave
from tests.enrolments import load_example
from tests.experimenter import signed_in
from tests.study_pages import text_of

NOTES = {"number": 0, "habit": "plain", "steps": [], "token": None, "surprises": ["status 500 after consent"]}


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.fixture
def study(engine: Engine, tmp_path: Path) -> int:
    """A loaded example."""
    with writing(engine) as session:
        return load_example(session, tmp_path).study_id


def send(client: FlaskClient, study: int, **form: str) -> str:
    """Send bots; the address of the page that follows them."""
    [path] = re.findall(r"/admin/rehearsals/new[^\"]+", client.get(f"/admin/studies/{study}").text)
    assert 'name="study" type="text" value="two-models@1"' in client.get(path).text
    answer = client.post(path, data={"study": "two-models@1", "bots": "4", "seed": "7", **form})
    assert answer.status_code == 303
    return answer.location


def test_bots_are_sent_through_a_copy_and_their_page_shows_what_they_met_so_far(
    client: FlaskClient, engine: Engine, study: int
) -> None:
    page = send(client, study)
    with writing(engine) as session:
        row = session.scalars(select(Rehearsal)).one()
        assert (row.bots, row.seed, row.live, row.queued, row.status) == (4, 7, False, True, "waiting")
        wave = session.get_one(Wave, row.wave_id)
        assert wave.study_id != study
        assert wave.settings["of"].startswith(f"two-models{REHEARSAL_SUFFIX}@")
        session.add(RehearsedBot(rehearsal_id=row.id, number=0, notes=NOTES))
    shown = text_of(client.get(page))
    assert "1 of 4 bots have finished" in " ".join(shown.split())
    assert "status 500 after consent" in shown
    assert page.rpartition("/")[2] in client.get("/admin/rehearsals").text


def test_a_rehearsal_is_cancelled_and_resumed_on_its_page(client: FlaskClient, engine: Engine, study: int) -> None:
    page = send(client, study)
    for action, status in (("cancel", "cancelled"), ("resume", "waiting")):
        assert client.post(page, data={"action": action}).status_code == 303
        with reading(engine) as session:
            assert session.scalars(select(Rehearsal.status)).one() == status


@pytest.mark.parametrize(
    ("field", "value"), [("bots", "0"), ("bots", "2001"), ("bots", "many"), ("seed", "-1"), ("study", "nothing")]
)
def test_what_cannot_be_sent_is_refused_at_its_field_and_leaves_nothing(
    client: FlaskClient, engine: Engine, study: int, field: str, value: str
) -> None:
    assert study
    sent = {"study": "two-models", "bots": "4", "seed": "7", field: value}
    answer = client.post("/admin/rehearsals/new", data=sent)
    assert answer.status_code in (400, 404)
    assert re.search(rf'id="{field}"[^>]* aria-invalid="true"', answer.text)
    assert f'id="{field}"' in answer.text
    assert f'value="{value}"' in answer.text
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(Rehearsal)) == 0
        assert session.scalar(select(func.count()).select_from(Wave)) == 0
