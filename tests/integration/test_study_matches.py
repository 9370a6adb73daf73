"""The matches of a study: how they begin, when replies come, and what follows their end."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app.core.extensions import reading, writing
from app.core.failures import MODEL_FAULT
from app.games import GAMES
from app.matches import live
from app.matches.lobby import person_in
from app.matches.stored import StoredMatch, StoredSeat, load
from app.matches.turns import play_turn
from app.models import Consent, EventRow, GenerationRow, LanguageModel, MatchRow, Payment, SeatRow, StudyEvent
from app.registry import PERSON, add_api_model, add_scripted_model
from app.studies import matches
from app.studies.progress import find_progress
from app.web import tickets
from app.web.sockets.rooms import Room
from tests.stack import wait_until
from tests.stub_openai import StubServer
from tests.study_matches import enrolled, go_to, loaded
from workers.upkeep import look_after

TWO_MODELS, TABOO = "two-models", "taboo-roles"
SCRIPTED = ("b: tiny", "b: casual")


@pytest.fixture(autouse=True)
def casual(engine: Engine) -> None:
    """A second model beside the scripted one."""
    with writing(engine) as session:
        add_scripted_model(session, "casual", None, {"manner": "casual"})


@pytest.fixture
def enrol(engine: Engine, tmp_path: Path) -> Any:
    """Enrols a person in an example whose file has other words in it; gives the enrolment's number."""

    def make(study: str = TWO_MODELS, *replaced: tuple[str, str], **planned: Any) -> int:
        with writing(engine) as session:
            return enrolled(session, loaded(session, tmp_path, study, SCRIPTED, *replaced), **planned).enrolment.id

    return make


def begin(engine: Engine, enrolment: int, key: str) -> StoredMatch:
    """The match of the step of that key, which becomes the one that is due."""
    with writing(engine) as session:
        progress = find_progress(session, enrolment, lock=True)
        return matches.start(session, progress, go_to(progress, key))


def follow(engine: Engine, enrolment: int) -> tuple[StoredMatch | None, str | None]:
    """What follows the match that is over, and how the enrolment has ended."""
    with writing(engine) as session:
        progress = find_progress(session, enrolment, lock=True)
        return matches.after(session, progress, progress.step), progress.enrolment.ending


def fail(engine: Engine, record: StoredMatch) -> None:
    with writing(engine) as session:
        live.abort(session, load(session, record.id, lock=True), MODEL_FAULT, 1 - person_in(record), "no valid move")


def row_of(session: Session, record: StoredMatch) -> tuple[MatchRow, SeatRow, SeatRow]:
    person = person_in(record)
    return (
        session.get_one(MatchRow, record.id),
        session.get_one(SeatRow, (record.id, person)),
        session.get_one(SeatRow, (record.id, 1 - person)),
    )


def test_a_match_is_what_the_plan_and_the_design_say(engine: Engine, enrol: Any) -> None:
    enrolment = enrol(TWO_MODELS, seat=1, first=1)
    record = begin(engine, enrolment, "match 2")
    with reading(engine) as session:
        progress = find_progress(session, enrolment)
        plan = progress.enrolment.plan["matches"][1]  # type: ignore[index]
        row, person, model = row_of(session, record)
        config = GAMES["negotiation"].material.config_of(progress.version.design["material"][1])  # type: ignore[union-attr]
        assert {**row.config, **config} == row.config
        assert (row.config["objective"], row.config["limit"], row.config["first"]) == (
            plan["condition"]["objective"],
            30,
            1,
        )
        assert (row.arm_id, row.position, row.source) == (progress.enrolment.arm_id, 1, "live")
        assert (person.enrolment_id, person.participant_id) == (enrolment, progress.enrolment.participant_id)
        assert (person.seat, model.enrolment_id) == (1, None)
        played = session.get_one(LanguageModel, model.language_model_id)
        assert played.name == {"a": "scripted", "b": "casual"}[plan["condition"]["model"]]
        assert row.options == {
            "reply_after": {"seconds_per_word": 0.3, "least": 2, "most": 15},
            "feedback": "own points", "retries": 2, "partner_told": "computer", "matches": 4,
        }  # fmt: skip
        assert (record.match.clocks.turn, record.match.clocks.match) == (120, 600)
        assert load(session, record.id) == record


def test_a_step_has_one_match_however_often_it_is_begun(engine: Engine, enrol: Any) -> None:
    enrolment = enrol()
    first, again = begin(engine, enrolment, "match 1"), begin(engine, enrolment, "match 1")
    assert first.id == again.id
    with writing(engine) as session:
        live.submit(session, live.MoveSubmission(first.id, 0, None), instant=False)
    assert begin(engine, enrolment, "match 1").id == first.id
    assert begin(engine, enrolment, "match 2").id != first.id


def test_practice_counts_as_no_match_and_is_played_against_its_own_partner(engine: Engine, enrol: Any) -> None:
    record = begin(engine, enrol(TABOO, ("against: scripted", "against: casual")), "practice 1")
    with reading(engine) as session:
        row, person, model = row_of(session, record)
        assert row.position is None
        assert person.enrolment_id is not None
        assert session.get_one(LanguageModel, model.language_model_id).name == "casual"


def test_what_happens_to_a_model_in_the_registry_does_not_stop_a_match(engine: Engine, enrol: Any) -> None:
    enrolment = enrol()
    with writing(engine) as session:
        for row in session.scalars(select(LanguageModel)):
            row.name, row.archived_at, row.offered_to_people = f"old-{row.id}", datetime.now(UTC), False
    record = begin(engine, enrolment, "match 1")
    assert record.seats[1].spec is not None


@pytest.mark.parametrize("given", [None, True, False])
def test_a_persons_consent_to_training_is_kept_with_the_seat(engine: Engine, enrol: Any, given: bool | None) -> None:
    enrolment = enrol()
    if given is not None:
        with writing(engine) as session:
            person = find_progress(session, enrolment).enrolment.participant_id
            session.add(
                Consent(participant_id=person, kind="training", text_version="x", given=given, at=datetime.now(UTC))
            )
    record = begin(engine, enrolment, "match 1")
    with reading(engine) as session:
        assert row_of(session, record)[1].training_consent is given


def test_a_match_that_a_model_broke_off_is_replaced_once(engine: Engine, enrol: Any) -> None:
    enrolment = enrol()
    first = begin(engine, enrolment, "match 1")
    fail(engine, first)
    second, ending = follow(engine, enrolment)
    assert second is not None
    assert second.options is not None
    assert (second.id != first.id, second.options.replaces, ending) == (True, first.id, None)
    assert begin(engine, enrolment, "match 1").id == second.id
    fail(engine, second)
    assert follow(engine, enrolment) == (None, None)
    with reading(engine) as session:
        logged = session.scalars(select(StudyEvent).where(StudyEvent.kind == "match").order_by(StudyEvent.id)).all()
        assert [event.body.get("replaces") for event in logged] == [None, first.id]


@pytest.mark.parametrize(("then", "ending"), [("pay and end the match", None), ("pay and end the study", "technical")])
def test_a_design_may_end_the_match_or_the_study_with_a_models_failure(
    engine: Engine, enrol: Any, then: str, ending: str | None
) -> None:
    enrolment = enrol(TWO_MODELS, ("feedback: own points", f"model_failure: {{then: {then}}}"))
    fail(engine, begin(engine, enrolment, "match 1"))
    assert follow(engine, enrolment) == (None, ending)


def test_who_leaves_a_match_has_withdrawn(engine: Engine, enrol: Any) -> None:
    enrolment = enrol()
    record = begin(engine, enrolment, "match 1")
    assert follow(engine, enrolment) == (None, None)
    with writing(engine) as session:
        live.submit(session, live.MoveSubmission(record.id, 0, None), instant=False)
    assert follow(engine, enrolment) == (None, "withdrawn")


AT_ONCE = ("seconds_per_word: 0.3, least: 2, most: 15", "seconds_per_word: 0, least: 0, most: 0")
AFTER_A_SECOND = ("seconds_per_word: 0.3, least: 2, most: 15", "seconds_per_word: 0, least: 1, most: 1")


def events_of(engine: Engine, record: StoredMatch) -> list[EventRow]:
    with reading(engine) as session:
        found = select(EventRow).where(EventRow.match_id == record.id).order_by(EventRow.seq)
        return list(session.scalars(found))


def test_a_scripted_partner_takes_as_long_as_the_design_says(engine: Engine, enrol: Any, desk: Any) -> None:
    record = begin(engine, enrol(TWO_MODELS, AFTER_A_SECOND, first=1), "practice 1")
    if not record.model_to_move:  # who begins a practice match is drawn
        with writing(engine) as session:
            receipt = live.submit(session, live.MoveSubmission(record.id, 0, "[message] Hello."), instant=True)
        assert len(receipt.steps) == 1
    assert play_turn(desk(READING_WORDS_PER_MINUTE=0), record.id)
    *_, asked, replied = events_of(engine, record)
    assert replied.timing is not None
    assert replied.timing["target"] == 1
    assert replied.at - asked.at >= timedelta(seconds=1)


def test_a_reply_that_is_late_says_by_how_much(engine: Engine, enrol: Any, desk: Any) -> None:
    record = begin(engine, enrol(TWO_MODELS, AT_ONCE, first=1), "match 1")
    assert play_turn(desk(), record.id)
    *_, replied = events_of(engine, record)
    assert replied.timing is not None
    assert (replied.timing["target"], replied.timing["late"] >= 0) == (0, True)


def test_a_model_is_asked_as_often_as_the_design_says(engine: Engine, enrol: Any, desk: Any, stub: StubServer) -> None:
    with writing(engine) as session:
        spec = {"base_url": stub.url, "model": "mute", "key_env": ""}
        add_api_model(session, "mute", None, ["negotiation"], spec)
    stub.script("mute", *["no prefix"] * 9)
    retried = ("feedback: own points", "model_failure: {retries: 1, then: pay and end the match}")
    enrolment = enrol(TWO_MODELS, AT_ONCE, retried, ("a: scripted", "a: mute"), first=1)
    with reading(engine) as session:
        planned = find_progress(session, enrolment).enrolment.plan["matches"]  # type: ignore[index]
    number = next(at for at, match in enumerate(planned, 1) if match["condition"]["model"] == "a")
    record = begin(engine, enrolment, f"match {number}")
    assert play_turn(desk(), record.id)
    assert [event.kind for event in events_of(engine, record)] == [
        "started", "violation", "violation", "aborted", "ended"
    ]  # fmt: skip
    assert len(stub.requests) == 2


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (["[message] Write to me at ada@example.org.", "[message] See www.example.org/me", "[message] Hello."], True),
        (["[message] Write to me at ada@example.org."] * 3, False),
    ],
)
def test_what_people_should_not_read_is_drawn_again_twice(
    engine: Engine, enrol: Any, desk: Any, stub: StubServer, texts: list[str], shown: bool
) -> None:
    with writing(engine) as session:
        add_api_model(session, "odd", None, ["negotiation"], {"base_url": stub.url, "model": "odd", "key_env": ""})
    stub.script("odd", *texts)
    enrolment = enrol(TWO_MODELS, AT_ONCE, ("a: scripted", "a: odd"), first=1)
    with reading(engine) as session:
        planned = find_progress(session, enrolment).enrolment.plan["matches"]  # type: ignore[index]
    number = next(at for at, match in enumerate(planned, 1) if match["condition"]["model"] == "a")
    record = begin(engine, enrolment, f"match {number}")
    assert play_turn(desk(), record.id)
    with reading(engine) as session:
        played = load(session, record.id).match
        calls = session.execute(select(GenerationRow.text, GenerationRow.error).order_by(GenerationRow.id)).all()
    assert [text for text, _ in calls] == texts
    hidden = ["not shown to the person: contact data", "not shown to the person: a link", None]
    assert [error for _, error in calls] == (hidden if shown else hidden[:1] * 3)
    assert [entry.text for entry in played.view(0).transcript] == (["[message] Hello."] if shown else [])
    assert played.over != shown
    if not shown:
        again, ending = follow(engine, enrolment)
        assert (again is not None, ending) == (True, None)  # as after any failure of a model


def test_how_a_person_wrote_a_move_is_kept_in_a_study_alone(engine: Engine, enrol: Any) -> None:
    record = begin(engine, enrol(), "match 1")
    timing = {"first_input": 900, "sent": 4100.5, "pasted": 12}
    move = live.MoveSubmission(record.id, 0, "[message] Hello.", "one", 0, timing)
    with writing(engine) as session:
        assert live.submit(session, move, instant=False).answer.ok
        people = StoredSeat(PERSON), StoredSeat(PERSON)
        guests = live.create(session, "negotiation", {"first": 0}, people, seed=1, source="live", instant=False)
        assert live.submit(session, replace(move, match_id=guests.id), instant=False).answer.ok
    assert events_of(engine, record)[-1].timing == timing
    assert events_of(engine, guests)[-1].timing is None


@pytest.mark.parametrize("key", ["match 1", "practice 1"])
def test_who_lets_the_clock_of_a_turn_run_out_is_asked_whether_they_are_there(
    engine: Engine, enrol: Any, app: Flask, key: str
) -> None:
    enrolment = enrol(TWO_MODELS, ("turn: 2 min", "turn: 0.1 s"))
    record = begin(engine, enrolment, key)
    if record.model_to_move:
        with writing(engine) as session:
            live.submit(session, live.MoveSubmission(record.id, 1, "[message] Hello."), instant=False)
    told: list[str] = []
    wait_until(lambda: _looked_after(engine, app, told) and record.id in told, "the clock to run out")
    with reading(engine) as session:
        assert session.get_one(MatchRow, record.id).reason == "timeout"
        progress = find_progress(session, enrolment)
        assert progress.enrolment.ending is None
        asked = matches.lapse_to_ask_about(session, progress)
        assert asked is not None
        assert (asked.until is None) == (key == "practice 1")


def test_a_match_that_takes_too_long_is_nobodys_fault(engine: Engine, enrol: Any, app: Flask) -> None:
    enrolment = enrol(TWO_MODELS, ("turn: 2 min, match: 10 min", "match: 0.1 s"))
    record = begin(engine, enrolment, "match 1")
    told: list[str] = []
    wait_until(lambda: _looked_after(engine, app, told) and record.id in told, "the clock to run out")
    assert follow(engine, enrolment) == (None, None)


def _looked_after(engine: Engine, app: Flask, told: list[str]) -> bool:
    """One round of upkeep; `told` gets the matches that were ended."""
    look_after(engine, app.config["SETTINGS"], "upkeep", lambda match, _typing: told.append(match))
    return True


def seated(engine: Engine, app: Flask, record: StoredMatch) -> FlaskClient:
    """The browser of the person in a match."""
    client = app.test_client()
    ticket = tickets.issue(app.config["SETTINGS"], record.id, person_in(record))
    assert client.get(f"/play/{record.id}?ticket={ticket}").status_code == 303
    return client


def test_the_page_of_a_match_says_which_it_is_and_leads_nowhere_else(engine: Engine, enrol: Any, app: Flask) -> None:
    enrolment = enrol()
    record = begin(engine, enrolment, "match 2")
    page = seated(engine, app, record).get(f"/play/{record.id}").text
    assert "Game 2 of 4" in page
    assert "Your partner is a computer program." in page
    assert "scripted" not in page
    assert 'href="/"' not in page
    assert Room(record, app.config["SETTINGS"].home).view(person_in(record))["partner"] == "computer"
    practice = begin(engine, enrolment, "practice 1")
    assert "Practice" in seated(engine, app, practice).get(f"/play/{practice.id}").text


def test_a_hidden_partner_is_hidden_in_all_that_a_page_gets(engine: Engine, enrol: Any, app: Flask) -> None:
    record = begin(engine, enrol(TABOO, first=None), "match 1")
    client = seated(engine, app, record)
    pages = client.get(f"/play/{record.id}").text
    assert 'data-not-ready="Your partner is not ready yet."' in pages  # and not that it is being loaded
    with writing(engine) as session:
        live.submit(session, live.MoveSubmission(record.id, 0, None), instant=False)
    pages += client.get(f"/play/{record.id}/result").text
    frames: list[tuple[str, Any]] = []
    room = Room(record, app.config["SETTINGS"].home)
    room.sockets[0].add("a page")
    frames.append(("view", room.view(0)))
    with reading(engine) as session:
        room.follow([load(session, record.id)], lambda event, _sid, payload: frames.append((event, payload)))
    assert frames[-1][1]["status"] == "over"
    found = f"{pages} {json.dumps(frames)}".lower()
    assert [word for word in ("scripted", "program", "language model", "small_model", '"model"') if word in found] == []


@pytest.mark.parametrize(
    ("feedback", "shown", "hidden"),
    [
        ("both", ["What was said", "Partner</h2>", "Continue"], []),
        ("own points", ["You</h2>", "Continue"], ["partner_utility"]),
        ("none", ["This game is over.", "Continue"], ["You</h2>", "Partner</h2>", "Points"]),
    ],
)
def test_the_result_shows_the_points_that_the_design_tells(
    engine: Engine, enrol: Any, app: Flask, feedback: str, shown: list[str], hidden: list[str]
) -> None:
    enrolment = enrol(TWO_MODELS, ("feedback: own points", f"feedback: {feedback}"))
    record = begin(engine, enrolment, "match 1")
    counts = record.match.state.config.to_json()["counts"]
    ask = "[propose] ({} books, {} hats, {} balls)"
    moves = ["[message] Hello.", "[message] Hello.", ask.format(*counts), ask.format(0, 0, 0)]
    with writing(engine) as session:
        for ply, text in enumerate(moves):
            receipt = live.submit(session, live.MoveSubmission(record.id, ply % 2, text), instant=False)
            assert receipt.answer.ok, receipt.answer.message
    page = seated(engine, app, record).get(f"/play/{record.id}/result").text
    assert [text for text in shown if text not in page] == []
    assert [text for text in hidden if text in page] == []
    assert ("counter-big" in page) == (feedback != "none")
    assert page.count("counter-big") == {"both": 2, "own points": 1, "none": 0}[feedback]
    with reading(engine) as session:
        token = find_progress(session, enrolment).enrolment.token
    assert f'href="/s/me/{token}"' in page
    assert "Play again" not in page
    assert 'href="/"' not in page


def test_a_report_from_the_page_leaves_the_match_and_the_study(engine: Engine, enrol: Any, app: Flask) -> None:
    enrolment = enrol()
    with writing(engine) as session:
        find_progress(session, enrolment).enrolment.agreed_at = datetime.now(UTC)
    record = begin(engine, enrolment, "match 1")
    client = seated(engine, app, record)
    page = client.get(f"/play/{record.id}").text
    action = page.partition('class="flow report" method="get" action="')[2].partition('"')[0]
    assert "What went wrong?" in client.get(action).text
    left = client.post(action, data={"reason": "upsetting", "then": "leave", "text": "It insulted me."})
    assert (left.status_code, left.location) == (303, action.removesuffix("/report"))
    with reading(engine) as session:
        assert find_progress(session, enrolment).enrolment.ending == "technical"
        assert session.get_one(MatchRow, record.id).reason == "resigned"
        kept = session.scalars(select(StudyEvent).where(StudyEvent.kind == "report")).one()
        assert (kept.body["text"], kept.body["match"]) == ("It insulted me.", record.id)
        owed = session.scalars(select(Payment.amount).where(Payment.enrolment_id == enrolment).order_by(Payment.id))
        assert list(owed) == [Decimal("5.00"), Decimal("0.25")]  # as for one that a model aborted
