"""Places, cap and closing time of an open wave, and the address that a link of one's own leads back to."""

import html
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app.core.errors import FieldError
from app.core.extensions import reading, writing
from app.models import StudyEvent
from app.studies.answers import finish
from app.studies.assignment import replay
from app.studies.previews import preview_token
from app.studies.progress import find_progress_by_token
from app.studies.wave_terms import change_terms, close_at_its_time, due_to_close
from app.studies.waves import close, find_wave, settings_of
from tests.experimenter import signed_in
from tests.shell import Finished
from tests.study_pages import Walker, door_of, text_of
from tests.waves import assigned, join, new_wave, wave_file

WAVE = "two-models:main"
LATER = (datetime.now(UTC) + timedelta(days=3)).strftime("%Y-%m-%d %H:%M")


def logged() -> list[Any]:
    with reading() as session:
        return list(
            session.scalars(select(StudyEvent.body).where(StudyEvent.kind == "changed").order_by(StudyEvent.id))
        )


def test_more_places_let_those_in_who_came_to_a_full_wave(app: Flask, flask: Callable[..., Finished]) -> None:
    with writing() as session:
        join(session, new_wave(session, places=1), "ann")
    ben = Walker(app.test_client(), door_of("ben"))
    assert ben.heading == "All places are taken."
    done = flask("study", "change", WAVE, "--places", "2", "--closes", LATER)
    assert done.stdout == f"{WAVE}: 2 places, at most 10000.00, closes at {LATER} UTC.\n", done.stderr
    ben.send("done")
    ben.send(part="yes")
    assert ben.step == "instructions 1"
    assert logged() == [{"places": [1, 2], "closes": [None, LATER], "by": "flask study change"}]
    assert flask("study", "change", WAVE, "--closes", "never").exit_code == 0
    refused = flask("study", "change", WAVE)
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)


def test_what_is_taken_owed_or_reserved_stays(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session, places=5)
        for name in ("ann", "ben"):
            join(session, wave, name)
        for terms, line in (
            ({"places": 1}, "places: expected at least the 2 that are taken, got 1"),
            ({"places": 0}, "places: expected "),
            ({"most_spent": "20.00"}, r"most_spent: expected at least 30.00, to cover what is owed and reserved"),
            ({"most_spent": "1e3x"}, "most_spent: expected an amount of money"),
            ({"closes": "tomorrow"}, "closes: expected a time in UTC such as"),
            ({"closes": "2020-01-01 00:00"}, "closes: expected a time in the future"),
        ):
            with pytest.raises(FieldError, match=line) as refused:
                change_terms(session, wave, terms)
            assert "\n" not in refused.value.message
        change_terms(session, wave, {"places": 2, "most_spent": "30.00"}, "eva")
        assert join(session, wave, "cem").enrolment.ending == "full"
        close(session, wave)
        with pytest.raises(FieldError, match="expected one that is not closed"):
            change_terms(session, wave, {"places": 3})
    assert logged() == [{"places": [5, 2], "most_spent": ["10000.00", "30.00"], "by": "eva"}]


def test_arms_are_drawn_and_replayed_with_the_places_of_the_moment(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session, places=4)
        for number in range(4):
            assigned(session, wave, f"first {number}")
        change_terms(session, wave, {"places": 10})
        for number in range(6):
            assigned(session, wave, f"then {number}")
        found = replay(session, wave)
        assert (len(found), all(each.agrees for each in found)) == (10, True)


def test_a_wave_closes_at_its_time(app: Flask, engine: Engine) -> None:
    with writing() as session:
        wave = new_wave(session, closes=LATER)
        assert due_to_close(session) == []
        past = (datetime.now(UTC) - timedelta(minutes=1)).strftime("%Y-%m-%d %H:%M")
        new_wave(session, wave="earlier", closes=LATER).settings = {**wave.settings, "closes": past}
        wave.settings = {**wave.settings, "closes": past}
        numbers = [wave.id, wave.id + 1]
    with reading() as session:
        assert due_to_close(session) == numbers
    with writing() as session:  # before upkeep comes to it
        close(session, find_wave(session, "two-models:earlier"))
        assert [close_at_its_time(session, number) for number in numbers] == ["main", None]
        assert due_to_close(session) == []
        assert find_wave(session, WAVE).status == "closed"
        with pytest.raises(FieldError, match="closes: expected a time in the future"):
            new_wave(session, wave="late", closes="2020-01-01 00:00")


def test_they_are_changed_on_the_page_of_the_wave(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session, places=5).id
    client, page = signed_in(app), f"/admin/studies/waves/{wave}"
    form = {"action": "change", "places": "7", "most_spent": "500.00", "closes": LATER.replace(" ", "T")}
    assert client.post(page, data=form).status_code == 303
    shown = text_of(client.get(page))
    assert f"Closes {LATER} UTC." in shown
    assert "7 places" in shown
    refused = client.post(page, data={**form, "places": "many"})
    assert refused.status_code == 400
    assert "Places: expected a whole number, got 'many'" in text_of(refused)
    assert '<details class="panel" open>' in refused.text
    assert 'value="many"' in refused.text, "what was typed is still there"
    refused = client.post(page, data={**form, "most_spent": "1e3"})
    assert "Spend cap: expected an amount of money" in text_of(refused)
    with reading() as session:
        file = settings_of(find_wave(session, WAVE))
        assert (file.places, str(file.most_spent), file.closes) == (7, "500.00", LATER)
    assert logged()[0]["by"] == "admin"


# ---- The way back of a link of one's own ---------------------------------------------


ADDRESS = "https://uni.parlor.test/credit?experiment=12&survey_code={id}"


@pytest.mark.parametrize(("ending", "leads"), [("completed", True), ("technical", True), ("withdrawn", False)])
def test_a_link_study_leads_back_with_the_id_of_the_person(app: Flask, ending: Any, leads: bool) -> None:
    link = {"id_parameter": "survey_code", "return_to": ADDRESS}
    with writing() as session:
        new_wave(session, provider={"link": link}, codes={"completed": "LINKDONE"})
    ann = Walker(app.test_client(), "/s/two-models/main?survey_code=4711%26x%3D%2F1%20%C3%A4")
    ann.send(part="yes")
    with writing() as session:
        progress = find_progress_by_token(session, ann.address.rpartition("/")[2], lock=True)
        finish(session, progress, ending)
    ann.look()
    address = "https://uni.parlor.test/credit?experiment=12&amp;survey_code=4711%26x%3D%2F1%20%C3%A4"
    assert (f'href="{address}" rel="noreferrer"' in ann.page.text) == leads


def test_without_an_id_the_address_is_the_same_for_all(app: Flask) -> None:
    with writing() as session:
        new_wave(session, provider={"link": {"return_to": "https://uni.parlor.test/thanks"}}, codes={})
    ann = Walker(app.test_client(), "/s/two-models/main")
    ann.send(part="yes")
    with writing() as session:
        finish(session, find_progress_by_token(session, ann.address.rpartition("/")[2], lock=True), "completed")
    ann.look()
    assert 'href="https://uni.parlor.test/thanks"' in ann.page.text


def test_the_last_page_of_a_preview_leads_back_with_an_id_that_is_made_up_and_says_so(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session, provider={"link": {"id_parameter": "survey_code", "return_to": ADDRESS}}, codes={})
        token, name = preview_token(app.config["SETTINGS"].secret_key, wave.study_version_id), wave.name
    client = app.test_client()
    walker = client.post(f"/s/preview/{token}").location or ""
    with writing() as session:
        finish(session, find_progress_by_token(session, walker.rpartition("/")[2], lock=True), "completed")
    page = client.get(walker)
    made_up = ADDRESS.replace("{id}", "PREVIEW-0000")
    assert f'href="{html.escape(made_up)}"' in page.text
    shown = text_of(page)
    assert f"In the wave {name} this button leads to {made_up}." in shown
    assert "This is a preview: the id in it is made up." in shown


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert({id})", "ftp://uni.example.edu/{id}", "//uni.example.edu/{id}", "uni.example.edu/{id}",
        "https://{id}.example.edu/", "https://uni.example.edu@evil.example/{id}", "https://uni.example.edu/{code}",
        "https://uni.example.edu/a b?{id}", 'https://uni.example.edu/"{id}', "https://uni.example.edu:x/{id}",
        "https:///{id}", f"https://uni.example.edu/{'a' * 500}{{id}}",
    ],
)  # fmt: skip
def test_an_address_that_no_page_may_lead_to_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="an address such as"):
        wave_file(provider={"link": {"id_parameter": "code", "return_to": address}})


def test_an_address_with_an_id_needs_ids() -> None:
    with pytest.raises(ValueError, match=r"an address without \{id\}"):
        wave_file(provider={"link": {"return_to": ADDRESS}})


def test_the_address_is_in_the_form_and_on_the_page(app: Flask) -> None:
    with writing() as session:
        new_wave(session, wave="first")
    client = signed_in(app)
    form = {
        "wave": "sona", "recruiter": "link", "recruiter_id": "survey_code", "return_to": ADDRESS, "places": "20",
        "most_spent": "2200.00",
    }  # fmt: skip
    opened = client.post("/admin/studies/1/waves/new", data=form)
    assert opened.status_code == 303, text_of(opened)
    assert f"The last page leads back to {ADDRESS}." in text_of(client.get(opened.location))
    refused = client.post("/admin/studies/1/waves/new", data={**form, "wave": "other", "return_to": "javascript:x"})
    assert refused.status_code == 400
    assert "an address such as https://uni.example.edu" in text_of(refused)
    wrong = client.post("/admin/studies/1/waves/new", data={**form, "wave": "third", "recruiter": "connect"})
    assert wrong.status_code == 400
