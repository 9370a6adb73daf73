"""People whom recruiters send, over real HTTP against stubs of them: there, through the study, back, and paid."""

import html
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select

from app.core.extensions import reading, writing
from app.models import Enrolment, Participant, Submission
from app.studies.answers import finish
from app.studies.endings import EndingName
from app.studies.progress import find_progress_by_token
from app.studies.wave_file import link_path
from app.studies.waves import close, find_wave, settings_of
from tests.http_agent import HttpAgent, served
from tests.integration.test_cli_dataset import flask
from tests.stub_recruiters import StubRecruiters, VendorSite
from tests.study_pages import Walker, text_of
from tests.waves import loaded_study, new_wave, store_study

WAVE = "two-models:main"
CODES = {"completed": "CDONE", "quiz_failed": "CQUIZ", "withdrawn": "CLEFT", "technical": "CTECH"}


class House:
    """A Parlor that is served, with one wave, beside the recruiters."""

    def __init__(self, app: Flask, server: str, recruiters: StubRecruiters, folder: Path) -> None:
        self.app, self.server, self.recruiters, self._folder = app, server, recruiters, folder

    def open(self, **keys: Any) -> str:
        """Open the wave; its link for the recruiter."""
        with writing() as session:
            store_study(session, loaded_study())
            wave = new_wave(session, **keys)
            return self.server + link_path("two-models", settings_of(wave))

    def come(self, link: str) -> Walker:
        """Somebody who follows a link in a browser of their own."""
        return Walker(cast(FlaskClient, HttpAgent(self.server)), link)

    def end(self, walker: Walker, ending: EndingName) -> Walker:
        """What the last step of the way, or something on it, does."""
        with writing() as session:
            finish(session, find_progress_by_token(session, walker.address.rpartition("/")[2], lock=True), ending)
        walker.look()
        return walker

    def go_back(self, walker: Walker, site: VendorSite, person: str) -> str:
        """Follow the button of the last page to the recruiter; what is on the page there."""
        site.at = person
        button = re.search(r'<a class="button button-main" href="([^"]+)"', walker.page.text)
        assert button is not None, walker.heading
        return HttpAgent("").get(self.recruiters.url(site, html.unescape(button[1]))).text

    def command(self, *arguments: str) -> str:
        """The output of `flask study …`, which does not refuse."""
        done = flask(self.app, "study", *arguments)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    def take(self, table: str) -> str:
        """Import a recruiter's table."""
        file = self._folder / "export.csv"
        file.write_text(table)
        return self.command("submissions", WAVE, str(file))

    def batch(self, number: int) -> str:
        """The file of a batch, which is uploaded with it."""
        file = self._folder / "bonus"
        self.command("pay", WAVE, "file", str(number), "--out", str(file))
        self.command("pay", WAVE, "uploaded", str(number))
        return file.read_text()


@pytest.fixture
def house(app: Flask, tmp_path: Path) -> Iterator[House]:
    with StubRecruiters() as recruiters, served(app) as server:
        yield House(app, server, recruiters, tmp_path)


def count(model: Any) -> int:
    with reading() as session:
        return int(session.query(model).count())


def test_people_from_prolific(house: House) -> None:
    prolific = house.recruiters.prolific
    link = house.open(codes=CODES, places=10)
    prolific.study("66f0c1", link, list(CODES.values()))
    prolific.at = "ann"
    page = HttpAgent("").get(house.recruiters.url(prolific, "/studies/66f0c1")).text
    filled = html.unescape(re.search(r'href="([^"]+)"', page)[1])  # type: ignore[index]
    ann = house.come(filled)
    assert ann.step == "consent"
    ann.send(part="yes")
    again = house.come(prolific.place("ann"))  # in another browser
    assert (again.address, again.step, count(Participant), count(Submission)) == (ann.address, "instructions 1", 1, 1)

    house.end(ann, "completed")
    assert "Thank you, ann: CDONE" in house.go_back(ann, prolific, "ann")
    ben = house.come(prolific.place("ben"))
    for _ in range(2):  # reads, and answers the quiz wrongly twice
        ben.send(part="yes")
    for _ in range(2):
        ben.answer_quiz("24")
    assert "Thank you, ben: CQUIZ" in house.go_back(ben, prolific, "ben")
    cem = house.come(prolific.place("cem"))
    cem.send(part="yes")
    cem.client.post(f"{cem.address}/leave", data={"act": "stop"})
    cem.look()
    assert "Thank you, cem: CLEFT" in house.go_back(cem, prolific, "cem")
    dua = house.come(prolific.place("dua"))
    dua.send(answer="no")
    assert "Please return the submission on Prolific" in text_of(dua.page)
    assert "submissions/complete" not in dua.page.text
    prolific.set_status("dua", "RETURNED")
    house.come(prolific.place("eve")).send(part="yes")
    prolific.set_status("eve", "TIMED-OUT")
    fin = house.end(house.come(prolific.place("fin")), "technical")
    assert "Thank you, fin: CTECH" in house.go_back(fin, prolific, "fin")

    late = house.come(filled)  # the link of somebody who has finished, opened again
    assert (late.address, late.heading) == (ann.address, "That’s all. Thank you!")
    assert "You have already submitted" in house.go_back(late, prolific, "ann")
    assert prolific.visit_of("ann").code == "CDONE"

    told = house.take(prolific.export())
    assert told == f"{WAVE}: 1 returned, 4 submitted, 1 timed out; 6 changed, 0 not of this wave.\n"
    with reading() as session:
        endings = session.scalars(select(Enrolment.ending).order_by(Enrolment.id)).all()
        assert endings == ["completed", "quiz_failed", "withdrawn", "declined", "inactive", "technical"]
    house.command("pay", WAVE, "draft")
    prolific.pay_bonuses(house.batch(1))
    house.command("pay", WAVE, "confirmed", "1")
    paid = dict(prolific.paid)
    assert set(paid) <= {"ben", "cem"}  # the base of all others is paid by approving, or nothing is owed
    assert paid["ben"] == Decimal("1.00")
    assert flask(house.app, "study", "pay", WAVE, "draft").exit_code == 2  # nobody is owed anything more
    for name in ("ann", "fin"):
        prolific.set_status(name, "APPROVED")
    house.take(prolific.export())
    assert "Look at" not in house.command("pay", WAVE)
    prolific.set_status("ben", "APPROVED")
    house.take(prolific.export())
    assert "the base is in a batch as well, 1.00; left out" in house.command("pay", WAVE)


def test_people_from_connect(house: House) -> None:
    connect = house.recruiters.connect
    link = house.open(provider={"connect": {"project_id": "7DE64B7FBE"}}, codes=CODES)
    connect.project("7DE64B7FBE", link)
    taken = connect.enter("ann")
    ann = house.come(taken)
    assert ann.step == "consent"
    house.end(ann, "completed")
    assert "CDONE" in text_of(ann.page)
    assert "Thank you, ann." in house.go_back(ann, connect, "ann")
    assert house.come(taken).address == ann.address
    # Whether Connect fills placeholders in or appends its parameters, the person is the same.
    appended = f"{link}&{taken.partition('?')[2]}"
    assert house.come(appended).address == ann.address
    ben = house.end(house.come(connect.enter("ben")), "withdrawn")
    assert "CLEFT" in text_of(ben.page)
    assert "/complete" not in ben.page.text  # that address is for those who completed it
    assert house.come(connect.enter("cem").replace("7DE64B7FBE", "OTHER")).address == ""
    connect.visit_of("ben").status = "returned"
    assert house.take(connect.table()) == f"{WAVE}: 1 returned, 1 submitted; 2 changed, 1 not of this wave.\n"
    with reading() as session:
        code = session.scalars(select(Participant.code).order_by(Participant.id)).first()
    house.command("pay", WAVE, "adjust", str(code), "--amount", "1.25", "--reason", "a bonus of the games")
    house.command("pay", WAVE, "draft")
    assert house.batch(1).splitlines()[:2] == ["participant,external_id,amount,currency", f"{code},ann,1.25,USD"]


def test_whoever_comes_to_a_closed_wave_is_sent_back_with_its_code(house: House) -> None:
    prolific = house.recruiters.prolific
    prolific.study("66f0c1", house.open(codes={**CODES, "closed": "CSHUT"}), ["CSHUT"])
    with writing() as session:
        close(session, find_wave(session, WAVE))
    ann = house.come(prolific.place("ann"))
    assert ann.heading == "Enrolment in this study is closed."
    assert "Thank you, ann: CSHUT" in house.go_back(ann, prolific, "ann")
