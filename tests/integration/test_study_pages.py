"""The pages of a study: the whole way, and whatever people do beside it, on both databases."""

import html
import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, func, select

from app.core.extensions import reading, writing
from app.matches.turns import WorkerContext
from app.models import Consent, Enrolment, MatchRow, Participant, Payment, StudyEvent, Submission, Wave
from app.registry import add_api_model
from app.studies.answers import finish
from app.studies.endings import EndingName
from app.studies.previews import preview_token
from app.studies.progress import find_progress_by_token
from app.studies.waves import close, find_wave, pause, reopen
from tests.study_pages import AT_ONCE, MATCH, Walker, door_of, play_out, prolific_id, text_of
from tests.waves import changed, join, loaded_study, new_wave, store_study

PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Mobile/15E148 Safari/604.1"
TRUST, PICK = {"trust": "5"}, {"read_it": "2", "effort": "6"}
LAST = {"same": "no", "ai_help": "never", "read_this": "green"}


@pytest.fixture
def wave(app: Flask) -> None:
    with writing() as session:
        store_study(session, changed(loaded_study(), same_for_all=AT_ONCE))
        new_wave(session, codes={"completed": "C7RX94LM", "quiz_failed": "CQUIZ", "withdrawn": "CLEFT"}, places=3)


@pytest.fixture
def client(app: Flask, wave: None) -> FlaskClient:
    return app.test_client()


def come(app: Flask, name: str = "ann", wave: str = "main") -> Walker:
    return Walker(app.test_client(), door_of(name, wave))


def enrolment(name: str = "ann") -> Enrolment:
    with reading() as session:
        number = session.scalar(select(func.max(Enrolment.id)))
        return session.get_one(Enrolment, number)


def count(model: Any) -> int:
    with reading() as session:
        return int(session.scalar(select(func.count()).select_from(model)) or 0)


def right_answer(walker: Walker) -> str:
    """The right answer of the example's first wording, by the goal in the instructions."""
    return "10" if "together" in text_of(walker.client.get(f"{walker.address}/rules")) else "6"


def up_to_practice(walker: Walker) -> None:
    walker.send(part="yes")
    walker.send()
    walker.answer_quiz(right_answer(walker))
    assert walker.step == "practice 1"


# ---- The whole way -----------------------------------------------------------------


def test_the_whole_way_of_two_models(
    app: Flask, engine: Engine, client: FlaskClient, desk: Callable[..., WorkerContext]
) -> None:
    ann = come(app)
    assert ann.title == "Consent: Sharing things"
    assert "Step 1 of 10 : Consent" in text_of(ann.page)
    ann.send(part="yes", training="yes")
    assert ann.step == "instructions 1"
    ann.send()
    ann.answer_quiz(right_answer(ann))
    started = ann.send()
    assert MATCH.search(started.location)
    seen = []
    for at in range(5):
        match = MATCH.search(started.location or "")
        assert match is not None, ann.heading
        assert ann.client.get(ann.address).location == started.location  # back leads into the match
        play_out(engine, desk, match[1])
        ann.look()
        seen.append(ann.title.partition(":")[0])
        if at > 0:  # about the partner of that game alone
            ann.send()
            assert ann.step == f"survey after match {at}"
            ann.send(**TRUST)
        if at == 2:  # after the first block: questions, the other goal and its quiz come first
            assert ann.step == "survey after block 1"
            ann.send(**PICK)
            assert "The next games have a new goal." in text_of(ann.page)
            ann.send()
            ann.answer_quiz(right_answer(ann))
            assert ann.step == "match 3"
        if at < 4:
            started = ann.send()
    assert seen == ["Practice is over", *(f"Game {number} is over" for number in range(1, 5))]
    ann.send(**PICK)
    assert ann.send(**{**LAST, "same": ""}).status_code == 400
    ann.send(**LAST)
    assert ann.step == "debrief"
    told = text_of(ann.page)
    assert "No person wrote to you: every partner was a computer program." in told
    assert ann.send(data="yes").status_code == 400
    ann.send(data="yes", training="no")
    done = text_of(ann.page)
    assert "That’s all. Thank you!" in done
    assert "C7RX94LM" in done
    assert 'href="https://app.prolific.com/submissions/complete?cc=C7RX94LM"' in ann.page.text
    with reading() as session:
        paid = {row.key: row.amount for row in session.scalars(select(Payment))}
        consents = session.execute(select(Consent.kind, Consent.given).order_by(Consent.id)).all()
        positions = session.scalars(select(MatchRow.position).order_by(MatchRow.started_at)).all()
    assert f"${sum(paid.values()):.2f}" in done
    assert ("training", True) in consents[:2]
    assert consents[-1] == ("training", False)
    assert positions == [None, 0, 1, 2, 3]
    row = enrolment()
    assert (row.ending, row.stage) == ("completed", "done")
    assert row.answers["survey after block 1"]["values"] == {"effort": 6, "read_it": 2}
    assert row.answers["survey end"]["values"] == {"same": "no", "ai_help": "never", "read_this": "green"}
    ann.send("debrief", data="no", training="no")  # the old form once more
    assert enrolment().ending == "completed"
    assert count(Consent) == len(consents)


@pytest.mark.parametrize("told", ["hidden", "computer"])
def test_who_receives_what_people_write_is_named_and_tells_no_hidden_partner(app: Flask, told: str) -> None:
    options = {"model": "m", "base_url": "https://models.example/v1", "key_env": ""}
    with writing() as session:
        add_api_model(session, "tiny", None, ["taboo"], options)
        session.flush()
        store_study(session, changed(loaded_study("taboo-roles"), partner_told=told))
        new_wave(session, of="taboo-roles", provider={"link": {}}, codes={})
    page = text_of(Walker(app.test_client(), "/s/taboo-roles/main").page)
    assert "What you write is sent to models.example" in page
    assert ("which runs a program that answers" in page) == (told == "computer")


def test_the_whole_way_of_taboo(app: Flask, engine: Engine, desk: Callable[..., WorkerContext]) -> None:
    with writing() as session:
        store_study(session, changed(loaded_study("taboo-roles"), same_for_all=AT_ONCE))
        new_wave(session, of="taboo-roles", provider={"link": {}}, codes={})
    bob = Walker(app.test_client(), "/s/taboo-roles/main")
    assert "computer program" not in text_of(bob.page)  # what partners are is hidden until the debrief
    bob.send(part="yes")
    bob.send()
    bob.answer_quiz("the attacker", "once")
    assert bob.step == "practice 1"
    for _ in range(5):
        match = MATCH.search(bob.send().location or "")
        assert match is not None
        play_out(engine, desk, match[1])
        bob.look()
    bob.send()
    ratings = {"felt__clever": "1", "felt__friendly": "5", "felt__odd": "3"}
    given = {"partner": "not sure", "fun": "70", "age__skip": "skip", "first_check": "4", "second_check": "apple"}
    bob.send(**ratings, **given)
    assert bob.step == "partner"
    bob.send(partner="computer")
    assert "waited as long" not in text_of(bob.page)  # they answered at once
    bob.send(data="yes", training="yes")
    assert "That’s all. Thank you!" in text_of(bob.page)
    values = enrolment().answers["survey end"]["values"]
    assert values["felt"] == {"clever": 1, "friendly": 5, "odd": 3}
    assert (values["age"], values["fun"]) == ({"not_said": True}, 70)
    assert enrolment().answers["partner"]["values"] == {"partner": "computer"}


# ---- The door ------------------------------------------------------------------------


def test_looking_at_the_door_leaves_nothing_behind(client: FlaskClient) -> None:
    door = door_of("ann")
    for response in (client.get(door), client.head(door), client.get(door, headers={"Purpose": "prefetch"})):
        assert response.status_code == 200
        assert response.headers["Cache-Control"] == "no-store"
    assert count(Participant) == 0
    shown = text_of(client.get(door))
    assert "25 minutes" in shown
    assert "$5.00" in shown
    assert "up to $5.00" in shown


def test_a_link_without_the_recruiters_parameters_lets_nobody_in(client: FlaskClient) -> None:
    ann = prolific_id("ann")
    unfilled = door_of("ann").replace(ann, "{{%25PROLIFIC_PID%25}}")
    # An id with a comma would keep the file of all from being written; Prolific's have 24 hexadecimal digits.
    of_none = [
        door_of("ann").replace(ann, each)
        for each in ("x" * 201, "ann,99", "=1%2B1", "ann%20b", "%00", "ann", ann[:-1], f"{ann}0", f"{ann[:-1]}g")
    ]
    for door in ("/s/two-models/main", "/s/two-models/main?PROLIFIC_PID=", unfilled, *of_none):
        assert "This link is not complete." in text_of(client.get(door))
        assert client.post(door).status_code == 200
    assert count(Participant) == 0


def test_a_device_that_does_not_fit_is_told_before_anything_is_recorded(app: Flask) -> None:
    with writing() as session:
        store_study(session, changed(loaded_study(), devices=["desktop"]))
        new_wave(session)
    door = door_of("ann")
    client = app.test_client()
    for response in (client.get(door, headers={"User-Agent": PHONE}), client.post(door, headers={"User-Agent": PHONE})):
        assert "does not run on the device that you are using" in text_of(response)
    assert "does not run" in text_of(client.post(door, data={"touch": "yes"}))  # a tablet that says it is a desktop
    assert count(Participant) == 0
    assert client.post(door).status_code == 303


def test_who_comes_back_through_the_door_is_where_they_were(app: Flask, client: FlaskClient) -> None:
    ann = come(app)
    ann.send(part="yes")
    again = come(app)
    assert (again.address, again.step) == (ann.address, "instructions 1")
    assert count(Participant) == 1


def test_a_closed_wave_says_so_and_who_is_in_goes_on(app: Flask, client: FlaskClient) -> None:
    ann, cem = come(app), come(app, "cem")
    ann.send(part="yes")
    with writing() as session:
        close(session, find_wave(session, "two-models:main"))
    assert "Enrolment in this study is closed." in text_of(client.get(door_of("ben")))
    assert "is closed" in come(app, "ben").heading
    cem.send(part="yes")  # who had only read the first page
    assert "is closed" in cem.heading
    ann.send()
    assert ann.step == "quiz 1"


def test_a_paused_wave_turns_nobody_away_for_good(app: Flask, client: FlaskClient) -> None:
    ann, cem = come(app), come(app, "cem")
    ann.send(part="yes")
    with writing() as session:
        pause(session, find_wave(session, "two-models:main"))
    door = door_of("ben")
    for response in (client.get(door), client.post(door)):
        assert response.status_code == 200
        assert "This study is paused. Please come back later." in text_of(response)
        assert "return it on Prolific" in text_of(response)
    assert count(Participant) == count(Submission) == 2
    assert come(app).address == ann.address  # who is in goes on
    waits = cem.send(part="yes")
    assert (waits.status_code, cem.step) == (409, "consent")
    assert "This study is paused. Please come back later." in text_of(waits)
    with writing() as session:
        reopen(session, find_wave(session, "two-models:main"))
    assert come(app, "ben").step == "consent"
    cem.send(part="yes")
    assert cem.step == "instructions 1"


def test_a_link_of_another_study_of_the_recruiter_records_nobody(app: Flask, client: FlaskClient) -> None:
    door = door_of("ann")
    for response in (client.get(door.replace("66f0c1", "77a1b2")), client.post(door.replace("66f0c1", "77a1b2"))):
        assert response.status_code == 200
        assert "This link belongs to another study." in text_of(response)
        assert "Read on, then decide" not in response.text
    cut_off = client.post(door.replace("&STUDY_ID=66f0c1", ""))
    assert "This link is not complete." in text_of(cut_off)
    assert count(Participant) == 0
    assert client.post(f"{door}&STUDY_ID=66f0c1").status_code == 303


@pytest.mark.parametrize(("ending", "paid"), [("full", "0.00"), ("closed", "0.00"), ("ineligible", "0.30")])
def test_whoever_is_turned_away_at_the_door_is_paid_for_being_screened_out_alone(
    app: Flask, ending: str, paid: str
) -> None:
    with writing() as session:
        store_study(session, changed(loaded_study(), endings={ending: {"base": "0.30"}}))
        new_wave(session, wave="pilot")
        wave = new_wave(session, places=1, not_if_took_part_in=["two-models:pilot"])
        if ending != "ineligible":
            join(session, wave, "ann")
        if ending == "closed":
            close(session, wave)
    if ending == "ineligible":
        come(app, "ben", "pilot").send(part="yes")
    ben = come(app, "ben")
    with reading() as session:
        assert enrolment().ending == ending
        assert [str(row.amount) for row in session.scalars(select(Payment))] == [paid, "0.00"]
    assert ("Nothing is paid for this." if paid == "0.00" else f"${paid}") in text_of(ben.page)


def test_who_comes_to_a_full_wave_is_told_and_not_paid(app: Flask, client: FlaskClient) -> None:
    for name in ("ann", "ben", "cat"):
        come(app, name).send(part="yes")
    dan = come(app, "dan")
    assert dan.heading == "All places are taken."
    assert "Nothing is paid for this." in text_of(dan.page)
    assert "What I agreed to" not in text_of(dan.page)


# ---- On the way ----------------------------------------------------------------------


def test_who_declines_ends_and_stays_so(app: Flask, client: FlaskClient) -> None:
    ann = come(app)
    ann.send(answer="no")
    assert ann.heading == "You are not taking part."
    shown = text_of(ann.page)
    assert "Nothing is paid for this." in shown
    assert "Games 1–2" not in shown, "no step that was ahead is called done"
    assert "What I agreed to" not in shown
    ann.send("consent", part="yes")
    assert (enrolment().ending, count(Consent)) == ("declined", 0)


def test_consent_needs_a_tick_and_training_is_another_question(app: Flask, client: FlaskClient) -> None:
    ann = come(app)
    assert not re.search(r"<input[^>]* checked", ann.page.text)
    assert ann.send(training="yes").status_code == 400
    assert "Please tick this box" in text_of(ann.page)
    ann.send("consent", part="yes")
    with reading() as session:
        given = {row.kind: row.given for row in session.scalars(select(Consent))}
    assert given == {"participation": True, "training": False}


def test_the_question_about_training_names_who_gets_the_games_for_it(app: Flask) -> None:
    with writing() as session:
        store_study(session, changed(loaded_study(), consent={"training_recipients": ["OpenAI", "Tinker"]}))
        new_wave(session)
    ann = come(app)
    told = "For training, they may be sent to: OpenAI, Tinker."
    assert told in text_of(ann.page)
    before = ann.page.text.partition('name="training"')[0]
    assert told in before  # it is read before it is ticked


def test_publication_is_asked_apart_with_an_empty_box_that_says_that_copies_stay(app: Flask) -> None:
    with writing() as session:
        store_study(session, changed(loaded_study(), consent={"publication": "ask"}))
        new_wave(session)
    ann = come(app)
    assert not re.search(r"<input[^>]* checked", ann.page.text)
    assert "Copies cannot be recalled" in text_of(ann.page).partition("may also be published")[0]
    ann.send("consent", part="yes", training="yes")
    with reading() as session:
        assert {row.kind: row.given for row in session.scalars(select(Consent))} == {
            "participation": True, "training": True, "publication": False,
        }  # fmt: skip
    ben = come(app, "ben")
    ben.send("consent", part="yes", training="yes", publication="yes")
    left = text_of(ben.client.get(f"{ben.address}/leave"))
    assert "4. Publish no more of my games" in left
    assert "5. Get my data" in left
    done = ben.client.post(f"{ben.address}/leave", data={"act": "no publication"})
    assert "nothing more of your games is published" in text_of(done)
    with reading() as session:
        rows = session.scalars(select(Consent).where(Consent.given).order_by(Consent.id)).all()
        assert [row.kind for row in rows if row.withdrawn_at is not None] == ["publication"]


def test_who_is_not_asked_about_publication_reads_nothing_of_it(app: Flask, client: FlaskClient) -> None:
    ann = come(app)
    assert "published" not in text_of(ann.page)
    ann.send("consent", part="yes", training="yes")
    assert "Publish" not in text_of(ann.client.get(f"{ann.address}/leave"))
    with reading() as session:
        assert "publication" not in session.scalars(select(Consent.kind)).all()


def test_another_device_by_the_private_link_is_at_the_same_place(app: Flask, client: FlaskClient) -> None:
    ann = come(app)
    link = html.unescape(re.search(r'<output id="link">(.*?)</output>', ann.page.text)[1])  # type: ignore[index]
    up_to_practice(ann)
    started = ann.send().location
    other = app.test_client()
    shown = other.get(link[link.index("/s/") :])
    assert shown.location == started
    assert other.get(started).status_code == 200  # the seat came along


def test_a_quiz_that_is_failed_ends_the_study_with_code_and_pay(app: Flask, client: FlaskClient) -> None:
    ann = come(app)
    ann.send(part="yes")
    ann.send()
    assert ann.send(attempt="0").status_code == 400
    wrong = "24"
    ann.answer_quiz(wrong)
    second = text_of(ann.page)
    assert "You answered: 24." in second
    assert "This is your last try." in second
    assert "You end with 3 points and your partner with 8. What is your score?" in second
    ann.send(attempt="0", q1="0")  # the first form once more: it is no attempt
    assert len(enrolment().answers["quiz 1"]["values"]["attempts"]) == 1
    ann.answer_quiz("24")
    assert ann.heading == "The study ends here."
    shown = text_of(ann.page)
    assert "CQUIZ" in shown
    assert "$1.00" in shown
    assert enrolment().ending == "quiz_failed"


def test_the_rules_end_with_the_games_that_they_are_for(app: Flask, client: FlaskClient) -> None:
    ann = come(app)
    ann.send(part="yes")
    goal = text_of(ann.page)
    ann.send()
    rules = f"{ann.address}/rules"
    shown = text_of(ann.client.get(rules))
    assert ("for yourself" in shown) == ("for yourself" in goal)
    for _ in range(2):
        ann.answer_quiz("24")
    answer = ann.client.get(rules)
    assert (answer.status_code, answer.location) == (303, ann.address)  # not to those of another goal


@pytest.mark.parametrize("ending", ["technical", "partner_left", "quiz_failed", "no_partner", "removed"])
def test_who_has_no_code_for_prolific_is_told_what_to_do_there(
    app: Flask, client: FlaskClient, ending: EndingName
) -> None:
    ann = come(app)
    ann.send(part="yes")
    with writing() as session:
        wave = session.query(Wave).one()
        wave.settings = {**wave.settings, "codes": {"completed": "C7RX94LM"}}
        finish(session, find_progress_by_token(session, ann.address.rpartition("/")[2], lock=True), ending)
    shown = ann.look()
    assert "C7RX94LM" not in shown
    assert "Please return the submission on Prolific" in shown


def test_a_form_for_a_step_that_is_not_due_changes_nothing(app: Flask, client: FlaskClient) -> None:
    ann = come(app)
    ann.send(part="yes")
    for key in ("consent", "survey end", "debrief", "done", "no such step", ""):
        ann.send(key, part="yes", answer="no", data="no", training="no")
        assert ann.step == "instructions 1"
    assert enrolment().ending is None


def test_start_pressed_twice_starts_one_match(app: Flask, client: FlaskClient) -> None:
    ann = come(app)
    up_to_practice(ann)
    first = ann.send("practice 1")
    second = ann.send("practice 1")
    assert first.location == second.location
    assert count(MatchRow) == 1


def test_a_refused_survey_keeps_what_was_written(app: Flask) -> None:
    question = {"id": "words", "text": 20, "ask": "What do you expect?"}
    number = {"id": "age", "number": [18, 110], "ask": "How old are you?"}
    with writing() as session:
        store_study(session, changed(loaded_study(), survey={"start": [question, number]}))
        new_wave(session)
    ann = come(app)
    ann.send(part="yes")
    assert ann.step == "survey start"
    assert ann.send(words="<b>fun</b>", age="7").status_code == 400
    assert "&lt;b&gt;fun&lt;/b&gt;</textarea>" in ann.page.text
    assert 'value="7"' in ann.page.text
    assert "Please enter a valid number." in text_of(ann.page)
    assert "survey start" not in enrolment().answers
    big = ann.client.post(ann.address, data={"step": "survey start", "words": "x" * 1_100_000})
    assert big.status_code == 413
    assert "This is too large: at most 1 MB can be sent" in text_of(big)
    assert f'href="{ann.address}"' in big.text
    ann.send("survey start", words="fun", age="30")
    assert ann.step == "instructions 1"


def test_a_question_that_does_not_apply_is_neither_asked_nor_kept(app: Flask) -> None:
    with writing() as session:
        asked = json.loads(json.dumps(loaded_study().written["survey"]["end"]))
        store_study(session, changed(loaded_study(), survey={"start": asked[:2], "end": asked[2:]}))
        new_wave(session)
    ann = come(app)
    ann.send(part="yes")
    assert 'data-if="same"' in ann.page.text
    ann.send(same="no", how="nonsense")
    assert enrolment().answers["survey start"]["values"] == {"same": "no"}


def return_path(person: Walker) -> str:
    """Where the survey elsewhere that a page asks for leads back to."""
    address = html.unescape(re.search(r'href="(https://s\.example[^"]*)"', person.page.text)[1])  # type: ignore[index]
    return urlsplit(dict(parse_qsl(urlsplit(address).query))["return"]).path


def elsewhere(app: Flask) -> tuple[Walker, str]:
    """Somebody who is asked to answer a survey elsewhere, and the address that it leads back to."""
    question = {"id": "long", "ask": "Please answer our long survey.", "outside": {"url": "https://s.example/q?u=1"}}
    with writing() as session:
        store_study(session, changed(loaded_study(), survey={"start": [question]}))
        new_wave(session)
    ann = come(app)
    ann.send(part="yes")
    return ann, return_path(ann)


def test_a_survey_elsewhere_is_left_by_a_press_on_its_last_page(app: Flask) -> None:
    ann, link = elsewhere(app)
    assert ann.send().status_code == 400
    assert ann.client.get(f"{link}x").status_code == 404
    assert "Have you finished the other survey?" in text_of(ann.client.get(link))
    ann.look()
    assert ann.send().status_code == 400  # who only looked has not finished it
    assert ann.client.post(link).location == ann.address
    assert "You have returned from the other survey." in ann.look()
    ann.send()
    assert ann.step == "instructions 1"


def test_whoever_runs_the_other_survey_gets_no_private_link(app: Flask) -> None:
    ann, link = elsewhere(app)
    token = ann.address.rpartition("/")[2]
    assert token not in link
    vendor = app.test_client()
    for answer in (vendor.get(link), vendor.head(link), vendor.post(link), vendor.get(link), vendor.post(link)):
        assert answer.status_code == 200
        assert token not in answer.text
    assert "This link has been used." in text_of(vendor.post(link))
    assert "You have returned from the other survey." in ann.look()


def test_nobody_reads_from_the_way_back_whose_it_is(app: Flask) -> None:
    _, link = elsewhere(app)
    ben = Walker(app.test_client(), door_of("ben"))
    ben.send(part="yes")
    codes = [path.rpartition("/")[2] for path in (link, return_path(ben))]
    raw = [urlsafe_b64decode(code + "=" * (-len(code) % 4)) for code in codes]
    assert all(b"long" not in each and b"[" not in each[:2] and b"   " not in each for each in raw)
    assert sum(one == other for one, other in zip(*raw, strict=True)) < 10  # of 80 bytes: chance alone
    changed_code = f"{codes[0][:-9]}{'A' if codes[0][-9] != 'A' else 'B'}{codes[0][-8:]}"
    assert app.test_client().post(f"/s/me/back/{changed_code}").status_code == 404


def test_the_way_back_counts_once_and_at_its_own_step(app: Flask) -> None:
    ann, link = elsewhere(app)
    ann.client.post(link)
    assert "This link has been used." in text_of(ann.client.post(link))
    ann.look()
    ann.send()
    before = enrolment().answers
    for answer in (ann.client.get(link), ann.client.post(link)):
        assert "This link has been used." in text_of(answer)
        assert f'href="{ann.address}"' in answer.text
    assert enrolment().answers == before


def test_nothing_of_the_study_is_in_the_source_of_its_pages(app: Flask, client: FlaskClient) -> None:
    ann = come(app)
    seen = [ann.page.text]
    ann.send(part="yes")
    seen.append(ann.page.text)
    ann.send()
    seen.append(ann.page.text)
    ann.answer_quiz(right_answer(ann))
    seen.append(ann.page.text)
    for text in seen:
        for secret in ("scripted", "tiny", "latin", "counterbalanced", "attention", "objective", "model_failure"):
            assert secret not in text.lower().replace("language model", ""), secret


# ---- Leaving -------------------------------------------------------------------------


def test_who_leaves_is_paid_for_the_time_and_has_a_code(app: Flask, client: FlaskClient) -> None:
    ann = come(app)
    ann.send(part="yes")
    assert re.search(r"Pays you about \$0\.\d\d:", text_of(ann.client.get(f"{ann.address}/leave")))
    ann.client.post(f"{ann.address}/leave", data={"act": "stop"})
    ann.client.post(f"{ann.address}/leave", data={"act": "stop"})
    assert "You have left the study." in ann.look()
    assert "CLEFT" in ann.page.text
    assert enrolment().ending == "withdrawn"
    assert count(Payment) == 2


def test_who_leaves_in_a_match_passes_the_debrief(
    app: Flask, engine: Engine, client: FlaskClient, desk: Callable[..., WorkerContext]
) -> None:
    ann = come(app)
    up_to_practice(ann)
    play_out(engine, desk, MATCH.search(ann.send().location or "")[1])  # type: ignore[index]
    ann.look()
    ann.send()
    ann.client.post(f"{ann.address}/leave", data={"act": "stop"})
    ann.look()
    assert ann.step == "debrief"
    assert "In game 1 " in text_of(ann.page)
    ann.send(data="yes", training="no")
    assert ann.heading == "You have left the study."
    with reading() as session:
        assert session.scalars(select(MatchRow.status).distinct()).all() == ["over"]


def test_deleting_asks_once_more_and_says_that_it_is_done(app: Flask, client: FlaskClient) -> None:
    ann = come(app)
    ann.send(part="yes")
    asked = ann.client.post(f"{ann.address}/leave", data={"act": "delete"})
    assert "Delete your data for good?" in text_of(asked)
    assert enrolment().ending is None
    deleted = ann.client.post(f"{ann.address}/leave", data={"act": "delete", "sure": "yes"})
    assert "Your data are deleted." in text_of(deleted)
    row = enrolment()
    assert (row.ending, row.answers) == ("withdrawn", {})


def test_no_more_training_is_a_press_away(app: Flask, client: FlaskClient) -> None:
    ann = come(app)
    ann.send(part="yes", training="yes")
    done = ann.client.post(f"{ann.address}/leave", data={"act": "no training"})
    assert "nothing new is trained on your games" in text_of(done)
    with reading() as session:
        assert session.scalars(select(Consent.withdrawn_at).where(Consent.kind == "training")).one() is not None


def test_a_report_is_kept_and_may_end_the_study(app: Flask, client: FlaskClient) -> None:
    ann = come(app)
    ann.send(part="yes")
    stayed = ann.client.post(
        f"{ann.address}/report", data={"reason": "other", "text": "The page is slow.", "then": "stay"}
    )
    assert "Thank you." in text_of(stayed)
    assert enrolment().ending is None
    ann.client.post(f"{ann.address}/report", data={"reason": "other", "text": "It was rude.", "then": "leave"})
    assert "You have left the study." in ann.look()
    with reading() as session:
        reports = session.scalars(
            select(StudyEvent.body).where(StudyEvent.kind == "report").order_by(StudyEvent.id)
        ).all()
    assert [report["text"] for report in reports] == ["The page is slow.", "It was rude."]


# ---- Links and languages ---------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/s/me/nobody", "/s/me/nobody/leave", "/s/me/nobody/report", "/s/me/nobody/rules", "/s/me/nobody/agreed",
     "/s/me/back/x", "/s/two-models/none", "/s/none/main", "/s/preview/x"],
)  # fmt: skip
def test_a_link_that_parlor_did_not_give_out_says_how_to_go_on(client: FlaskClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 404
    shown = text_of(response)
    assert "This link does not lead to a study." in shown
    assert "open your private link" in shown
    assert "expected" not in shown
    assert 'href="/"' not in response.text
    assert path not in response.text  # no button that leads to this page again


def test_a_preview_is_marked_and_leaves_no_trace_in_the_wave(app: Flask, client: FlaskClient) -> None:
    with reading() as session:
        version = session.scalars(select(Wave.study_version_id)).one()
    walker = Walker(app.test_client(), f"/s/preview/{preview_token(app.config['SETTINGS'].secret_key, version)}")
    assert "Preview." in text_of(walker.page)
    up_to_practice(walker)
    with reading() as session:
        assert session.scalars(select(StudyEvent.kind)).all() == ["opened"]


def test_the_eleventh_walk_by_a_preview_link_is_refused_with_what_to_do(app: Flask, client: FlaskClient) -> None:
    secret = app.config["SETTINGS"].secret_key
    with reading() as session:
        version = session.scalars(select(Wave.study_version_id)).one()
    link = f"/s/preview/{preview_token(secret, version)}"
    answers = [app.test_client().post(link, data={}) for _ in range(11)]
    assert [each.status_code for each in answers] == [303] * 10 + [409]
    for page in (answers[-1], app.test_client().get(link)):
        assert "This preview has been walked through ten times." in text_of(page)
        assert "find a new link" in text_of(page)
        assert "<button" not in page.text.split("</h1>")[1].split("</main>")[0]
    assert app.test_client().post(f"/s/preview/{preview_token(secret, version, None, 10)}").status_code == 303


def test_the_language_of_the_study_decides(app: Flask) -> None:
    with writing() as session:
        store_study(session, changed(loaded_study(), language="de"))
        new_wave(session)
    door = app.test_client().get(door_of("ann"), headers={"Accept-Language": "en"})
    assert '<html lang="de">' in door.text
    assert "5,00" in door.text
    assert 'name="language"' not in door.text
