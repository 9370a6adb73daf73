"""Whoever has an id of another person, or guesses one, opens nothing of theirs: each id at each place of an address."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select

from app.core.extensions import reading, writing
from app.matches import live
from app.matches.lobby import person_in
from app.matches.stored import load
from app.matches.turns import WorkerContext, play_turn
from app.models import Enrolment, EventRow, Participant, RecruitmentIdentity, SeatRow, Submission
from app.studies.answers import draw_arm
from app.studies.progress import find_progress_by_token
from app.web import tickets
from tests.integration.test_own_data import come
from tests.study_pages import AT_ONCE, MATCH, Walker
from tests.waves import changed, loaded_study, new_wave, store_study

WORDS = "Quokkas whisper"


@pytest.fixture
def opened(app: Flask) -> None:
    with writing() as session:
        store_study(session, changed(loaded_study("two-models"), same_for_all=AT_ONCE))
        new_wave(session)


@pytest.fixture
def ann(app: Flask, opened: None, desk: Callable[..., WorkerContext]) -> Walker:
    """Somebody who has said something in a match that is not over."""
    walker = come(app, "ann")
    walker.send(part="yes")
    with writing() as session:
        progress = find_progress_by_token(session, walker.address.rpartition("/")[2], lock=True)
        progress.enrolment.step = next(at for at, step in enumerate(progress.steps) if step.key == "match 1")
        draw_arm(session, progress)
    walker.look()
    found = MATCH.search(walker.send().location or "")
    assert found is not None
    play_turn(desk(), found[1])  # where the partner begins
    say(found[1])
    assert WORDS in walker.client.get(f"/play/{found[1]}").text
    return walker


def say(match_id: str) -> None:
    with writing() as session:
        record = load(session, match_id)
        move = live.MoveSubmission(match_id, person_in(record), f"[message] {WORDS}")
        assert live.submit(session, move, instant=True).answer.ok


def enrolment_of(walker: Walker) -> Enrolment:
    with reading() as session:
        token = walker.address.rpartition("/")[2]
        return session.scalars(select(Enrolment).where(Enrolment.token == token)).one()


def ids_of(walker: Walker) -> dict[str, str]:
    """Every id of a person but the private link, by what it is."""
    enrolment = enrolment_of(walker)
    with reading() as session:
        person = session.get_one(Participant, enrolment.participant_id)
        identity = select(RecruitmentIdentity.external_id).where(RecruitmentIdentity.participant_id == person.id)
        visit = session.scalars(select(Submission).where(Submission.enrolment_id == enrolment.id)).one()
        matches = session.scalars(select(SeatRow.match_id).where(SeatRow.enrolment_id == enrolment.id)).all()
        found = {
            "enrolment": enrolment.id,
            "participant": person.id,
            "code": person.code,
            "hash": person.person_hash,
            "recruiter's id": session.scalars(identity).one(),
            "visit": visit.external_id,
            "row of the visit": visit.id,
            **{f"match {number}": match for number, match in enumerate(matches)},
        }
    return {what: str(value) for what, value in found.items()}


def facts(walker: Walker) -> tuple[Any, ...]:
    """What others could change of somebody: where they are, and what was said in their matches."""
    enrolment = enrolment_of(walker)
    with reading() as session:
        own = select(SeatRow.match_id).where(SeatRow.enrolment_id == enrolment.id)
        events = session.execute(select(EventRow.match_id, EventRow.seq).where(EventRow.match_id.in_(own)))
        return enrolment.step, enrolment.ending, enrolment.answers, sorted(tuple(row) for row in events)


def stranger_in(app: Flask, seat: str) -> FlaskClient:
    """The browser of a guest with a match, of another person of the wave, or of nobody."""
    if seat == "another person":
        return come(app, "ben").client
    client = app.test_client()
    if seat == "a guest":
        begun = client.post("/api/matches", json={"game": "taboo"}).json or {}
        assert client.get(f"/play/{begun['match']}?ticket={begun['ticket']}").status_code == 303
    return client


def each_at_each_place(ids: list[str], places: int) -> Iterator[tuple[str, ...]]:
    """Values of so many places: in each of them stands each id once with itself and once with the next one beside."""
    for step in range(min(places, 2)):
        for first in range(len(ids)):
            yield tuple(ids[(first + step * place) % len(ids)] for place in range(places))


def _statuses(address: str) -> tuple[int, ...]:
    if address.startswith(("/s/me/", "/play/")):
        return 403, 404, 405
    if address.startswith("/api/v1/"):
        return 400, 401, 404, 405  # a cookie beside a token is refused, and so is a request with neither
    return 200, 302, 303, 400, 403, 404, 405, 429  # of what belongs to nobody, and of sign-in


@pytest.mark.parametrize("seat", ["nobody", "a guest", "another person"])
def test_an_id_at_any_place_of_any_address_opens_nothing(app: Flask, ann: Walker, seat: str) -> None:
    app.config["WTF_CSRF_ENABLED"] = False
    stranger, known, before = stranger_in(app, seat), ids_of(ann), facts(ann)
    token = ann.address.rpartition("/")[2]
    tried = 0
    for rule in app.url_map.iter_rules():
        if not rule.arguments or rule.endpoint == "static":
            continue
        names = re.findall(r"<(?:\w+:)?(\w+)>", rule.rule)
        for values in each_at_each_place([*known.values()], len(names)):
            address = re.sub(r"<(?:\w+:)?(\w+)>", lambda found: values[names.index(found[1])], rule.rule)
            forms = [{}, {"action": "delete"}, {"then": "leave", "reason": "broken"}, {"step": "consent", "part": "no"}]
            answers = [stranger.get(address)] if "GET" in (rule.methods or ()) else []
            answers += [stranger.post(address, data=form) for form in forms if "POST" in (rule.methods or ())]
            for answer in answers:
                tried += 1
                said = answer.text + str(answer.headers)
                assert WORDS not in said, address
                assert token not in said, address
                assert answer.status_code in _statuses(address), (address, answer.status_code)
    assert tried > 200
    assert facts(ann) == before


def test_an_id_as_a_parameter_or_in_a_ticket_opens_no_match(app: Flask, ann: Walker) -> None:
    stranger, known = stranger_in(app, "a guest"), ids_of(ann)
    own = next(iter(stranger.get("/").text.split('href="/play/')[1:])).partition('"')[0]
    settings = app.config["SETTINGS"]
    for match in (value for what, value in known.items() if what.startswith("match")):
        for ticket in (*known.values(), tickets.issue(settings, own, 0), tickets.issue(settings, own, 1), ""):
            answer = stranger.get(f"/play/{match}", query_string={"ticket": ticket})
            assert answer.status_code == 403
            assert WORDS not in answer.text
        assert stranger.get(f"/play/{match}").status_code == 403  # and none of these tickets was kept
