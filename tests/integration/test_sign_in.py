"""Signing in: passwords, links, sessions that end, and guessing that is stopped."""

import html
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import gevent
import pytest
from click.testing import Result
from flask import Flask
from flask.testing import FlaskClient
from redis import Redis
from sqlalchemy import func, select, update

from app import accounts
from app.accounts import tokens
from app.core.extensions import reading, writing
from app.models import LoginLink, User, UserSession
from app.web import form_writes, passwords
from app.web.extensions import limiter
from tests.experimenter import signed_in
from workers.prepare import new_admin_link

PASSWORD = "correct horse battery"
FORM = {"name": "ada", "password": PASSWORD}


@pytest.fixture(autouse=True)
def _quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = "scrypt:1024:8:1"
    monkeypatch.setattr(accounts, "_NOBODY", accounts._NOBODY.replace(accounts._METHOD, quick))
    monkeypatch.setattr(accounts, "_METHOD", quick)


@pytest.fixture
def app(make_app: Callable[..., Flask], broker: str, monkeypatch: pytest.MonkeyPatch) -> Flask:
    """An app that counts guesses where a running Parlor does, and of which no request remembers another's user."""
    # The limiter is the process's: that an earlier test had no broker is nothing that it need remember here.
    monkeypatch.setattr(limiter, "_storage_dead", False)
    return make_app(REDIS_URL=broker)


@pytest.fixture
def ada(app: Flask) -> FlaskClient:
    """The browser of an experimenter who has a password and is not signed in."""
    add(app, "ada")
    return app.test_client()


def add(app: Flask, name: str) -> None:
    with app.app_context(), writing() as session:
        accounts.create_user(session, name, PASSWORD, datetime.now(UTC))


@pytest.fixture
def run(app: Flask) -> Callable[..., Result]:
    return lambda *arguments, **more: app.test_cli_runner().invoke(args=["user", *arguments], **more)


def guess(client: FlaskClient, times: int, **form: Any) -> list[int]:
    return [client.post("/sign-in", data={**FORM, "password": "wrong", **form}).status_code for _ in range(times)]


# ---- Name and password -------------------------------------------------------


def test_name_and_password_open_the_page_that_was_asked_for(ada: FlaskClient) -> None:
    wanted = ada.get("/admin/export/moves.csv?guard=1").location
    assert "password" in ada.get(wanted).text
    answer = ada.post(wanted, data=FORM)
    assert (answer.status_code, answer.location) == (303, "/admin/export/moves.csv?guard=1")
    assert ada.get("/admin/").status_code == 200
    assert ada.get("/sign-in").location == "/admin/"


@pytest.mark.parametrize(
    "wish",
    ["//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil.example", "admin", "javascript:1", ""],
)
def test_next_leads_nowhere_else(ada: FlaskClient, wish: str) -> None:
    assert ada.post("/sign-in", query_string={"next": wish}, data=FORM).location == "/admin/"


@pytest.mark.parametrize("form", [{"password": "wrong"}, {"name": "eve"}, {"password": ""}, {"name": ""}])
def test_a_wrong_name_and_a_wrong_password_look_alike(ada: FlaskClient, form: dict[str, str]) -> None:
    answer = ada.post("/sign-in", data={**FORM, **form})
    assert answer.status_code == 401
    assert "do not match" in answer.text
    assert PASSWORD not in answer.text
    assert ada.get("/admin/").status_code == 302


def test_who_has_no_password_cannot_sign_in_with_one(app: Flask) -> None:
    signed_in(app)
    for password in ("", "wrong"):
        assert app.test_client().post("/sign-in", data={"name": "admin", "password": password}).status_code == 401


def test_an_unknown_name_takes_as_long_as_a_known_one(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    compare = accounts.check_password_hash

    def recorded(password_hash: str, password: str) -> bool:
        compared.append(password_hash)
        return compare(password_hash, password)

    monkeypatch.setattr(accounts, "check_password_hash", recorded)
    add(app, "ada")
    client = app.test_client()
    guess(client, 1)
    guess(client, 1, name="eve")
    # Scrypt's work follows from its method alone, which stands before the salt.
    known, unknown = (each.split("$") for each in compared)
    assert known[0] == unknown[0] == accounts._METHOD
    assert len(known[2]) == len(unknown[2])


def test_a_form_without_its_token_is_refused(app: Flask, ada: FlaskClient) -> None:
    app.config["WTF_CSRF_ENABLED"] = True
    assert ada.post("/sign-in", data=FORM).status_code == 400
    token = re.search(r'name="csrf_token" value="([^"]+)"', ada.get("/sign-in").text)
    assert token
    assert ada.post("/sign-in", data={**FORM, "csrf_token": token[1]}).status_code == 303
    assert ada.post("/sign-out").status_code == 400


# ---- Guessing ----------------------------------------------------------------


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For how long attempts were slowed down, which they are not really."""
    naps: list[float] = []
    monkeypatch.setattr(passwords, "sleep", naps.append)  # not that of gevent, in which others may wait
    return naps


def test_after_ten_wrong_passwords_even_the_right_one_has_to_wait(ada: FlaskClient) -> None:
    assert guess(ada, 11) == [*[401] * 10, 429]
    answer = ada.post("/sign-in", data=FORM)
    assert answer.status_code == 429
    assert re.search(r"Please try again in \d+ (seconds|minutes)\.", answer.text)


def test_guesses_count_for_the_address_and_for_the_name_from_there(app: Flask, ada: FlaskClient, broker: str) -> None:
    names = [ada.post("/sign-in", data={"name": f"name {n}", "password": "x"}).status_code for n in range(31)]
    assert names == [*[401] * 30, 429]
    Redis.from_url(broker).flushall()
    assert guess(ada, 5) + guess(ada, 6, name="ADA ") == [*[401] * 10, 429]
    assert ada.post("/sign-in", data={"name": "eve", "password": "x"}).status_code == 401


def test_strangers_slow_a_name_down_and_cannot_lock_it(app: Flask, ada: FlaskClient, slept: list[float]) -> None:
    def from_address(number: int, **form: str) -> int:
        elsewhere = {"REMOTE_ADDR": f"192.0.2.{number}"}
        return app.test_client().post("/sign-in", data={**FORM, **form}, environ_overrides=elsewhere).status_code

    assert [from_address(number, password="wrong") for number in range(10)] == [401] * 10
    assert slept == []
    assert [from_address(number, password="wrong") for number in range(10, 25)] == [401] * 15
    assert slept == [passwords.SLOW_SECONDS] * 15
    assert from_address(99) == 303
    assert ada.post("/sign-in", data=FORM).status_code == 303
    assert from_address(99, name="eve") == 401
    assert len(slept) == 17


def test_a_guess_too_many_is_not_even_hashed(ada: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    monkeypatch.setattr(accounts, "password_fits", lambda _known, password: hashed.append(password))
    assert guess(ada, 14)[-4:] == [429] * 4
    assert len(hashed) == 10


def test_hashing_holds_up_neither_the_event_loop_nor_whoever_writes(app: Flask) -> None:
    hold = threading.Event()

    def sign_in() -> bool:
        with app.app_context():
            return passwords.hashing(hold.wait, 60)

    hashing = [gevent.spawn(sign_in) for _ in range(3)]
    gevent.sleep(0.01)
    with app.app_context():
        assert form_writes.write(lambda _session: "written") == "written"
    assert not any(each.ready() for each in hashing)
    hold.set()
    gevent.joinall(hashing)
    assert [each.value for each in hashing] == [True] * 3


def test_more_than_a_few_who_wait_to_be_hashed_are_told_to_come_back(
    ada: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "_MOST_WAITING", 0)
    answer = ada.post("/sign-in", data=FORM)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")


def test_signing_in_rightly_is_not_counted(app: Flask, ada: FlaskClient) -> None:
    assert [app.test_client().post("/sign-in", data=FORM).status_code for _ in range(12)] == [303] * 12


# ---- The session -------------------------------------------------------------


def test_signing_out_ends_the_session(ada: FlaskClient) -> None:
    ada.post("/sign-in", data=FORM)
    assert ada.post("/sign-out").location == "/sign-in"
    assert ada.get("/admin/").status_code == 302
    assert ada.get("/sign-out").status_code == 405


def test_signing_in_begins_a_new_session_and_keeps_open_games(ada: FlaskClient) -> None:
    with ada.session_transaction() as cookie:
        cookie |= {"seats": {"a match": 1}, "planted": "by somebody"}
    ada.post("/sign-in", data=FORM)
    with ada.session_transaction() as cookie:
        assert "planted" not in cookie
        assert cookie["seats"] == {"a match": 1}


def test_a_copied_cookie_is_worth_nothing_after_signing_out(app: Flask, ada: FlaskClient) -> None:
    ada.post("/sign-in", data=FORM)
    cookie = ada.get_cookie("session")
    assert cookie is not None
    thief, elsewhere = app.test_client(), app.test_client()
    thief.set_cookie("session", cookie.value)
    elsewhere.post("/sign-in", data=FORM)
    assert thief.get("/admin/").status_code == 200
    ada.post("/sign-out")
    assert thief.get("/admin/").status_code == 302
    assert thief.get("/account").status_code == 302
    assert elsewhere.get("/admin/").status_code == 200  # the same person in another browser


def test_a_session_ends_after_its_hours(app: Flask, ada: FlaskClient) -> None:
    ada.post("/sign-in", data=FORM)
    app.config["SETTINGS"] = app.config["SETTINGS"].model_copy(update={"ADMIN_HOURS": 1})

    def began(minutes: float) -> None:
        with app.app_context(), writing() as session:
            session.execute(update(UserSession).values(began_at=datetime.now(UTC) - timedelta(minutes=minutes)))

    began(59)
    assert ada.get("/admin/").status_code == 200
    began(61)
    assert ada.get("/admin/").status_code == 302
    ada.post("/sign-in", data=FORM)
    with app.app_context(), reading() as session:
        assert session.scalar(select(func.count()).select_from(UserSession)) == 1  # the old one is forgotten


# ---- Links -------------------------------------------------------------------


def test_the_link_of_a_start_dies_with_the_next_one_and_after_half_an_hour(app: Flask) -> None:
    first, second = ("/enter/" + new_admin_link(app).rpartition("/")[2] for _ in range(2))
    client = app.test_client()
    assert "too old" in client.post(first).text
    with app.app_context(), writing() as session:
        [link] = session.scalars(select(LoginLink).where(LoginLink.used_at.is_(None)))
        assert link.expires_at - datetime.now(UTC) <= timedelta(minutes=30)
        link.expires_at = datetime.now(UTC) - timedelta(seconds=1)
    assert client.post(second).status_code == 403
    assert client.get("/admin/").status_code == 302


# ---- Setting a password ------------------------------------------------------


def test_who_came_by_a_link_sets_a_password_without_the_old_one(app: Flask) -> None:
    client = signed_in(app)
    assert "Set a password" in client.get("/account").text
    answer = client.post("/account", data={"new": PASSWORD, "again": PASSWORD})
    assert "The new password is set." in client.get(answer.location).text
    form = {"name": "admin", "password": PASSWORD}
    assert app.test_client().post("/sign-in", data=form).status_code == 303
    with app.app_context(), reading() as session:
        stored = session.scalar(select(User.password_hash))
    assert stored is not None
    assert stored.startswith("scrypt:")
    assert PASSWORD not in stored


def test_a_new_password_needs_the_old_one_and_ends_other_sessions(app: Flask, ada: FlaskClient) -> None:
    other = app.test_client()
    for client in (ada, other):
        client.post("/sign-in", data=FORM)
    another = {"new": "another long one", "again": "another long one"}
    assert ada.post("/account", data=another).status_code == 401
    assert ada.post("/account", data={**another, "old": PASSWORD}).status_code == 303
    assert ada.get("/admin/").status_code == 200
    assert other.get("/admin/").status_code == 302


@pytest.mark.parametrize(
    ("new", "again", "says"),
    [("short", "short", "expected 10 to 200 characters, got 5"), ("x" * 201, "x" * 201, "got 201"),
     (PASSWORD, PASSWORD + "!", "differ")],
)  # fmt: skip
def test_a_password_that_cannot_be_is_refused(app: Flask, new: str, again: str, says: str) -> None:
    answer = signed_in(app).post("/account", data={"new": new, "again": again})
    assert answer.status_code == 400
    assert says in answer.text
    assert new not in answer.text or new == "short"


def test_the_account_is_nobody_elses(app: Flask) -> None:
    assert app.test_client().get("/account").location == "/sign-in?next=/account"
    assert app.test_client().post("/account", data={"new": PASSWORD, "again": PASSWORD}).status_code == 302


# ---- On the command line -----------------------------------------------------


def test_a_user_is_created_with_a_password_that_is_typed_twice(app: Flask, run: Callable[..., Result]) -> None:
    result = run("create", "ada", input=f"{PASSWORD}\n{PASSWORD}\n")
    assert result.exit_code == 0, result.output
    assert PASSWORD not in result.output
    assert app.test_client().post("/sign-in", data=FORM).status_code == 303


def test_a_generated_password_is_printed_once_and_works(app: Flask, run: Callable[..., Result]) -> None:
    password = run("create", "ada", "--generate").stdout.rpartition("only here: ")[2].strip()
    assert app.test_client().post("/sign-in", data={"name": "ada", "password": password}).status_code == 303


def test_who_is_removed_is_signed_out_and_the_last_one_stays(
    app: Flask, ada: FlaskClient, run: Callable[..., Result]
) -> None:
    assert ada.post("/sign-in", data=FORM).status_code == 303
    alone = run("remove", "ada", "--yes")
    assert (alone.exit_code, "the only one" in alone.output) == (2, True)
    assert ada.get("/admin/").status_code == 200
    run("create", "grace", "--generate")
    assert run("remove", "ada", input="n\n").exit_code == 1
    assert run("remove", "ada", input="y\n").output.endswith("Removed ada.\n")
    assert ada.get("/admin/").status_code == 302
    assert run("remove", "ada", "--yes").exit_code == 2


def test_a_link_signs_in_once_without_a_restart(app: Flask, ada: FlaskClient, run: Callable[..., Result]) -> None:
    path = "/enter/" + run("link", "ada").stdout.strip().rpartition("/")[2]
    assert ada.post(path).status_code == 303
    assert ada.get("/account").status_code == 200
    assert app.test_client().post(path).status_code == 403


@pytest.mark.parametrize(
    ("arguments", "typed", "says"),
    [
        (("create", "eve"), "short\nshort\n", "password: expected 10 to 200 characters"),
        (("create", "ada"), "", "name: expected one that is not taken"),
        (("create", " "), "", "name: expected 1 to 80 characters"),
        (("link", "eve"), "", "name: expected one of the experimenters (ada)"),
    ],
)
def test_what_cannot_be_is_one_line(
    ada: FlaskClient, run: Callable[..., Result], arguments: tuple[str, ...], typed: str, says: str
) -> None:
    result = run(*arguments, input=typed)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith(f"Error: {says}")


# ---- The time zone -----------------------------------------------------------


def test_moments_are_shown_in_the_zone_of_who_reads_them(app: Flask, ada: FlaskClient) -> None:
    ada.post("/sign-in", data=FORM)
    with app.app_context(), writing() as session:
        ada_herself = accounts.find_user(session, "ada")
        tokens.create(session, ada_herself, "lab", ["read"], "1", datetime(2026, 7, 1, 22, 30, tzinfo=UTC))
    page = ada.get("/account").text
    assert "2026-07-02 22:30" in page
    assert "Times are those of UTC." in page
    chosen = ada.post("/account/time-zone", data={"time_zone": "Europe/Berlin"}, follow_redirects=True).text
    assert "The pages show times of Europe/Berlin now." in chosen
    assert "2026-07-03 00:30" in chosen
    assert '<option lang="en" selected>Europe/Berlin</option>' in chosen
    refused = ada.post("/account/time-zone", data={"time_zone": "Europe/Nowhere"})
    assert refused.status_code == 400
    assert "expected a time zone such as Europe/Berlin, got 'Europe/Nowhere'" in html.unescape(refused.text)
    assert "2026-07-03 00:30" in refused.text
    assert "Times are those of UTC." in signed_in(app).get("/account").text  # somebody else
