"""Notices to experimenters: once for each cause, grouped, over a real SMTP server and a real HTTP server."""

import hashlib
import hmac
import json
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage, Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from flask import Flask, g
from sqlalchemy import Engine, select, update

from app.core.config import Settings, load_settings
from app.core.errors import Invalid
from app.core.extensions import reading, writing
from app.jobs.kind import fail
from app.models import Notice, RoundRow, User, Wave
from app.notices import outbox
from app.notices.delivery import send_due
from app.notices.recipients import set_notices
from app.notices.sending import NotSent, post, send_mail
from app.studies.reports import keep_report
from app.studies.waves import pause
from tests.enrolments import KnownWave, load_example, open_wave, person
from tests.experimenter import signed_in
from tests.rounds import add_models, make_round
from tests.shell import Finished, Shell
from tests.stack import PATIENCE, free_port

aiosmtpd_controller = pytest.importorskip("aiosmtpd.controller", reason="aiosmtpd is not installed: make install")


AuthResult = pytest.importorskip("aiosmtpd.smtp").AuthResult


class Mailbox:
    """What an SMTP server has taken; it answers with `refusal` in place of taking a mail."""

    def __init__(self) -> None:
        self.mails: list[Message] = []
        self.refusal = ""

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - by aiosmtpd
        if self.refusal:
            return self.refusal
        self.mails.append(message_from_bytes(envelope.content))
        return "250 OK"


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    box = Mailbox()
    server = aiosmtpd_controller.Controller(box, hostname="127.0.0.1", port=free_port())
    server.start()
    yield box, server.port
    server.stop()


@pytest.fixture
def settings(app: Flask, mailbox: tuple[Mailbox, int]) -> Settings:
    known: Settings = app.config["SETTINGS"]
    app.config["SETTINGS"] = known.model_copy(
        update={
            "SMTP_HOST": "127.0.0.1", "SMTP_PORT": mailbox[1], "SMTP_SECURITY": "none", "NOTICE_GROUP_SECONDS": 0.0,
            "PUBLIC_URL": "https://parlor.example.org",
        }
    )  # fmt: skip
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


def tell_everything(engine: Engine, mail: str = "ada@example.org") -> None:
    with writing(engine) as session:
        user = session.scalars(select(User)).first()
        if user is None:
            user = User(name="ada", created_at=datetime.now(UTC))
            session.add(user)
        set_notices(user, mail, ["jobs", "studies", "limits", "reports"])


def failed_rounds(engine: Engine, count: int, why: str = "the model said: my name is Bob") -> list[int]:
    add_models(engine, "http://127.0.0.1:9/v1", "haggler")
    numbers = [make_round(engine, "haggler", seed=seed) for seed in range(count)]
    with writing(engine) as session:
        for number in numbers:
            fail(session.get_one(RoundRow, number), why)
    return numbers


def words(mail: Message) -> str:
    return mail.get_payload(decode=True).decode().replace("\r", "")  # type: ignore[union-attr,no-any-return]


def test_nothing_is_sent_before_somebody_asks_for_it(
    engine: Engine, settings: Settings, mailbox: tuple[Mailbox, int]
) -> None:
    failed_rounds(engine, 1)
    assert send_due(engine, settings, "a") == 0
    assert mailbox[0].mails == []
    with reading(engine) as session:
        assert session.scalars(select(Notice)).all() == []


def test_a_hundred_jobs_that_fail_at_once_are_one_mail_and_told_once(
    engine: Engine, settings: Settings, mailbox: tuple[Mailbox, int]
) -> None:
    box, _ = mailbox
    tell_everything(engine)
    numbers = failed_rounds(engine, 3)
    assert send_due(engine, settings, "a") == 1
    [mail] = box.mails
    assert (mail["To"], mail["From"]) == ("ada@example.org", "parlor@parlor.example.org")
    assert mail["Subject"] == "Parlor: 3 notices"
    for number in numbers:
        assert (
            f"A job failed: haggler and haggler (round {number})\nhttps://parlor.example.org/admin/run/round/{number}"
            in words(mail)
        )
    assert "Bob" not in words(mail)  # an error may quote what somebody wrote
    assert send_due(engine, settings, "a") == 0
    assert len(box.mails) == 1
    with writing(engine) as session:  # the same job fails again, which is another cause
        fail(session.get_one(RoundRow, numbers[0]), "again")
    send_due(engine, settings, "a")
    assert box.mails[1]["Subject"] == f"Parlor: a job failed: haggler and haggler (round {numbers[0]})"


def test_a_notice_waits_for_others_of_the_same_minute(
    engine: Engine, settings: Settings, mailbox: tuple[Mailbox, int]
) -> None:
    tell_everything(engine)
    failed_rounds(engine, 1)
    patient = settings.model_copy(update={"NOTICE_GROUP_SECONDS": 60.0})
    assert send_due(engine, patient, "a") == 0
    with writing(engine) as session:
        session.execute(update(Notice).values(created_at=datetime(2026, 1, 1, tzinfo=UTC)))
    assert send_due(engine, patient, "a") == 1


def test_what_happened_before_somebody_asked_is_not_told(
    engine: Engine, settings: Settings, mailbox: tuple[Mailbox, int]
) -> None:
    failed_rounds(engine, 1)
    tell_everything(engine)
    assert send_due(engine, settings, "a") == 0


def test_a_paused_wave_an_urgent_report_and_a_cap_that_is_near_are_told_without_words_of_people(
    engine: Engine, app: Flask, settings: Settings, mailbox: tuple[Mailbox, int], tmp_path: Path
) -> None:
    tell_everything(engine)
    with writing(engine) as session:
        version = load_example(session, tmp_path)
        known = KnownWave(open_wave(session, version, "link", "spring").id, version.id)
    number = known.wave
    with writing(engine) as session:
        keep_report(session, person(session, known, "P1"), "upsetting", "My partner called me a liar.")
        keep_report(session, person(session, known, "P2"), "other", "Nice weather.")
        pause(session, session.get_one(Wave, number), "ada")
    send_due(engine, settings, "a")
    text = words(mailbox[0].mails[0])
    address = f"https://parlor.example.org/admin/studies/waves/{number}"
    assert f"The wave two-models:spring paused\n{address}" in text
    problem = "A participant of two-models:spring reports a problem\nhttps://parlor.example.org/admin/studies/reports/"
    assert text.count(problem) == 1
    path = text.partition(problem)[2].partition("\n")[0]
    assert "My partner called me a liar." in signed_in(app).get(f"/admin/studies/reports/{path}").text
    assert "liar" not in text
    assert "P1" not in text
    with writing(engine) as session:
        row = session.get_one(Wave, number)
        row.settings = {**row.settings, "most_spent": "0.01"}
    send_due(engine, settings, "a")
    assert "Spend cap of wave spring of study two-models: " in words(mailbox[0].mails[1])
    assert send_due(engine, settings, "a") == 0  # once for each limit


def test_a_budget_that_is_used_up_is_told_by_the_name_of_its_job(
    engine: Engine, app: Flask, settings: Settings, mailbox: tuple[Mailbox, int]
) -> None:
    tell_everything(engine)
    add_models(engine, "http://127.0.0.1:9/v1", "haggler")
    number = make_round(engine, "haggler", queued=True)
    with writing(engine) as session:
        row = session.get_one(RoundRow, number)
        row.budget_usd, row.cost = 1, 0.9
    send_due(engine, settings, "a")
    assert f"Budget of haggler and haggler (round {number}): 90 % used" in words(mailbox[0].mails[0])
    page = signed_in(app).get("/admin/spend").text  # a name keeps its small letter
    assert f">haggler and haggler (round {number})</a>" in page


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")]), datetime.now(UTC)
    built = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("certificate") / "server.pem"
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(plain + built.public_bytes(Encoding.PEM))
    return path


@pytest.fixture
def guarded(certificate: Path) -> Iterator[tuple[Mailbox, int, list[Any]]]:
    """A server that takes mails after STARTTLS and a sign-in alone, and the passwords that it was sent."""
    box, given = Mailbox(), []
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    def check(_server: Any, _session: Any, _envelope: Any, _how: str, sent: Any) -> Any:
        given.append((sent.login, sent.password))
        return AuthResult(success=sent.password == b"right", handled=False)

    server = aiosmtpd_controller.Controller(
        box, hostname="127.0.0.1", port=free_port(), tls_context=context, require_starttls=True, auth_required=True,
        authenticator=check,
    )  # fmt: skip
    server.start()
    yield box, server.port, given
    server.stop()


def test_a_mail_goes_encrypted_and_signed_in_to_a_server_that_asks_for_both(
    settings: Settings, guarded: tuple[Mailbox, int, list[Any]], certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, port, given = guarded
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "parlor@example.org", "ada@example.org", "Hello"
    mail.set_content("A round failed.")
    known = {"SMTP_PORT": port, "SMTP_SECURITY": "starttls", "SMTP_USER": "ada", "SMTP_PASSWORD": "right"}

    def send(**changes: Any) -> None:
        send_mail(mail, settings.model_copy(update={**known, **changes}))

    with pytest.raises(NotSent, match=rf"^SMTP_HOST 127\.0\.0\.1:{port}: .*certificate verify failed"):
        send()  # nobody vouches for the certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    send()
    assert [words(each) for each in box.mails] == ["A round failed.\n"]
    assert given == [(b"ada", b"right")]
    with pytest.raises(NotSent, match=rf"^SMTP_HOST 127\.0\.0\.1:{port} answered 535$"):
        send(SMTP_PASSWORD="wrong")
    with pytest.raises(NotSent, match=r"answered 530$"):
        send(SMTP_SECURITY="none", SMTP_USER="")
    assert len(box.mails) == 1


def test_no_password_is_sent_to_a_server_without_encryption(settings: Settings, mailbox: tuple[Mailbox, int]) -> None:
    mail = EmailMessage()
    mail["From"], mail["To"] = "parlor@example.org", "ada@example.org"
    update = {"SMTP_SECURITY": "starttls", "SMTP_USER": "ada", "SMTP_PASSWORD": "right"}
    with pytest.raises(NotSent, match="STARTTLS extension not supported"):
        send_mail(mail, settings.model_copy(update=update))
    assert mailbox[0].mails == []


def test_what_a_server_refuses_is_tried_again_and_then_counts_as_failed(
    engine: Engine, app: Flask, settings: Settings, mailbox: tuple[Mailbox, int]
) -> None:
    box, _ = mailbox
    tell_everything(engine)
    failed_rounds(engine, 1)
    box.refusal = "451 Not now"
    twice = settings.model_copy(update={"NOTICE_TRIES": 2})
    assert send_due(engine, twice, "a") == 0
    with reading(engine) as session:
        [row] = session.scalars(select(Notice))
        assert (row.status, row.tries, row.error) == ("waiting", 1, f"SMTP_HOST 127.0.0.1:{mailbox[1]} answered 451")
        assert row.due_at > datetime.now(UTC)
    make_due(engine)
    assert send_due(engine, twice, "a") == 0
    browser = signed_in(app)
    page = browser.get("/admin/").text
    assert "1 notice could not be sent." in page
    assert "answered 451" in browser.get("/admin/notices?state=failed").text
    box.refusal = ""
    assert browser.post("/admin/notices", data={"action": "retry"}).status_code == 303
    assert send_due(engine, twice, "a") == 1
    assert "could not be sent" not in browser.get("/admin/").text
    assert len(box.mails) == 1


def make_due(engine: Engine) -> None:
    with writing(engine) as session:
        session.execute(update(Notice).values(due_at=datetime.now(UTC)))


def test_a_kill_between_sending_and_noting_it_sends_the_same_message_twice_at_most(
    engine: Engine, settings: Settings, mailbox: tuple[Mailbox, int], tmp_path: Path
) -> None:
    box, port = mailbox
    tell_everything(engine)
    failed_rounds(engine, 2)
    with writing(engine) as session:
        session.add_all(outbox.new_notices(session, settings))
    program = f"""
import os, signal
from app.core.config import load_settings
from app.core.extensions import open_engine
from app.notices import delivery, outbox
outbox.mark_sent = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
settings = load_settings({{"SMTP_HOST": "127.0.0.1", "SMTP_PORT": {port}, "SMTP_SECURITY": "none",
    "NOTICE_GROUP_SECONDS": 0, "PARLOR_HOME": {str(tmp_path)!r}}})
delivery.send_due(open_engine({engine.url.render_as_string(hide_password=False)!r}), settings, "a")
"""
    killed = subprocess.run([sys.executable, "-c", program], timeout=PATIENCE, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(box.mails) == 1
    make_due(engine)
    assert send_due(engine, settings, "a") == 1
    assert send_due(engine, settings, "a") == 0
    first, second = box.mails
    assert (first["Subject"], first["Message-ID"].partition("@")[0]) == (
        second["Subject"], second["Message-ID"].partition("@")[0],
    )  # fmt: skip


# ---- Webhooks ------------------------------------------------------------------------


class Hook(BaseHTTPRequestHandler):
    """Keeps what is posted; redirects where its server says so."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posted.append((dict(self.headers), body))  # type: ignore[attr-defined]
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.posted, server.status = [], 200
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def hooked(settings: Settings, hook: Any, **changes: Any) -> Settings:
    url = f"http://127.0.0.1:{hook.server_port}/in?room=1"
    return settings.model_copy(
        update={
            "NOTICE_WEBHOOK_URL": url,
            "NOTICE_PRIVATE_ADDRESSES": True,
            "NOTICE_WEBHOOK_SECRET": "s3cret",
            **changes,
        }
    )


def test_a_webhook_is_posted_signed_json(engine: Engine, settings: Settings, hook: Any) -> None:
    [number] = failed_rounds(engine, 1)
    assert send_due(engine, hooked(settings, hook), "a") == 1
    [(headers, body)] = hook.posted
    said = json.loads(body)
    assert said["count"] == 1
    assert said["notices"] == [
        {
            "kind": "jobs",
            "text": f"a job failed: haggler and haggler (round {number})",
            "url": f"https://parlor.example.org/admin/run/round/{number}",
        }
    ]
    signed = headers["X-Parlor-Timestamp"].encode() + b"." + body
    assert headers["X-Parlor-Signature"] == f"sha256={hmac.new(b's3cret', signed, hashlib.sha256).hexdigest()}"


def test_a_chat_program_is_posted_text_alone(engine: Engine, settings: Settings, hook: Any) -> None:
    [number] = failed_rounds(engine, 1)
    send_due(engine, hooked(settings, hook, NOTICE_WEBHOOK_FORM="slack", NOTICE_WEBHOOK_SECRET=""), "a")
    [(headers, body)] = hook.posted
    assert list(json.loads(body)) == ["text"]
    assert f"A job failed: haggler and haggler (round {number})" in json.loads(body)["text"]
    assert "X-Parlor-Signature" not in headers


def test_a_webhook_is_not_called_in_a_private_network_nor_where_it_redirects(settings: Settings, hook: Any) -> None:
    url = f"http://127.0.0.1:{hook.server_port}/"
    with pytest.raises(NotSent, match="not https"):
        post(url, b"{}", {}, private=False)
    with pytest.raises(NotSent, match="private network"):
        post(f"https://127.0.0.1:{hook.server_port}/", b"{}", {}, private=False)
    assert hook.posted == []
    hook.status = 302
    with pytest.raises(NotSent, match="answered 302"):
        post(url, b"{}", {}, private=True)
    assert len(hook.posted) == 1


@pytest.mark.parametrize("url", ["ftp://example.org/", "https://", "https://me:secret@example.org/"])
def test_a_webhook_that_cannot_be_stops_the_start_with_one_line(url: str) -> None:
    with pytest.raises(Invalid, match="NOTICE_WEBHOOK_URL"):
        load_settings({"NOTICE_WEBHOOK_URL": url})


# ---- Pages and commands --------------------------------------------------------------


def test_an_experimenter_chooses_what_to_be_told_and_gets_a_test(
    engine: Engine, app: Flask, settings: Settings, mailbox: tuple[Mailbox, int]
) -> None:
    browser = signed_in(app)
    assert "Send a test" not in browser.get("/account").text
    wrong = browser.post("/account/notices", data={"notice_mail": "ada", "notice_kinds": ["jobs"]})
    assert wrong.status_code == 400
    assert "expected a mail address such as name@example.org" in wrong.text
    form = {"notice_mail": "ada@example.org", "notice_kinds": ["jobs"]}
    assert browser.post("/account/notices", data=form).status_code == 303
    g.pop("_login_user")  # who is signed in is remembered by the app context of this test
    page = browser.get("/account?notices=saved").text
    assert "Send a test to ada@example.org" in page
    assert browser.post("/account/notices", data={"action": "test"}).status_code == 303
    patient = settings.model_copy(update={"NOTICE_GROUP_SECONDS": 60.0})
    assert send_due(engine, patient, "a") == 1  # at once, whatever else waits
    assert mailbox[0].mails[0]["Subject"] == "Parlor: a test: notices of Parlor arrive here"
    assert browser.post("/account/notices", data={"notice_mail": ""}).status_code == 303
    failed_rounds(engine, 1)
    assert send_due(engine, settings, "a") == 0


def test_the_command_sends_a_test_and_says_what_did_not_arrive(
    app: Flask, shell: Shell, mailbox: tuple[Mailbox, int], hook: Any
) -> None:
    env = {name: str(value) for name, value in app.config["SETTINGS"]}

    def flask(*line: str, **more: str) -> Finished:
        return shell.flask(line, env={**env, **more})

    nothing = flask("notice", "test")
    assert nothing.exit_code == 2
    assert "expected SMTP_HOST" in nothing.stderr
    known = {
        "SMTP_HOST": "127.0.0.1", "SMTP_PORT": str(mailbox[1]), "SMTP_SECURITY": "none",
        "NOTICE_MAIL_TO": "lab@example.org, pi@example.org", "NOTICE_PRIVATE_ADDRESSES": "true",
        "NOTICE_WEBHOOK_URL": f"http://127.0.0.1:{hook.server_port}/",
    }  # fmt: skip
    assert flask("notice", "test", **known).stdout == "mail: sent\nwebhook: sent\n"
    assert mailbox[0].mails[0]["To"] == "lab@example.org, pi@example.org"
    hook.status = 500
    half = flask("notice", "test", **known)
    assert half.exit_code != 0
    assert "webhook: not sent: 127.0.0.1 answered 500" in half.stderr
    assert flask("notice", "list").stdout == "No notices yet.\n"
