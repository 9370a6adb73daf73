"""Links that Prolific signs: who comes in and back by one, and who does not. Its keys are our own, over HTTP."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from flask import Flask

from app.core.extensions import reading, writing
from app.models import Enrolment, Submission
from app.studies.answers import finish
from app.studies.progress import find_progress_by_token
from app.studies.waves import find_wave, pause
from app.web.study import signing_keys
from tests.experimenter import signed_in
from tests.integration.test_cli_dataset import flask
from tests.stub_recruiters import Prolific, SigningKey, StubRecruiters
from tests.study_pages import Walker, door_of, prolific_id, text_of
from tests.waves import new_wave

STUDY = "66f0c1"
NOT_LET_IN = "This link does not let you in here."
FIRST, SECOND, STRANGE = SigningKey("first"), SigningKey("second"), SigningKey("first")


@pytest.fixture
def prolific(monkeypatch: pytest.MonkeyPatch) -> Iterator[Prolific]:
    # The process keeps keys by their address, and another test's server may have had the same port.
    monkeypatch.setattr(signing_keys, "_at", {})
    with StubRecruiters() as recruiters:
        recruiters.prolific.study(STUDY, "")
        recruiters.prolific.sign_links(FIRST)
        yield recruiters.prolific


@pytest.fixture
def app(make_app: Callable[..., Flask], prolific: Prolific) -> Iterator[Flask]:
    app = make_app(PROLIFIC_KEYS_URL=prolific.keys_at)
    with app.app_context():
        yield app


@pytest.fixture
def wave(app: Flask) -> None:
    open_wave()


def open_wave(**terms: Any) -> None:
    with writing() as session:
        new_wave(session, provider={"prolific": {"study_id": STUDY, "signed": True, **terms}})


def link(name: str, token: str | None, visit: str = "visit1") -> str:
    """The link of somebody, with a token or without one."""
    ids = {"PROLIFIC_PID": prolific_id(name), "STUDY_ID": STUDY, "SESSION_ID": visit}
    signed = {} if token is None else {"prolific_token": token}
    return f"/s/two-models/main?{urlencode({**ids, **signed})}"


def count(model: Any) -> int:
    with reading() as session:
        return int(session.query(model).count())


def unsigned(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    """A token put together by hand."""
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in parts)


def claims_of(name: str, visit: str = "visit1") -> dict[str, Any]:
    ids = {"PROLIFIC_PID": prolific_id(name), "SESSION_ID": visit, "STUDY_ID": STUDY}
    return {"exp": int(time.time()) + 3600, "prolific": ids}


def by_password(name: str) -> str:
    """A token that is signed with the public key in place of a password."""
    public = FIRST.private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    whole = unsigned({"alg": "HS256", "kid": "first"}, claims_of(name)).rpartition(".")[0]
    signature = base64.urlsafe_b64encode(hmac.digest(public, whole.encode(), hashlib.sha256)).rstrip(b"=").decode()
    return f"{whole}.{signature}"


def by_key(name: str, key: SigningKey, kid: str | None = "first") -> str:
    return jwt.encode(claims_of(name), key.private, "RS256", {} if kid is None else {"kid": kid})


def changed(token: str) -> str:
    """A token of one person, with the claims of Ann put in."""
    head, _, signature = token.split(".")
    claims = base64.urlsafe_b64encode(json.dumps(claims_of("ann")).encode()).rstrip(b"=").decode()
    return f"{head}.{claims}.{signature}"


FORGED: dict[str, tuple[Callable[[Prolific], str | None], str]] = {
    "missing": (lambda _: None, "is not in this link"),
    "empty": (lambda _: "", "is not in this link"),
    "words": (lambda _: "let me in", "is not valid"),
    "very long": (lambda _: "a" * 5000, "is not valid"),
    "none": (lambda _: unsigned({"alg": "none", "kid": "first"}, claims_of("ann")), "is not valid"),
    "None": (lambda _: unsigned({"alg": "None", "kid": "first"}, claims_of("ann")), "is not valid"),
    "public key as a password": (lambda _: by_password("ann"), "is not valid"),
    "no signature": (lambda _: unsigned({"alg": "RS256", "kid": "first"}, claims_of("ann")), "is not valid"),
    "wrong key": (lambda _: by_key("ann", STRANGE), "is not valid"),
    "wrong kid": (lambda _: by_key("ann", FIRST, "nobody's"), "is not valid"),
    "no kid": (lambda _: by_key("ann", FIRST, None), "is not valid"),
    "key of one's own in the head": (
        lambda _: jwt.encode(claims_of("ann"), STRANGE.private, "RS256", {"kid": "own", "jwk": STRANGE.public()}),
        "is not valid",
    ),
    "claims put in": (lambda at: changed(at.token("ben", "visit1")), "is not valid"),
    "no end": (lambda at: at.token("ann", "visit1", exp=None), "is not valid"),
    "nonsense for an end": (lambda at: at.token("ann", "visit1", exp="soon"), "is not valid"),
    "expired": (lambda at: at.token("ann", "visit1", exp=int(time.time()) - 120), "has expired"),
    "not yet": (lambda at: at.token("ann", "visit1", nbf=int(time.time()) + 600), "is not valid"),
    "other study": (lambda at: at.token("ann", "visit1", study="0123ab"), "for another person"),
    "other person": (lambda at: at.token("ben", "visit1"), "for another person"),
    "swapped session": (lambda at: at.token("ann", "visit2"), "for another person"),
    "names that no link has": (
        lambda at: at.token("ann", "visit1", prolific={"participant_id": prolific_id("ann"), "session_id": "visit1"}),
        "for another person",
    ),
    "no ids": (lambda at: at.token("ann", "visit1", prolific=None), "for another person"),
    "a list for ids": (lambda at: at.token("ann", "visit1", prolific=[prolific_id("ann")]), "for another person"),
}


@pytest.mark.parametrize("kind", FORGED)
def test_nobody_comes_in_or_back_without_a_valid_signature(
    app: Flask, wave: None, prolific: Prolific, kind: str
) -> None:
    make, told = FORGED[kind]
    door = link("ann", make(prolific))
    first = app.test_client().post(door)
    assert (first.status_code, count(Enrolment), count(Submission)) == (403, 0, 0)
    shown = text_of(first)
    assert NOT_LET_IN in shown
    assert told in shown
    assert "Open the study on Prolific once more" in shown

    ann = Walker(app.test_client(), link("ann", prolific.token("ann", "visit1")))
    ann.send(part="yes")
    again = app.test_client().post(door)  # in another browser, with the id and the visit of Ann
    assert (again.status_code, text_of(again)) == (403, shown)
    assert "/s/me/" not in again.text
    assert (count(Enrolment), count(Submission)) == (1, 1)


def test_with_a_signature_one_comes_in_and_back_in_any_browser_and_on_another_visit(
    app: Flask, wave: None, prolific: Prolific
) -> None:
    ann = Walker(app.test_client(), link("ann", prolific.token("ann", "visit1")))
    ann.send(part="yes")
    assert app.test_client().post(link("ann", prolific.token("ann", "visit1"))).location == ann.address
    other = app.test_client().post(link("ann", prolific.token("ann", "visit2"), "visit2"))
    assert other.location == ann.address
    loud = link("ann", prolific.token("ann", "visit3"), "visit3").replace(
        prolific_id("ann"), prolific_id("ann").upper()
    )
    assert app.test_client().post(loud).location == ann.address
    with writing() as session:
        finish(session, find_progress_by_token(session, ann.address.rpartition("/")[2], lock=True), "completed")
    assert app.test_client().post(link("ann", prolific.token("ann", "visit4"), "visit4")).location == ann.address
    assert (count(Enrolment), prolific.asked) == (1, 1)


def test_clocks_may_differ_a_little(app: Flask, wave: None, prolific: Prolific) -> None:
    now = int(time.time())
    late = prolific.token("ann", "visit1", exp=now - 20)
    early = prolific.token("ben", "visit1", iat=now + 30, nbf=now + 30)
    assert [app.test_client().post(link(name, it)).status_code for name, it in (("ann", late), ("ben", early))] == [
        303, 303,
    ]  # fmt: skip


def test_the_browser_that_knows_the_private_link_comes_back_without_and_nothing_unsigned_is_kept(
    app: Flask, wave: None, prolific: Prolific
) -> None:
    ann = Walker(app.test_client(), link("ann", prolific.token("ann", "visit1")))
    assert ann.client.post(link("ann", None, "made-up")).location == ann.address
    assert ann.client.post(link("ben", None)).status_code == 403
    with reading() as session:
        assert [row.external_id for row in session.query(Submission)] == ["visit1"]


def test_a_link_without_a_signature_says_so_before_anything_is_pressed(app: Flask, wave: None) -> None:
    page = app.test_client().get(link("ann", None))
    assert "This link is not complete." in text_of(page)
    assert "data-entry" not in page.text


def test_a_new_key_is_fetched_when_a_link_is_signed_by_it(app: Flask, wave: None, prolific: Prolific) -> None:
    Walker(app.test_client(), link("ann", prolific.token("ann", "visit1")))
    prolific.sign_links(SECOND)
    assert Walker(app.test_client(), link("ben", prolific.token("ben", "visit1"))).step == "consent"
    assert prolific.asked == 2


def test_a_key_that_was_taken_back_counts_no_longer_once_the_keys_are_fetched_anew(
    app: Flask, wave: None, prolific: Prolific
) -> None:
    old = prolific.token("ann", "visit1")
    assert app.test_client().post(link("ann", old)).status_code == 303
    prolific.keys[:] = [SECOND]
    assert app.test_client().post(link("ben", prolific.token("ben", "visit1"))).status_code == 303
    assert app.test_client().post(link("ann", old)).status_code == 403


def test_invented_keys_have_the_real_ones_fetched_once_a_minute(app: Flask, wave: None, prolific: Prolific) -> None:
    Walker(app.test_client(), link("ann", prolific.token("ann", "visit1")))
    for at in range(12):
        forged = app.test_client().post(link("ben", by_key("ben", STRANGE, f"invented {at}")))
        assert forged.status_code == 403
    assert prolific.asked == 2
    assert app.test_client().post(link("ben", prolific.token("ben", "visit1"))).status_code == 303
    assert prolific.asked == 2


def test_where_the_keys_are_away_a_page_says_so_and_nothing_is_stored(
    app: Flask, wave: None, prolific: Prolific, monkeypatch: pytest.MonkeyPatch
) -> None:
    prolific.keys_away = True
    door = link("ann", prolific.token("ann", "visit1"))
    for _ in range(3):
        refused = app.test_client().post(door)
        assert (refused.status_code, count(Enrolment), count(Submission)) == (503, 0, 0)
        assert "because its keys could" in text_of(refused)
        assert "Please wait a minute, and try again." in text_of(refused)
    assert prolific.asked == 1  # it is not asked again at once
    prolific.keys_away = False
    monkeypatch.setattr(signing_keys.signing_keys(prolific.keys_at), "_next", 0.0)  # the pause is over
    ann = Walker(app.test_client(), door)
    assert ann.step == "consent"

    prolific.keys_away = True  # those that are known stay good for a while
    assert app.test_client().post(link("ann", prolific.token("ann", "visit2"), "visit2")).location == ann.address
    new = SigningKey("third")
    unknown = app.test_client().post(link("ben", by_key("ben", new, "third")))
    assert (unknown.status_code, "because its keys could" in text_of(unknown)) == (503, True)
    assert ann.client.post(link("ann", by_key("ann", new, "third"))).location == ann.address


def test_a_server_that_never_answers_is_not_waited_for_long(
    app: Flask, wave: None, prolific: Prolific, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing_keys, "PATIENCE", 0.2)
    monkeypatch.setattr(signing_keys, "_fetch", lambda _url: time.sleep(3))
    refused = app.test_client().post(link("ann", prolific.token("ann", "visit1")))
    assert (refused.status_code, count(Enrolment)) == (503, 0)


def test_keys_come_from_the_address_of_the_setting_alone(make_app: Callable[..., Flask], prolific: Prolific) -> None:
    app = make_app(PROLIFIC_KEYS_URL=prolific.keys_at.replace("jwks.json", "moved.json"))
    with app.app_context():
        open_wave()
        assert app.test_client().post(link("ann", prolific.token("ann", "visit1"))).status_code == 503
    assert prolific.asked == 0


@pytest.mark.parametrize(
    "answer", ["[]", "{}", '{"keys": [{"kty": "oct", "kid": "first", "k": "c2VjcmV0"}]}', "<p>", ""]
)
def test_what_is_no_set_of_keys_counts_as_none(
    app: Flask, wave: None, prolific: Prolific, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr(signing_keys, "_fetch", lambda _url: answer.encode())
    assert app.test_client().post(link("ann", prolific.token("ann", "visit1"))).status_code == 503


@pytest.mark.parametrize("audience", ["https://parlor.example", "parlor.example"])
def test_a_token_for_another_site_is_refused_where_the_wave_says_for_which(
    app: Flask, prolific: Prolific, audience: str
) -> None:
    open_wave(audience=audience)
    named: dict[str, Any] = {
        "ann": "https://parlor.example",
        "ada": "parlor.example",
        "ali": f"https://parlor.example/s/two-models/main?PROLIFIC_PID={prolific_id('ali')}",
        "amy": ["https://another.example", "https://Parlor.example"],
        "ben": "https://another.example",
        "bob": "https://parlor.example.another.example/",
        "cem": None,
        "dan": ["https://parlor.example]", 7],
    }
    tokens = {name: prolific.token(name, "visit1", aud=aud) for name, aud in named.items()}
    found = {name: app.test_client().post(link(name, token)).status_code for name, token in tokens.items()}
    assert {name for name, status in found.items() if status == 303} == {"ann", "ada", "ali", "amy"}
    assert {status for name, status in found.items() if name in ("ben", "bob", "cem", "dan")} == {403}


def test_a_token_for_anybody_is_taken_where_the_wave_does_not_say(app: Flask, wave: None, prolific: Prolific) -> None:
    token = prolific.token("ann", "visit1", aud="https://parlor.example")
    assert app.test_client().post(link("ann", token)).status_code == 303


def test_where_nobody_new_comes_in_a_forged_link_is_shown_what_any_other_is(
    app: Flask, wave: None, prolific: Prolific
) -> None:
    Walker(app.test_client(), link("ann", prolific.token("ann", "visit1")))
    with writing() as session:
        pause(session, find_wave(session, "two-models:main"))
    pages = {text_of(app.test_client().post(link(name, "forged"))) for name in ("ann", "nobody")}
    assert len(pages) == 1
    assert "This study is paused." in pages.pop()


def test_other_waves_look_at_no_signature(app: Flask, prolific: Prolific) -> None:
    with writing() as session:
        new_wave(session)
    assert app.test_client().post(f"{door_of('ann')}&prolific_token=forged").status_code == 303
    assert prolific.asked == 0


def test_the_form_opens_a_signed_wave_and_its_page_says_that_it_is_one(app: Flask) -> None:
    with writing() as session:
        new_wave(session, wave="before")
    client = signed_in(app)
    form = {
        "wave": "main", "recruiter": "prolific", "recruiter_id": STUDY, "signed": "1", "places": "3",
        "most_spent": "1000", "code_completed": "CDONE",
    }  # fmt: skip
    opened = client.post("/admin/studies/1/waves/new", data=form)
    assert opened.status_code == 303
    assert "People come in by links that Prolific has signed." in text_of(client.get(opened.location))
    assert "by links that Prolific has signed" not in text_of(client.get("/admin/studies/waves/1"))
    assert app.test_client().post(link("ann", None)).status_code == 403
    refused = client.post("/admin/studies/1/waves/new", data={**form, "wave": "more", "recruiter": "connect"})
    assert refused.status_code == 400


def test_there_is_no_link_with_extra_time_where_links_have_to_be_signed(app: Flask, wave: None) -> None:
    done = flask(app, "study", "extra-time", "two-models:main", "1.5", "--id", prolific_id("ann"))
    assert done.exit_code == 2
    assert "expected a participant's code, as only links that the recruiter has signed" in done.stderr
