"""An id of a recruiter is no password: who may come back at a door, who takes a place, how many may come at once."""

import re
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, select

from app.core.extensions import reading, transact_with_retry, writing
from app.models import Enrolment, Participant, RecruitmentIdentity, Submission
from app.studies import enrolment as enrolments
from app.studies.answers import finish
from app.studies.enrolment import person_hash
from app.studies.idle import end_silent
from app.studies.places import committed, places_taken
from app.studies.progress import end, find_progress, find_progress_by_token
from app.studies.submissions import VisitStatus, take_statuses
from app.studies.waves import close, find_wave, pause
from tests.experimenter import signed_in
from tests.study_pages import Walker, door_of, prolific_id, text_of
from tests.waves import SECRET, arrive, join, new_wave

WAVE = "two-models:main"
NOT_LET_IN = "This link does not let you in here."


@pytest.fixture
def wave(app: Flask) -> None:
    with writing() as session:
        new_wave(session, places=3)


def people() -> list[Enrolment]:
    with reading() as session:
        return list(session.scalars(select(Enrolment).order_by(Enrolment.id)))


def taken() -> int:
    with reading() as session:
        return places_taken(session, find_wave(session, WAVE))


@pytest.mark.parametrize("ended", [None, "completed", "withdrawn"])
@pytest.mark.parametrize("visit", ["guessed", "visit-of-ben"])
def test_who_only_knows_somebodys_id_gets_nothing_of_theirs(app: Flask, wave: None, ended: Any, visit: str) -> None:
    ann = Walker(app.test_client(), door_of("ann"))
    ann.send(part="yes")
    ben = Walker(app.test_client(), door_of("ben"))
    if ended is not None:
        with writing() as session:
            finish(session, find_progress_by_token(session, ann.address.rpartition("/")[2], lock=True), ended)
    before = [(row.id, row.ending, row.step) for row in people()]
    for other in (app.test_client(), ben.client):
        answer = other.post(door_of("ann", visit=visit))
        assert answer.status_code == 403
        shown = text_of(answer)
        assert NOT_LET_IN in shown
        assert "write to Ada Byron, whose address is below, with your id at Prolific" in shown
        assert "Nothing has been recorded" not in shown
        assert "/s/me/" not in answer.text
        assert "Set-Cookie" not in answer.headers or "private links" not in answer.headers["Set-Cookie"]
    assert [(row.id, row.ending, row.step) for row in people()] == before
    with reading() as session:
        assert session.query(Submission).count() == 2


@pytest.mark.parametrize("answer", [{}, {"answer": "no"}])
def test_a_stranger_who_comes_first_keeps_nobody_out(app: Flask, wave: None, answer: dict[str, str]) -> None:
    stranger = Walker(app.test_client(), door_of("ann", visit="invented"))
    if answer:
        stranger.send(**answer)
    ann = Walker(app.test_client(), door_of("ann"))
    assert ann.step == "consent"
    assert ann.address != stranger.address
    assert stranger.client.get(stranger.address).status_code == 404
    ann.send(part="yes")
    assert ann.step == "instructions 1"
    assert stranger.client.post(door_of("ann", visit="invented")).status_code == 403
    assert app.test_client().post(door_of("ann")).location == ann.address
    assert (len(people()), taken()) == (1, 1)


def test_a_link_that_names_no_visit_lets_nobody_in_where_the_recruiter_names_one(app: Flask, wave: None) -> None:
    answer = app.test_client().post(door_of("ann", visit=""))
    assert "This link is not complete." in text_of(answer)
    assert people() == []


def test_the_page_is_the_same_whatever_became_of_the_person(app: Flask, wave: None) -> None:
    shown = set()
    for name, ended in (("ann", None), ("ben", "completed"), ("cem", "withdrawn")):
        walker = Walker(app.test_client(), door_of(name))
        walker.send(part="yes")
        if ended is not None:
            with writing() as session:
                finish(session, find_progress_by_token(session, walker.address.rpartition("/")[2], lock=True), ended)
        shown.add(text_of(app.test_client().post(door_of(name, visit="another"))))
    assert len(shown) == 1


@pytest.mark.parametrize("act", [pause, close])
def test_where_nobody_new_comes_in_a_known_id_is_shown_what_any_other_is(app: Flask, act: Any) -> None:
    with writing() as session:
        new_wave(session, provider={"link": {"id_parameter": "code"}})
    ann = Walker(app.test_client(), "/s/two-models/main?code=ann")
    with writing() as session:
        act(session, find_wave(session, WAVE))
    pages = [app.test_client().post(f"/s/two-models/main?code={name}") for name in ("ann", "nobody")]
    assert ann.address not in pages[0].text
    assert text_of(pages[0]) == text_of(pages[1])


def test_one_comes_back_by_the_visit_by_the_browser_and_by_the_private_link(app: Flask, wave: None) -> None:
    first = app.test_client()
    ann = Walker(first, door_of("ann"))
    ann.send(part="yes")
    assert app.test_client().post(door_of("ann")).location == ann.address  # the same visit, in another browser
    assert first.post(door_of("ann", visit="second-visit")).location == ann.address  # the browser that knows it
    assert app.test_client().post(door_of("ann", visit="second-visit")).location == ann.address  # recorded since
    other = app.test_client()
    assert other.post(door_of("ann", visit="third-visit")).status_code == 403
    other.get(ann.address)  # the private link was opened there
    assert other.post(door_of("ann", visit="third-visit")).location == ann.address
    assert len(people()) == 1


def test_where_the_link_has_an_id_alone_one_comes_back_in_the_same_browser_or_by_the_private_link(app: Flask) -> None:
    with writing() as session:
        new_wave(session, provider={"link": {"id_parameter": "code"}})
    first = app.test_client()
    ann = Walker(first, "/s/two-models/main?code=12345")
    ann.send(part="yes")
    assert first.post("/s/two-models/main?code=12345").location == ann.address
    refused = app.test_client().post("/s/two-models/main?code=12345")
    assert (refused.status_code, "/s/me/" in refused.text) == (403, False)
    assert "whose address is below, with your id." in text_of(refused)


def test_an_id_in_another_case_is_the_same_person(app: Flask, wave: None) -> None:
    ann = Walker(app.test_client(), door_of("ann"))
    ann.send(part="yes")
    loud = door_of("ann").replace(prolific_id("ann"), prolific_id("ann").upper())
    assert app.test_client().post(loud).location == ann.address
    assert app.test_client().post(loud.replace("visit-of-ann", "another")).status_code == 403
    with reading() as session:
        assert session.scalars(select(RecruitmentIdentity.external_id)).all() == [prolific_id("ann")]


def test_an_id_is_kept_as_it_came_and_a_table_names_its_person_in_any_case(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session)
        join(session, wave, "ABCDEF", submission_id=None)
        assert session.scalars(select(RecruitmentIdentity.external_id)).all() == ["ABCDEF"]
        assert take_statuses(session, wave, [VisitStatus("one", "submitted", "abcDEF")]).unknown == 0


def test_connects_ids_in_another_case_are_other_people(app: Flask) -> None:
    with writing() as session:
        new_wave(session, provider={"connect": {"project_id": "P1", "fee": 0.25}})
    for number, person in enumerate(("AbC1", "abc1")):
        Walker(app.test_client(), f"/s/two-models/main?participantId={person}&assignmentId=A{number}&projectId=P1")
    with reading() as session:
        found = session.scalars(select(RecruitmentIdentity.external_id).order_by(RecruitmentIdentity.id)).all()
    assert found == ["AbC1", "abc1"]


def test_a_person_of_before_is_known_by_the_hash_of_before(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session)
        join(session, wave, "ANN")
        person = session.scalars(select(Participant)).one()
        person.person_hash = enrolments._hash(SECRET, "prolific", "ANN")
        assert person.person_hash != person_hash(SECRET, "prolific", "ANN")
        assert join(session, wave, "ann", submission_id="visit of ANN").enrolment.participant_id == person.id
        later = new_wave(session, wave="later", not_if_took_part_in=[WAVE])
        assert join(session, later, "ann").enrolment.ending == "ineligible"


def test_sixty_invented_ids_take_no_place_and_no_money(app: Flask, wave: None) -> None:
    client = app.test_client()
    answers = Counter(client.post(door_of(f"invented {number}")).status_code for number in range(60))
    assert answers == {303: 40, 429: 20}
    with reading() as session:
        row = find_wave(session, WAVE)
        assert (places_taken(session, row), committed(session, row)) == (0, 0)
    refused = client.post(door_of("one more"))
    assert "Many people have come from your network within a minute." in text_of(refused)
    elsewhere = {"REMOTE_ADDR": "192.0.2.7"}
    ann = app.test_client().post(door_of("ann"), environ_base=elsewhere)
    assert ann.status_code == 303
    assert app.test_client().post(ann.location, data={"step": "consent", "part": "yes"}).status_code == 303
    assert taken() == 1


def test_sixty_invented_ids_that_agree_within_a_minute_take_fifteen_places(app: Flask) -> None:
    with writing() as session:
        new_wave(session, places=40)
    client, answers, form = app.test_client(), [], {"step": "consent", "part": "yes", "training": "yes"}
    for number in range(60):
        answer = client.post(door_of(f"invented {number}"))
        if answer.location is not None:
            answers.append(client.post(answer.location, data=form))
    assert Counter(answer.status_code for answer in answers) == {303: 15, 429: 25}
    assert taken() == 15
    page = answers[-1]
    assert "Please wait a minute, and press “Agree and go on” again." in text_of(page)
    assert len(re.findall(r"<input[^>]* checked", page.text)) == 2
    elsewhere = {"REMOTE_ADDR": "192.0.2.7"}
    address = app.test_client().post(door_of("ann"), environ_base=elsewhere).location or ""
    assert app.test_client().post(address, data=form, environ_base=elsewhere).status_code == 303
    assert taken() == 16


def test_consents_from_one_ipv6_network_count_together(make_app: Callable[..., Flask]) -> None:
    app = make_app(CONSENTS_PER_MINUTE=2)
    with app.app_context(), writing() as session:
        new_wave(session)
    found = []
    for at in range(1, 4):
        network = {"REMOTE_ADDR": f"2001:db8:1:1::{at}"}
        address = app.test_client().post(door_of(str(at)), environ_base=network).location or ""
        found.append(app.test_client().post(address, data={"step": "consent", "part": "yes"}, environ_base=network))
    assert [answer.status_code for answer in found] == [303, 303, 429]


def test_a_class_of_thirty_behind_one_address_comes_in_and_may_come_back(app: Flask, wave: None) -> None:
    browsers = {name: app.test_client() for name in (f"person {number}" for number in range(30))}
    for _ in range(3):
        assert {client.post(door_of(name)).status_code for name, client in browsers.items()} == {303}


def test_people_of_one_ipv6_network_count_as_one_address(make_app: Callable[..., Flask]) -> None:
    app = make_app(ARRIVALS_PER_MINUTE=2)
    with app.app_context(), writing() as session:
        new_wave(session)
    found = [
        app.test_client().post(door_of(str(at)), environ_base={"REMOTE_ADDR": f"2001:db8:1:1::{at}"}).status_code
        for at in range(1, 4)
    ]
    assert found == [303, 303, 429]


def test_the_limit_can_be_taken_away(make_app: Callable[..., Flask]) -> None:
    app = make_app(ARRIVALS_PER_MINUTE=0)
    with app.app_context(), writing() as session:
        new_wave(session)
    assert {app.test_client().post(door_of(str(at))).status_code for at in range(45)} == {303}


# ---- Places ------------------------------------------------------------------------


def test_a_place_is_taken_with_the_consent(app: Flask, wave: None) -> None:
    ann = Walker(app.test_client(), door_of("ann"))
    assert taken() == 0
    ann.send()  # neither yes nor no
    assert taken() == 0
    ann.send(part="yes")
    assert taken() == 1
    assert people()[0].agreed_at is not None
    for name in ("ben", "cem"):
        Walker(app.test_client(), door_of(name)).send(part="yes")
    dua = Walker(app.test_client(), door_of("dua"))
    assert dua.heading == "All places are taken."


def test_of_ten_who_agree_for_the_last_place_one_gets_it(app: Flask, engine: Engine) -> None:
    with writing() as session:
        number = new_wave(session, places=3).id
        wave = find_wave(session, WAVE)
        tokens = [str(arrive(session, wave, f"late {each}").enrolment.token) for each in range(10)]
        for name in ("ann", "ben"):
            join(session, wave, name)
    ready, endings = threading.Barrier(10), []

    def agree(token: str) -> None:
        def act(session: Any) -> str | None:
            progress = find_progress_by_token(session, token, lock=True)
            enrolments.take_place(session, progress)
            return progress.enrolment.ending

        ready.wait()
        endings.append(transact_with_retry(engine, act, 60))

    threads = [threading.Thread(target=agree, args=(token,)) for token in tokens]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(endings) == {None: 1, "full": 9}
    with reading() as session:
        assert places_taken(session, find_wave(session, WAVE)) == 3
        assert session.get_one(Enrolment, 1).wave_id == number


def test_who_was_turned_away_as_full_begins_when_a_place_is_free(app: Flask) -> None:
    with writing() as session:
        new_wave(session, places=1)
    ann, ben = (Walker(app.test_client(), door_of(name)) for name in ("ann", "ben"))
    ann.send(part="yes")
    ben.send(part="yes")
    assert ben.heading == "All places are taken."
    assert "A place may become free" in text_of(ben.page)
    ben.send("done")
    assert ben.heading == "All places are taken."
    assert text_of(ben.client.get(ben.address)) == text_of(ben.page)
    ann.client.post(f"{ann.address}/leave", data={"act": "stop"})
    ben.look()
    ben.send("done")
    assert ben.step == "consent"
    ben.send(part="yes")
    assert ben.step == "instructions 1"
    assert [(row.ending, row.holds_place) for row in people()] == [("withdrawn", False), (None, True)]
    with writing() as session:
        finish(session, find_progress_by_token(session, ben.address.rpartition("/")[2], lock=True), "completed")
    assert "$5.00" in ben.look()
    cem = Walker(app.test_client(), door_of("cem"))
    assert cem.heading == "All places are taken."
    with writing() as session:
        close(session, find_wave(session, WAVE))
    assert "A place may become free" not in cem.look()


def test_who_was_full_is_let_in_at_the_door_as_well(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session, places=1)
        ann = join(session, wave, "ann").enrolment.id
    ben = Walker(app.test_client(), door_of("ben"))
    assert ben.heading == "All places are taken."
    with writing() as session:
        end(session, find_progress(session, ann), "withdrawn")
    again = Walker(app.test_client(), door_of("ben"))
    assert (again.address, again.step) == (ben.address, "consent")


def test_who_closed_the_first_page_and_was_given_up_may_begin_later(app: Flask, wave: None) -> None:
    ann = Walker(app.test_client(), door_of("ann"))
    with writing() as session:
        assert end_silent(session, 1, datetime.now(UTC) + timedelta(days=2)) == []
    assert "You had not begun yet." in ann.look()
    ann.send("done")
    ann.send(part="yes")
    assert ann.step == "instructions 1"


@pytest.mark.parametrize("ended", [None, "inactive", "withdrawn", "declined", "full"])
def test_who_never_agreed_has_not_taken_part(app: Flask, ended: Any) -> None:
    with writing() as session:
        pilot = new_wave(session, wave="pilot")
        progress = arrive(session, pilot, "ann")
        if ended is not None:
            end(session, progress, ended)
        join(session, pilot, "ben")
        wave = new_wave(session, not_if_took_part_in=["two-models:pilot"])
        assert join(session, wave, "ann").enrolment.ending is None
        assert join(session, wave, "ben").enrolment.ending == "ineligible"


def test_the_page_of_the_wave_counts_who_opened_the_link_and_did_not_agree(
    app: Flask, wave: None, signed_in_client: FlaskClient
) -> None:
    for name in ("ann", "ben"):
        Walker(app.test_client(), door_of(name))
    Walker(app.test_client(), door_of("cem")).send(part="yes")
    shown = text_of(signed_in_client.get("/admin/studies/waves/1"))
    assert "2 people opened it and have not agreed, and take no place" in shown
    assert "1 place taken" in shown


@pytest.fixture
def signed_in_client(app: Flask) -> FlaskClient:
    return signed_in(app)
