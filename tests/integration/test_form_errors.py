"""Errors on pages: the form marks the field at fault, and the text is in the page's language."""

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.campaigns import campaign_form
from tests.experimenter import signed_in
from tests.rounds import round_form

ROUND, TABOO = round_form("negotiation"), round_form("taboo")
CAMPAIGN = campaign_form("negotiation", "scripted")
JOB = {"dataset": "1", "method": "tiny", "base": "", "name": "small", "epochs": "3"}
DATASET = {"rounds": "", "game": "negotiation", "filter": "above_avg", "source": "both", "style": "full"}
MODEL = {"name": "mine", "games": ["negotiation"], "model": "m", "base_url": "http://127.0.0.1:9/v1", "key_env": ""}

# The form, what is wrong in it, the field that is marked, and the text in German.
WRONG = [
    ("rounds", ROUND, {"limit": "0"}, "limit", "erwartet: eine ganze Zahl von 1 bis 1000, erhalten: '0'"),
    ("rounds", ROUND, {"seed": "soon"}, "seed", "Seed: erwartet: eine ganze Zahl von 0 bis 9223372036854775807"),
    ("rounds", ROUND, {"temperature": "3"}, "temperature", "erwartet: eine Zahl von 0 bis 2, erhalten: '3'"),
    ("rounds", ROUND, {"model_1": "nobody"}, "model_0", "das negotiation spielt und in Durchgängen nutzbar ist"),
    ("rounds", ROUND, {"model_0": ""}, "model_0", "erwartet: ein Modell, erhalten: keine"),
    ("rounds", ROUND, {"objective": "lambda", "lam": "2"}, "lam", "erwartet: eine Zahl von -1 bis 1, erhalten: '2'"),
    ("rounds", ROUND, {"contexts": "upload", "contexts_text": "1 2"}, "contexts", "Zeile 1: erwartet: sechs ganze"),
    ("rounds", TABOO, {"words": "upload", "words_text": "cat\ncat"}, "words", "erhalten: noch einmal 'cat'"),
    (
        "rounds",
        TABOO,
        {"words": "upload", "words_text": "a b"},
        "words",
        "Zeile 1: word: erwartet: ein englisches",
    ),
    ("rounds", TABOO, {"rule": "kind"}, "rule", "erwartet: strict oder released, erhalten: 'kind'"),
    ("campaigns", CAMPAIGN, {}, "base", "ein lokales Modell, das Gewichte hat"),
    ("campaigns", CAMPAIGN, {"iterations": "0"}, "iterations", "erwartet: eine ganze Zahl von 1 bis 100"),
    ("campaigns", CAMPAIGN, {"epochs": "many"}, "epochs", "erwartet: eine Zahl über 0, erhalten: 'many'"),
    ("jobs", JOB, {"dataset": "mine"}, "dataset", "Datensatz: erwartet: Nummer, Name oder Name@Version eines"),
    ("jobs", JOB, {"epochs": "0"}, "epochs", "erwartet: eine Zahl über 0, erhalten: '0'"),
    ("jobs", JOB, {"config": "width"}, "config", "eine Zeile wie width = 64, einmal je Feld, erhalten: 'width'"),
    ("jobs", JOB, {"config": "depth = 1"}, "config", "erwartet: ein Feld von tiny"),
    (
        "datasets",
        DATASET,
        {"game": ""},
        "rounds",
        "erwartet: die Nummer eines Durchgangs oder einer Kampagne,",
    ),
    ("datasets", DATASET, {"rounds": "99"}, "rounds", "erwartet: eine vorhandene Nummer, erhalten: 99"),
    ("datasets", DATASET, {"filter": "best"}, "filter", "erhalten: 'best'"),
    ("datasets", DATASET, {"since": "today"}, "since", "erwartet: ein Tag wie 2026-01-31, erhalten: 'today'"),
    ("models", MODEL, {"games": []}, "games", "Spielt: erwartet: mindestens eines, das das Modell spielt"),
    ("models", MODEL, {"name": "scripted"}, "name", "Name: erwartet: noch nicht vergeben, erhalten: 'scripted'"),
    ("models", MODEL, {"top_p": "2"}, "top_p", "erwartet: eine Zahl von 0 bis 1, erhalten: 2"),
    ("models", MODEL, {"extra": "x"}, "extra", 'erwartet: ein JSON-Objekt wie {"top_k": 40}, erhalten: etwas anderes'),
    (
        "models",
        MODEL,
        {"base_url": "http://a:b@c/v1"},
        "base_url",
        "in die Variable, die „Variable des Schlüssels“",
    ),
]


def marked(page: str) -> set[str]:
    """The fields that a page marks: as such, or by the error that stands beside them."""
    found = re.findall(r'<(?:input|select|textarea)[^>]*aria-(?:invalid="true"|describedby="[^"]*refused")[^>]*>', page)
    return {name[1] for each in found if (name := re.search(r' name="([\w-]+)"', each))}


def error_of(page: str) -> tuple[str, str]:
    """The attributes and the text of the note that says why the form was refused."""
    found = re.search(r'<p([^>]*) class="note note-bad"[^>]*role="alert"[^>]*>(.*?)</p>', page)
    assert found is not None
    return found[1], html.unescape(re.sub("</?code>", "", found[2]))


@pytest.fixture
def client(make_app: Callable[..., Flask]) -> FlaskClient:
    return signed_in(make_app(LANGUAGES="en,de"))


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize(("kind", "form", "wrong", "field", "german"), WRONG, ids=lambda each: str(each)[:40])
def test_a_form_marks_the_field_and_says_why_in_the_pages_language(
    client: FlaskClient, kind: str, form: dict[str, Any], wrong: dict[str, Any], field: str, german: str, language: str
) -> None:
    answer = client.post(f"/admin/{kind}/new", data={**form, **wrong}, headers={"Accept-Language": language})
    assert 400 <= answer.status_code < 500
    lang, text = error_of(answer.text)
    assert marked(answer.text) <= {field}
    assert f'id="{field}"' in answer.text or f'name="{field}"' in answer.text
    if language == "de":
        assert (german in text, lang) == (True, ""), text
    else:
        assert ("expected " in text, "erwartet" in text, lang) == (True, False, ' lang="en"'), text


def test_an_error_page_is_in_the_pages_language_and_json_is_in_english(client: FlaskClient) -> None:
    german = {"Accept-Language": "de"}
    page = html.unescape(client.get("/admin/rounds/99", headers=german).text)
    assert "erwartet: eine vorhandene Nummer, erhalten: 99; <code>flask round list</code> zeigt sie" in page
    assert 'lang="en">round: ' not in page
    body = {"game": "chess", "opponent": "nobody"}
    error = client.post("/api/matches", json=body, headers=german).get_json()["error"]
    assert error == {
        "code": "not_found",
        "message": "game: expected negotiation or taboo, got 'chess'",
    }


def test_a_refused_button_says_why_in_the_pages_language(client: FlaskClient) -> None:
    answer = client.get("/admin/matches?since=today", headers={"Accept-Language": "de"})
    assert error_of(answer.text) == ("", "since: erwartet: ein Tag wie 2026-01-31, erhalten: 'today'")
