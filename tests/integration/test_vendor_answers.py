"""A vendor whose answers lack fields or have them in other forms: a call brings what can be read, and says the rest."""

import copy
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine

from app.core.errors import AppError
from app.finetuning.openai.client import OpenAIClient
from app.finetuning.together.client import TogetherClient
from app.finetuning.vendors import runner
from app.finetuning.vendors.client import VendorClient
from app.jobs import states
from app.models import TrainingJob
from app.players.api.options import read_options
from tests.integration.test_jobs_openai import add_base, cancel, make_job, write_dataset
from tests.integration.test_jobs_together import add_base as add_open_base
from tests.integration.test_jobs_together import environment_of
from tests.integration.test_jobs_together import make_job as make_open_job
from tests.jobs import row_of, run
from tests.odd_answers import ODD, altered, places_of
from tests.stub_fine_tuning import LOST, StubFineTuning
from tests.stub_openai import KEY, Reply, StubServer
from tests.stub_together import StubTogether

pytestmark = [
    pytest.mark.usefixtures("vendor_environment"),
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),  # the answers are the same on both
]
CALLS: dict[str, Callable[[VendorClient, Path, "Vendor"], Any]] = {
    "upload": lambda client, path, _: client.upload(path, "rows.jsonl"),
    "list_files": lambda client, *_: client.find_files("nobody's.jsonl"),
    "file": lambda client, *_: client.has_file("file-1"),
    "delete_file": lambda client, *_: client.delete_file("file-1"),
    "create": lambda client, _, vendor: client.create(vendor.body),
    "list_jobs": lambda client, *_: client.find_jobs("token", "file-1", 1.0),
    "retrieve": lambda client, _, vendor: client.retrieve(vendor.job),
    "cancel": lambda client, _, vendor: client.cancel(vendor.job),
    "events": lambda client, _, vendor: client.events(vendor.job, ()),
}


@dataclass(frozen=True)
class Vendor:
    """A vendor, what stands in its place, a request for a job, and the name of the first one there."""

    client: type[VendorClient]
    stub: type[StubFineTuning]
    body: Mapping[str, Any]
    job: str
    calls: Sequence[str] = tuple(CALLS)


SUPERVISED = {"type": "supervised", "supervised": {"hyperparameters": {}}}
VENDORS = {
    "openai": Vendor(
        OpenAIClient,
        StubFineTuning,
        {
            "model": "mini", "training_file": "file-1", "method": SUPERVISED, "metadata": {"parlor_token": "token"},
        },
        "ftjob-1",
    ),
    "together": Vendor(
        TogetherClient,
        StubTogether,
        {"model": "open", "training_file": "file-1", "suffix": "parlor-token", "training_method": {"method": "sft"}},
        "ft-1",
        (*CALLS, "metrics"),
    ),
}  # fmt: skip


def refusal_of(call: Callable[[], Any]) -> str | None:
    """What a call that may be refused says when it is; nothing when it is not."""
    try:
        call()
    except AppError as error:
        return error.message
    return None


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, each in VENDORS.items() for call in each.calls])
def test_a_call_brings_an_answer_or_one_line_whatever_a_field_is(
    app: Flask, stub: StubServer, name: str, call: str, tmp_path: Path
) -> None:
    kind = VENDORS[name]
    stub.key, vendor = KEY, kind.stub()
    stub.fine_tuning = vendor
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]}\n')
    options = read_options({"model": "mini", "base_url": stub.url})
    client = kind.client(options, app.config["SETTINGS"].api_hosts)
    usual: list[Any] = []

    def keep(name: str, body: Any) -> Any:
        if name == call:
            usual.append(copy.deepcopy(body))
        return body

    def prepare() -> None:
        vendor.files, vendor.contents, vendor.jobs = {}, {}, []
        vendor.alter = lambda _name, body: body
        client.create({**kind.body, "training_file": client.upload(rows, "rows.jsonl")})
        client.retrieve(kind.job), client.retrieve(kind.job)  # it runs, and has events with figures

    def ask() -> Any:
        return CALLS["events" if call == "metrics" else call](client, rows, kind)

    try:
        prepare()
        vendor.alter = keep
        ask()
        places = [*places_of(usual[0])]
        assert len(places) > 2
        for place in places:
            for value in ODD:
                prepare()
                answer = altered(usual[0], place, value)
                vendor.alter = lambda name, body, sent=answer: sent if name == call else body
                line = refusal_of(ask)
                assert line is None or re.fullmatch(r"127\.0\.0\.1: expected .+, got .+", line), (place, value)
    finally:
        client.close()


@pytest.mark.parametrize(
    ("name", "seed"), [("openai", seed) for seed in range(12)] + [("together", seed) for seed in range(12)]
)
def test_a_job_goes_on_or_says_what_was_expected_whatever_comes(
    engine: Engine, app: Flask, stub: StubServer, name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "MOST_FAILURES", 3)
    settings = app.config["SETTINGS"].model_copy(update={"TRAIN_POLL": 0.001})
    stub.key, drawn = KEY, random.Random(seed)
    write_dataset(engine, settings, "rows", [1, 0, 1])
    if name == "together":
        stub.fine_tuning = StubTogether()
        for variable, value in environment_of(stub).items():
            monkeypatch.setenv(variable, value)
        add_open_base(engine)
    else:
        add_base(engine, stub)

    def alter(_call: str, body: Any) -> Any:
        if drawn.random() < 0.5:
            return body
        place = drawn.choice([*places_of(body)])
        return altered(body, place, drawn.choice(ODD))

    stub.fine_tuning.alter = alter
    job_id = make_open_job(engine) if name == "together" else make_job(engine)
    for _ in range(25):
        if row_of(engine, job_id).status not in states.LIVE:
            break
        run(engine, settings, job_id)
    row = row_of(engine, job_id)
    if row.status in states.LIVE:
        cancel(engine, job_id)
    line = "" if row.error is None else row.error
    known = re.match(r"127\.0\.0\.1|api\.together\.xyz|ftjob-|ft-|file-", line)
    assert row.status in (*states.LIVE, states.DONE) or known, line
    assert "internal error" not in line


# ---- What a job's page says --------------------------------------------------------


@pytest.fixture
def started(engine: Engine, app: Flask, stub: StubServer) -> Callable[[], TrainingJob]:
    """Looks once at a job whose vendor has it already, and gives its row."""
    settings = app.config["SETTINGS"].model_copy(update={"TRAIN_POLL": 0.001})
    stub.key = KEY
    write_dataset(engine, settings, "rows", [1, 0, 1])
    add_base(engine, stub)
    job_id = make_job(engine)
    run(engine, settings, job_id)

    def look() -> TrainingJob:
        run(engine, settings, job_id)
        return row_of(engine, job_id)

    return look


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(body=b"<html>502"), "expected an answer, got something that is not JSON"),
        (Reply(body=b"null"), "expected an object with an id, got null"),
        (Reply(body=b'[{"id": true}]'), 'expected an object with an id, got [{"id": true}]'),
        (
            Reply(body=b'{"error": {"message": "Overloaded."}}'),
            "expected an object with an id, got the error: Overloaded.",
        ),
        (Reply(body=b'{"error": "Overloaded."}'), "expected an object with an id, got the error: Overloaded."),
        (LOST, "expected an answer, got Server disconnected without sending a response"),
    ],
)
def test_a_job_whose_vendor_does_not_answer_says_so_until_it_does(
    started: Callable[[], TrainingJob], stub: StubServer, reply: Any, said: str
) -> None:
    stub.fine_tuning.answer("retrieve", reply)
    row = started()
    assert (row.status, row.remote_failures) == (states.RUNNING, 1)
    assert str(row.error).startswith(f"127.0.0.1: {said}")
    assert str(row.error).endswith("; asking again")
    assert "Error" not in str(row.error)
    assert started().error is None


def test_a_job_ends_well_without_the_events_of_its_vendor(
    started: Callable[[], TrainingJob], stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_MOST_EVENTS", 1)
    stub.fine_tuning.answer("events", Reply(status=404, body=b"no such page"), *[Reply(body=b"<html>")] * 20)
    for _ in range(12):
        row = started()
        if row.status not in states.LIVE:
            break
    assert (row.status, row.error) == (states.DONE, None)
    assert "going on without what the vendor tells of it: 127.0.0.1: expected an answer, got HTTP 404" in row.log
    assert row.log.count("going on without") == 2  # once for each reason


def test_the_vendors_reason_may_be_a_text(started: Callable[[], TrainingJob], stub: StubServer) -> None:
    stub.fine_tuning.alter = lambda call, body: (
        {**body, "status": "failed", "error": "The file has no rows."} if call == "retrieve" else body
    )
    assert str(started().error).endswith(": The file has no rows.")


def test_tokens_that_the_vendor_does_not_tell_are_not_called_none(
    started: Callable[[], TrainingJob], stub: StubServer
) -> None:
    stub.fine_tuning.alter = lambda call, body: (
        {**body, "trained_tokens": str(body["trained_tokens"])} if call == "retrieve" else body
    )
    for _ in range(6):
        row = started()
    assert (row.status, row.trained_tokens) == (states.DONE, None)
    [told] = [line for line in row.log.splitlines() if " succeeded: " in line]
    assert "tokens" not in told
