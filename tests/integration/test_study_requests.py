"""What a participant's request asks of the database: whose link it is, once, whatever answers it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from flask import Flask
from sqlalchemy import Engine, event

from app.core.extensions import writing
from tests.study_pages import AT_ONCE, MATCH, Walker, door_of, text_of
from tests.waves import changed, loaded_study, new_wave, store_study


@pytest.fixture
def ann(app: Flask) -> Walker:
    with writing() as session:
        store_study(session, changed(loaded_study(), same_for_all=AT_ONCE))
        new_wave(session)
    return Walker(app.test_client(), door_of("ann"))


@contextmanager
def statements() -> Iterator[list[str]]:
    """All that is asked of any database meanwhile, each on one line."""
    found: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        found.append(" ".join(statement.split()))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def lookups(found: list[str]) -> tuple[int, int]:
    """How often a private link was looked up, and how often an enrolment was read by its number."""
    whose = [each.partition(" WHERE ")[2] for each in found if " FROM enrolment WHERE " in each]
    return sum("enrolment.token = " in each for each in whose), sum("enrolment.id = " in each for each in whose)


@pytest.mark.parametrize("path", ["", "/agreed", "/leave", "/report", "/rules"])
def test_a_page_looks_its_person_up_once(ann: Walker, path: str) -> None:
    ann.send(part="yes")  # to the instructions
    with statements() as found:
        assert ann.client.get(ann.address + path).status_code == 200
    assert lookups(found) == (1, 0)


def test_the_page_of_a_match_reads_its_person_once(ann: Walker) -> None:
    ann.send(part="yes")
    is_shared = "together" in text_of(ann.page)  # the goal, by which the quiz is answered
    ann.send()
    ann.answer_quiz("10" if is_shared else "6")
    match = ann.send().location or ""
    assert MATCH.search(match)
    with statements() as found:
        assert ann.client.get(match).status_code == 200
    assert lookups(found) == (0, 1)
    with statements() as found:
        assert ann.client.get(ann.address).location == match
    assert lookups(found) == (1, 0)


def test_what_is_sent_looks_its_person_up_once_and_locks_them_once(ann: Walker) -> None:
    with statements() as found:
        assert ann.client.post(f"{ann.address}/here").status_code == 303
    assert lookups(found) == (1, 1)
    with statements() as found:
        assert ann.client.post(ann.address, data={"step": "consent", "part": "yes"}).status_code == 303
    assert lookups(found)[0] == 1  # and the draw of the arm locks them once more


def test_a_page_with_what_is_wrong_reads_the_person_as_they_are_by_then(ann: Walker) -> None:
    with statements() as found:
        assert ann.client.post(ann.address, data={"step": "consent"}).status_code == 400
    assert lookups(found) == (1, 2)


@pytest.mark.parametrize("method", ["get", "post"])
def test_the_link_of_a_wave_looks_the_wave_up_once(ann: Walker, method: str) -> None:
    link = door_of("ben") if method == "get" else "/s/two-models/main"  # which names nobody, so the page comes again
    with statements() as found:
        assert getattr(ann.client, method)(link).status_code == 200
    assert sum(" FROM wave WHERE " in each for each in found) == 1
