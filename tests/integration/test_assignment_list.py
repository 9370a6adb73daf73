"""A ready-made list of arms: imported, followed by people who come at once, and found again from the log."""

import io
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app.core.errors import FieldError
from app.core.extensions import reading, transact_with_retry, writing
from app.models import Arm, Enrolment, StudyEvent, Wave
from app.studies.assignment import replay
from app.studies.assignment_list import import_list, read_list, terms_of
from app.studies.enrolment import person_hash
from app.studies.progress import end, lock_wave
from app.studies.waves import close, freeze
from tests.experimenter import signed_in
from tests.integration.test_cli_dataset import flask
from tests.study_pages import text_of
from tests.waves import SECRET, assigned, join, new_wave

ORDER = (2, 0, 0, 3)  # the arms that the lines name, by their places among the design's


def names(session: Session) -> list[str]:
    return list(session.scalars(select(Arm.name).order_by(Arm.id)))


def table(session: Session, *rows: tuple[object, int], key: str = "order") -> bytes:
    arms = names(session)
    lines = [f'{whom},"{arms[arm]}"' for whom, arm in rows]
    return "\n".join([f"{key},arm", *lines, ""]).encode()


def follow(session: Session, wave: Wave, content: bytes) -> None:
    found = read_list(content, "list.csv", terms_of(session, wave), lambda each: person_hash(SECRET, "prolific", each))
    import_list(session, wave, found, "eva")


def arm_of(session: Session, enrolment: Enrolment) -> int:
    return names(session).index(session.get_one(Arm, enrolment.arm_id).name)


def test_people_get_the_arms_of_the_list_in_their_order(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session, places=4)
        follow(session, wave, table(session, *reversed(list(enumerate(ORDER, 1)))))
        people = [assigned(session, wave, name) for name in ("ann", "ben", "cem")]
        assert [arm_of(session, progress.enrolment) for progress in people] == [2, 0, 0]
        assert people[1].enrolment.plan != people[2].enrolment.plan  # two people of one arm take turns on the material
        end(session, people[1], "withdrawn")
        later = [assigned(session, wave, name).enrolment for name in ("dua", "eve")]
        assert [arm_of(session, each) for each in later] == [0, 3]
        assert later[0].plan == people[1].enrolment.plan  # whoever takes a line over plays the same
        found = replay(session, wave)
        assert len(found) == 5
        assert all(each.agrees for each in found)
        event = session.query(StudyEvent).filter_by(kind="assignment").order_by(StudyEvent.id.desc()).first()
        event.body = {**event.body, "slot": 2}  # type: ignore[union-attr]
        session.flush()
        assert [each.agrees for each in replay(session, wave)] == [True] * 4 + [False]


def test_a_list_by_person_is_for_those_who_are_in_it(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session, places=3)
        follow(session, wave, table(session, ("cem", 1), ("ann", 3), ("ben", 3), key="participant"))
        body = session.query(StudyEvent).filter_by(kind="assignment list").one().body
        assert not any(name in json.dumps(body) for name in ("ann", person_hash(SECRET, "prolific", "ann")))
        ways = {name: assigned(session, wave, name).enrolment for name in ("ben", "dua", "ann", "cem")}
        assert ways.pop("dua").ending == "ineligible"
        assert {name: arm_of(session, each) for name, each in ways.items()} == {"ann": 3, "ben": 3, "cem": 1}
        found = replay(session, wave)
        assert len(found) == 3
        assert all(each.agrees for each in found)


def test_people_who_begin_at_once_get_different_lines(app: Flask, engine: Engine) -> None:
    with writing() as session:
        wave = new_wave(session, places=4)
        follow(session, wave, table(session, *enumerate(ORDER, 1)))
        number = wave.id
    ready = threading.Barrier(4)

    def come(name: str) -> None:
        ready.wait()
        transact_with_retry(engine, lambda session: assigned(session, session.get_one(Wave, number), name), 60)

    threads = [threading.Thread(target=come, args=(name,)) for name in ("ann", "ben", "cem", "dua")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with reading() as session:
        drawn = [arm_of(session, each) for each in session.query(Enrolment)]
        assert sorted(drawn) == sorted(ORDER)
        assert all(each.agrees for each in replay(session, session.get_one(Wave, number)))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("order,arm\n1,{0}\n2,nobody's\n", "list.csv:3: expected an arm of this design"),
        ("order,arm\n1,{0}\n1,{1}\n", "list.csv: expected each number of the order once, got '1'"),
        ("order,arm\n1,{0}\n", "list.csv: expected a line for each of the 2 places, got 1 lines"),
        ("order,arm\n1,{0}\n3,{1}\n", "list.csv: expected all numbers of the order from 1 on, got none with 2"),
        ("order,arm\nfirst,{0}\n2,{1}\n", "list.csv:2: expected a number from 1 as the order, got 'first'"),
        ("participant,arm\nann,{0}\nann,{1}\n", "list.csv: expected each person once, got 'ann'"),
        ("participant,arm\n,{0}\nben,{1}\n", "list.csv:2: expected the recruiter's id of a person, got ''"),
        ("order,participant,arm\n1,ann,{0}\n", "list: expected the columns order and arm, or participant and arm"),
        ("", "list: expected the columns order and arm, or participant and arm, got none"),
        ("order,arm\n1,\udcff\n", "list: expected a CSV table in UTF-8"),
    ],
)
def test_a_list_that_cannot_be_followed_is_refused_with_its_line(app: Flask, content: str, line: str) -> None:
    with writing() as session:
        wave = new_wave(session, places=2)
        quoted = [f'"{name}"' for name in names(session)]
        with pytest.raises(FieldError) as refused:
            follow(session, wave, content.format(*quoted).encode(errors="surrogateescape"))
        assert line in refused.value.message
        assert session.query(StudyEvent).filter_by(kind="assignment list").count() == 0


def test_a_list_comes_before_the_first_arm(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session, places=2)
        join(session, wave, "ann")
        by_person = table(session, ("ben", 1), ("cem", 3), key="participant")
        with pytest.raises(FieldError, match="expected a line for everybody who is in the wave"):
            follow(session, wave, by_person)
        follow(session, wave, table(session, (1, 0), (2, 0)))
        follow(session, wave, table(session, (1, 1), (2, 1)))  # the last one counts
        progress = assigned(session, wave, "ann")
        assert arm_of(session, progress.enrolment) == 1
        with pytest.raises(FieldError, match="expected one in which nobody has an arm yet"):
            follow(session, wave, table(session, (1, 0), (2, 0)))
        end(session, progress, "completed")
        close(session, wave)
        freeze(session, wave)
        with pytest.raises(FieldError, match="expected a wave that is not frozen"):
            follow(session, wave, table(session, (1, 0), (2, 0)))
        link = new_wave(session, wave="link", provider={"link": {}}, codes={}, places=1)
        with pytest.raises(FieldError, match="as the people of this wave have no ids"):
            follow(session, link, by_person)


def test_a_list_is_imported_by_command_and_on_the_page_of_the_wave(app: Flask, tmp_path: Path) -> None:
    with writing() as session:
        number = new_wave(session, places=2).id
        content = table(session, (1, 3), (2, 3))
    file = tmp_path / "arms.csv"
    file.write_bytes(content)
    told = flask(app, "study", "assignments", "two-models:main", str(file))
    assert told.stdout == "two-models:main follows a list of 2 lines, in the order in which people come.\n"
    refused = flask(app, "study", "assignments", "two-models:main", str(tmp_path / "none.csv"))
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    client, page = signed_in(app), f"/admin/studies/waves/{number}"
    assert "Arms follow a list of 2 lines, in the order in which people come." in text_of(client.get(page))

    def send(text: bytes) -> Any:
        return client.post(page, data={"action": "list", "list": (io.BytesIO(text), "arms.csv")})

    wrong = send(content.replace(b"\n2,", b"\n1,"))
    assert wrong.status_code == 400
    assert "arms.csv: expected each number of the order once, got '1'" in text_of(wrong)
    assert send(content.replace(b"order", b"participant", 1)).status_code == 303
    assert "Arms follow a list of 2 people." in text_of(client.get(page))
    assert client.post(page, data={"action": "list"}).status_code == 400


def test_a_list_is_read_before_anything_is_locked(app: Flask) -> None:
    with writing() as session:
        number = new_wave(session, places=2).id
        content = table(session, (1, 3), (1, 3))
    client, page = signed_in(app), f"/admin/studies/waves/{number}"
    with writing() as session:
        lock_wave(session, number)
        wrong = client.post(page, data={"action": "list", "list": (io.BytesIO(content), "arms.csv")})
        assert wrong.status_code == 400
        assert "arms.csv: expected each number of the order once, got '1'" in text_of(wrong)
