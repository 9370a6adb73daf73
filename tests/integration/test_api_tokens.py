"""API tokens: made on the account page and by a command, shown once, revoked."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from sqlalchemy import select

from app import accounts
from app.accounts import tokens
from app.core.errors import Conflict, Invalid, NotFound
from app.core.extensions import reading, writing
from app.models import ApiToken, User
from tests.experimenter import signed_in
from tests.shell import Finished

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def ann(app: Flask) -> int:
    with writing() as session:
        return accounts.create_user(session, "ann", None, NOW).id


def make(user: int, name: str = "notebook", scopes: tuple[str, ...] = ("read",), days: int = 2) -> str:
    with writing() as session:
        return tokens.create(session, session.get_one(User, user), name, scopes, days, NOW)[1]


def holder(secret: str, at: datetime = NOW) -> tokens.TokenHolder:
    with reading() as session:
        return tokens.holder_of(session, secret, at)


def test_a_token_stands_for_its_experimenter_and_only_its_hash_is_kept(ann: int) -> None:
    secret = make(ann, scopes=("people", "read"))
    found = holder(secret)
    assert (found.user, found.token, found.scopes) == ("ann", "notebook", {"read", "people"})
    with reading() as session:
        [row] = session.scalars(select(ApiToken))
        assert row.scopes == ["read", "people"]
        assert secret not in repr(vars(row))


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        ("", "expected Bearer and a token, which begins with parlor_, got another text"),
        ("Basic YTpi", "expected Bearer and a token, which begins with parlor_, got another text"),
        ("parlor_unknown", "expected a token that exists, got another one"),
    ],
)
def test_what_is_no_token_lets_nobody_in(ann: int, secret: str, said: str) -> None:
    with pytest.raises(tokens.BadToken, match=re.escape(said)) as caught:
        holder(secret)
    assert caught.value.status == 401
    assert "unknown" not in caught.value.message  # a mistyped token may be nearly a good one


def test_a_token_ends_with_its_last_day(ann: int) -> None:
    secret = make(ann, days=2)
    assert holder(secret, NOW + timedelta(days=2, seconds=-1)).user == "ann"
    with pytest.raises(tokens.BadToken, match="got notebook, expired on 2026-02-02; the account page makes tokens"):
        holder(secret, NOW + timedelta(days=2))


def test_a_revoked_token_lets_nobody_in_and_its_name_is_free(ann: int) -> None:
    secret, other = make(ann), make(ann, "laptop")
    with writing() as session:
        tokens.revoke(session, 1, NOW)
    with pytest.raises(tokens.BadToken, match="got notebook, revoked on 2026-01-31"):
        holder(secret)
    assert holder(other).token == "laptop"
    with pytest.raises(Conflict, match="expected one that is not revoked"), writing() as session:
        tokens.revoke(session, 1, NOW)
    assert holder(make(ann)).token == "notebook"


def test_nobody_revokes_the_token_of_another_experimenter(ann: int) -> None:
    secret = make(ann)
    with writing() as session:
        other = accounts.create_user(session, "bob", None, NOW).id
    with pytest.raises(NotFound), writing() as session:
        tokens.revoke(session, 1, NOW, user_id=other)
    assert holder(secret).user == "ann"


def test_the_tokens_of_an_experimenter_who_was_removed_are_gone(ann: int) -> None:
    secret = make(ann)
    with writing() as session:
        accounts.create_user(session, "bob", None, NOW)
        accounts.remove_user(session, "ann")
    with pytest.raises(tokens.BadToken):
        holder(secret)


@pytest.mark.parametrize(
    ("name", "scopes", "days", "said"),
    [
        ("", ("read",), 2, "name: expected 1 to 80 characters without spaces around them, got ''"),
        ("x", (), 2, "scope: expected read or run or people, got none"),
        ("x", ("root",), 2, "scope: expected read or run or people, got 'root'"),
        ("x", ("read",), 0.5, "days: expected a whole number from 1 to 366, got 0.5"),
        ("x", ("read",), 367, "days: expected a whole number from 1 to 366, got 367"),
    ],
)
def test_what_cannot_be_a_token_is_refused(ann: int, name: str, scopes: tuple[str, ...], days: int, said: str) -> None:
    with pytest.raises(Invalid) as caught:
        make(ann, name, scopes, days)
    assert caught.value.message == said


def test_two_tokens_that_are_in_use_have_two_names(ann: int) -> None:
    make(ann)
    with pytest.raises(Conflict, match="name: expected one that no other token has, got 'notebook'; revoke that one"):
        make(ann)


def test_the_last_use_is_noted_to_the_minute(ann: int) -> None:
    secret = make(ann)
    assert tokens.should_record_use(holder(secret), NOW)
    with writing() as session:
        tokens.note_use(session, 1, NOW)
    found = holder(secret)
    assert found.used_at == NOW
    assert not tokens.should_record_use(found, NOW + timedelta(seconds=59))
    assert tokens.should_record_use(found, NOW + timedelta(seconds=60))


# ---- The account page --------------------------------------------------------


def test_the_account_page_makes_a_token_shows_it_once_and_revokes_it(app: Flask) -> None:
    browser = signed_in(app)
    page = browser.post("/account/tokens", data={"token_name": "notebook", "scope": ["read", "run"], "days": "30"}).text
    [secret] = re.findall(r"<code>(parlor_[\w-]+)</code>", page)
    assert holder(secret, datetime.now(UTC)).scopes == {"read", "run"}
    page = browser.get("/account").text
    assert "notebook" in page
    assert secret not in page
    [address] = re.findall(r'action="(/account/tokens/\d+)"', page)
    assert browser.post(address).status_code == 303
    page = browser.get("/account").text
    assert "revoked" in page
    assert address not in page
    with pytest.raises(tokens.BadToken):
        holder(secret, datetime.now(UTC))


def test_the_account_page_says_why_a_token_was_not_made(app: Flask) -> None:
    answer = signed_in(app).post("/account/tokens", data={"token_name": "x", "scope": "read", "days": "many"})
    assert answer.status_code == 400
    assert "expected a whole number from 1 to 366, got &#39;many&#39;" in answer.text


# ---- The commands ------------------------------------------------------------


def test_commands_make_list_and_revoke_tokens(app: Flask, ann: int) -> None:
    def run(*words: str) -> str:
        answer = app.test_cli_runner().invoke(args=["token", *words])
        assert answer.exit_code == 0, answer.output
        return answer.output

    made = json.loads(run("create", "robot", "--user", "ann", "--scope", "read", "--scope", "run", "--json"))
    assert holder(made["token"], datetime.now(UTC)).scopes == {"read", "run"}
    assert re.match(r"Token, shown only here: parlor_\S+\n", run("create", "other", "--user", "ann"))
    listed = json.loads(run("list", "--json"))
    assert [(each["name"], each["user"], each["state"]) for each in listed] == [
        ("other", "ann", "valid"),
        ("robot", "ann", "valid"),
    ]
    assert run("revoke", str(made["token_id"])) == "Revoked robot.\n"
    assert [each["state"] for each in json.loads(run("list", "--json"))] == ["valid", "revoked"]
    assert "Nothing was changed" in run("changes")


def test_the_command_refuses_what_cannot_be_in_one_line(app: Flask, ann: int, flask: Callable[..., Finished]) -> None:
    answer = app.test_cli_runner().invoke(args=["token", "create", "x", "--user", "nobody"])
    assert answer.exit_code != 0
    finished = flask("token", "create", "x", "--user", "ann", "--scope", "root")
    assert (finished.exit_code, finished.stderr) == (2, "Error: scope: expected read or run or people, got 'root'\n")
