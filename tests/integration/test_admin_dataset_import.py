"""The admin page that imports datasets: the form, what it refuses, and the pages of what was imported."""

import html
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine
from werkzeug.test import TestResponse

from app.core.extensions import reading, transact
from app.datasets import register
from app.datasets.best_responses import best_responses
from app.datasets.store import get_dataset
from tests.experimenter import signed_in

USER = {"role": "user", "content": "Which animal purrs?"}
CHAT = {"messages": [USER, {"role": "assistant", "content": "Ask <b>another</b>."}]}
RATED = {"query": "Which animal?", "responses": ["A good one.", "A bad one."], "scores": [6, 2]}
PAIR = {"chosen": "\n\nHuman: Hi\n\nAssistant: Yes?\n\nHuman: Why?\n\nAssistant: So.", "rejected": ""}
PAIR["rejected"] = PAIR["chosen"].replace("So.", "No.")


def upload(
    client: FlaskClient, row_format: str, *rows: Any, file_name: str = "mine.jsonl", **fields: str
) -> TestResponse:
    content = "\n".join(json.dumps(row) for row in rows).encode()
    data = {"format": row_format, "name": "", "file": (io.BytesIO(content), file_name), **fields}
    return client.post("/admin/datasets/import", data=data)


def counted(client: FlaskClient) -> int:
    """How many datasets the list has."""
    return len(re.findall(r'<th scope="row"', client.get("/admin/datasets").text))


@pytest.fixture
def client(make_app: Callable[..., Flask]) -> FlaskClient:
    return signed_in(make_app(LANGUAGES="en,de"))


def test_an_upload_is_shown_with_its_rows_and_stands_in_the_list(client: FlaskClient) -> None:
    form = client.get("/admin/datasets/import").text
    for name in ("parlor", "spag-rows", "stable-alignment", "hh", "alpaca", "openai"):
        assert f'value="{name}"' in form
    answer = upload(client, "openai", CHAT, file_name="chats.jsonl")
    assert (answer.status_code, answer.location) == (303, "/admin/datasets/1")
    page = client.get("/admin/datasets/1").text
    assert "Ask &lt;b&gt;another&lt;/b&gt;." in page
    assert re.search(r"<dt>From</dt><dd><span>the file chats.jsonl", page)
    assert "What it was imported from" in page
    assert "Where its rows are from" not in page
    assert upload(client, "hh", PAIR, name="pairs").location == "/admin/datasets/2"
    page = client.get("/admin/datasets/2").text
    assert re.findall(r"response, rated (\d)", page) == ["1", "0"]
    assert re.findall(r"<pre[^>]*>(.*?)</pre>", page) == ["Hi", "Yes?", "Why?", "So.", "No."]
    listed = client.get("/admin/datasets").text
    assert "the file chats.jsonl" in listed
    assert "Comparisons" in listed
    assert client.get("/admin/datasets/2/rows").status_code == 200
    assert json.loads(client.get("/admin/datasets/2.jsonl").text)["query"] == "Why?"
    assert upload(client, "openai", CHAT).location == "/admin/datasets/1?imported=before"
    assert "was imported before" in client.get("/admin/datasets/1?imported=before").text
    assert counted(client) == 2


def test_the_best_responses_of_a_dataset_are_listed_and_lead_to_it(
    client: FlaskClient, engine: Engine, home: Path
) -> None:
    upload(client, "stable-alignment", RATED, name="rated")
    with reading(engine) as session:
        draft = best_responses(home, get_dataset(session, 1))
    assert register.save(transact(engine), draft, "best") == 2
    for page in ("/admin/datasets", "/admin/datasets/2"):
        assert re.search('href="/admin/datasets/1">[Tt]he best responses of rated@1<', client.get(page).text), page
    assert client.get("/admin/datasets/new?like=2").status_code == 409
    refused = client.post("/admin/datasets/2/rebuild")
    assert (refused.status_code, "got the best responses of another one" in refused.text) == (409, True)


def test_bad_rows_are_listed_by_number_and_left_out_if_wanted(client: FlaskClient) -> None:
    rows = RATED, {**RATED, "scores": [9, 1]}, {**RATED, "scores": [1]}
    answer = upload(client, "stable-alignment", *rows)
    found = html.unescape(answer.text)
    assert answer.status_code == 400
    assert "mine.jsonl: expected rows of the format stable-alignment, got 2 of 3 that are not" in found
    listed = re.findall(r"<dt>Row (\d)</dt><dd[^>]*>(.*?)</dd>", found)
    assert listed == [
        ("2", "scores[0]: expected a number from 0 to 7, got 9"),
        ("3", "scores: expected 2 numbers, got [1]"),
    ]
    assert counted(client) == 0
    assert upload(client, "stable-alignment", *rows, skip_bad="1").location == "/admin/datasets/1"
    assert "<dt>Bad rows left out</dt><dd>2</dd>" in client.get("/admin/datasets/1").text


def test_what_cannot_be_imported_is_said_on_the_form(client: FlaskClient) -> None:
    for answer, says in (
        (client.post("/admin/datasets/import", data={"format": "openai"}), "File: expected a file of rows, got none"),
        (upload(client, "csv", CHAT), "Format: expected parlor or spag-rows or"),
        (upload(client, "openai"), "mine.jsonl: expected rows of the format openai, got none"),
        (upload(client, "openai", CHAT, name="x" * 81), "Name: expected 1 to 80 characters"),
    ):
        assert (answer.status_code, says in html.unescape(answer.text)) == (400, True), says
    german = client.post("/admin/datasets/import", data={}, headers={"Accept-Language": "de"})
    assert "erwartet: eine Datei mit Zeilen" in german.text
    assert counted(client) == 0


def test_a_file_may_be_as_large_as_the_setting_says_if_one_is_signed_in(make_app: Callable[..., Flask]) -> None:
    app = make_app(DATASET_UPLOAD_MB=2)
    client = signed_in(app)
    long = {"messages": [USER, {"role": "assistant", "content": "word " * 300_000}]}  # 1.5 MB
    assert upload(client, "openai", long).status_code == 303
    refused = upload(client, "openai", long, CHAT, long)
    assert (refused.status_code, "File: expected at most 2 MB, got a larger file" in refused.text) == (413, True)
    assert "<code>flask dataset import</code> takes larger ones" in refused.text
    assert upload(app.test_client(), "openai", long).status_code in (302, 413)
    assert counted(client) == 1


def test_the_form_of_trainings_says_which_methods_a_dataset_is_for(client: FlaskClient) -> None:
    upload(client, "openai", CHAT, name="chats")
    upload(client, "stable-alignment", RATED, name="rated")
    page = client.get("/admin/jobs/new?dataset=2").text
    groups = re.findall(r'<optgroup label="([^"]+)">(.*?)</optgroup>', page)
    assert [(label, re.findall(r"<option[^>]*>([^<]+)", options)) for label, options in groups] == [
        ("Conversations, for sft, tiny, offline-po, sft-kl", ["chats, version 1"]),
        ("Comparisons, for dpo, stable-alignment", ["rated, version 1"]),
    ]
    assert re.search(r'name="method" value="stable-alignment" checked', page)
    assert not re.search(r'<option value="\d+" selected', client.get("/admin/jobs/new").text)  # of a new one's list
    wrong = client.post("/admin/jobs/new", data={"dataset": "2", "method": "tiny", "name": "small", "epochs": "1"})
    assert wrong.status_code == 400
    assert "Dataset: expected a dataset of conversations, as tiny needs, got rated@1, which holds" in wrong.text
