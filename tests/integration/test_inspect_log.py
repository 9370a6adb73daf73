"""Logs for the viewer of Inspect: what is in them, that its schema allows it, and that memory does not grow."""

import io
import json
import subprocess
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app.analysis.inspect_log import inspect_log
from app.core.config import ROOT
from app.core.errors import Invalid, NotFound
from app.core.extensions import reading, writing
from app.matches.erasing import erase_texts
from app.matches.filter import MatchFilter
from app.models import GenerationRow, MatchRow
from tests.experimenter import signed_in
from tests.integration.test_export import NASTY, begin, insert_matches
from tests.integration.test_export import play as play_match
from tests.own_environment import make_environment
from tests.rounds import add_models, haggler, make_round, play
from tests.shell import Finished
from tests.stub_openai import Reply, StubServer

SCHEMA = json.loads((ROOT / "tests" / "golden" / "inspect-log.schema.json").read_text(encoding="utf-8"))
INSPECT = "inspect_ai==0.3.285"
Run = Callable[..., Finished]


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script("haggler", Reply(haggler))
        yield server


@pytest.fixture
def round_id(app: Flask, engine: Engine, stub: StubServer) -> int:
    """A round of a model behind an API, whose attempts are now and then refused, with a scripted one."""
    add_models(engine, stub.url, "haggler", price_in=1.0, price_out=4.0)
    number = make_round(engine, "haggler", "scripted", matches=6, swap_seats=True)
    play(engine, app.config["SETTINGS"], number)
    return number


def check(document: Any, kind: str = "EvalLog") -> None:
    """Raises for a document that the schema of Inspect does not allow."""
    jsonschema_rs.validator_for({**SCHEMA, "$ref": f"#/$defs/{kind}"}).validate(document)


def entries(content: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def written(engine: Engine, form: str, **choice: Any) -> bytes:
    with reading(engine) as session:
        return b"".join(inspect_log(session, MatchFilter(**choice), form))


def test_a_round_is_a_log_with_a_sample_a_match(engine: Engine, round_id: int) -> None:
    found = entries(written(engine, "eval", round=round_id))
    header, summaries = found["header.json"], found["summaries.json"]
    samples = [each for name, each in found.items() if name.startswith("samples/")]
    check(header)
    for sample, summary in zip(samples, summaries, strict=True):
        check(sample, "EvalSample")
        check(summary, "EvalSampleSummary")
        assert f"samples/{summary['id']}_epoch_1.json" in found
        assert summary["message_count"] == len(sample["messages"])
    assert (header["status"], header["eval"]["task"], header["eval"]["model"]) == (
        "success", "negotiation", "haggler | scripted",
    )  # fmt: skip
    assert header["eval"]["dataset"] == {"name": f"round {round_id}", "samples": 6, "shuffled": False}
    with reading(engine) as session:
        rows = {row.id: row for row in session.scalars(select(MatchRow))}
        calls = session.scalars(select(GenerationRow)).all()
    assert {sample["id"] for sample in samples} == set(rows)
    for sample in samples:
        row = rows[sample["id"]]
        assert len(sample["messages"]) == row.ply
        assert sample["scores"]["utility_0"]["value"] == row.utility_0
        assert sample["metadata"]["seed"] == row.seed
        own = [call for call in calls if call.match_id == row.id]
        asked = [event for event in sample["events"] if event["event"] == "model"]
        assert [event["output"]["completion"] for event in asked] == [call.text for call in own]
        assert [event["input"] for event in asked] == [call.prompt for call in own]
        tokens = sum((call.prompt_tokens or 0) + (call.completion_tokens or 0) for call in own)
        assert sample["model_usage"]["haggler"]["total_tokens"] == tokens > 0
    refused = [event for sample in samples for event in sample["events"] if event.get("source") == "parlor/violation"]
    assert len(refused) == sum(row.violations for row in rows.values()) > 0
    of_all = header["results"]["scores"][0]["metrics"]
    assert of_all["agreement_rate"]["value"] == pytest.approx(sum(bool(row.agreed) for row in rows.values()) / 6)
    usage = header["stats"]["model_usage"]["haggler"]["total_tokens"]
    assert usage == sum(sample["model_usage"]["haggler"]["total_tokens"] for sample in samples)


def test_the_json_is_the_same_log_and_the_same_matches_give_the_same_bytes(engine: Engine, round_id: int) -> None:
    document = json.loads(written(engine, "json", round=round_id))
    check(document)
    found = entries(written(engine, "eval", round=round_id))
    assert {key: value for key, value in document.items() if key != "samples"} == found["header.json"]
    assert [each["id"] for each in document["samples"]] == [each["id"] for each in found["summaries.json"]]
    assert written(engine, "eval", round=round_id) == written(engine, "eval", round=round_id)


def test_a_match_of_people_keeps_their_words_until_they_are_deleted(engine: Engine) -> None:
    record = play_match(engine, begin(engine), [f"[message] {NASTY}", "[message] hello"])
    log = json.loads(written(engine, "json", match=record.id))
    check(log)
    [sample] = log["samples"]
    assert (log["status"], log["results"], sample["completed_at"]) == ("started", None, None)
    assert [(each["role"], each["metadata"]["player"]) for each in sample["messages"]] == [
        ("user", "person"), ("assistant", "person"),
    ]  # fmt: skip
    assert sample["messages"][0]["content"] == f"[message] {NASTY}"
    play_match(engine, record, [None])
    with writing(engine) as session:
        erase_texts(session, record.id, [0])
    assert NASTY not in str(json.loads(written(engine, "json", match=record.id)))


def test_what_is_no_log_is_refused(engine: Engine, flask: Run, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="matches: expected at least one"):
        written(engine, "eval")
    begin(engine)
    begin(engine, "taboo", word="cat")
    with pytest.raises(Invalid, match="game: expected only one"):
        written(engine, "eval")
    for arguments in (["--out", str(tmp_path / "log.txt")], ["--out", str(tmp_path / "log.eval")], []):
        refused = flask("export", "inspect", *arguments)
        assert (refused.exit_code, refused.stderr.count("\n"), refused.stdout) == (2, 1, "")
    assert [*tmp_path.iterdir()] == []


def test_the_command_and_the_page_write_the_same_log(
    app: Flask, engine: Engine, round_id: int, flask: Run, tmp_path: Path
) -> None:
    file = tmp_path / "round.eval"
    done = flask("export", "inspect", "--round", str(round_id), "--out", str(file), "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {"matches": 6, "file": str(file)}
    client = signed_in(app)
    address = f"/admin/export/inspect.eval?round={round_id}"
    for page in (f"/admin/rounds/{round_id}?tab=settings", f"/admin/matches?round={round_id}"):
        assert address.replace("&", "&amp;") in client.get(page).text
    answer = client.get(address)
    assert answer.data == file.read_bytes() == written(engine, "eval", round=round_id)
    assert answer.headers["Content-Disposition"] == 'attachment; filename="inspect.eval"'
    assert client.get("/admin/export/inspect.eval?round=99").status_code == 404


@pytest.mark.either_database
def test_memory_grows_by_the_list_of_samples_alone(engine: Engine) -> None:
    few, many = (_peak(engine, more) for more in (200, 1_800))
    # Of each match the archive's directory keeps an entry, and the figures a row of numbers.
    assert many - few < 1_800 * 2_500, f"expected no sample in memory, got {few:,} and {many:,} bytes"


def _peak(engine: Engine, more: int) -> int:
    insert_matches(engine, more)
    tracemalloc.start()
    try:
        with reading(engine) as session:
            for _ in inspect_log(session, MatchFilter(), "eval"):
                pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


_READ = """
import json, sys
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries
for file in sys.argv[1:]:
    log = read_eval_log(file)
    first = min(log.samples, key=lambda sample: sample.id)
    print(json.dumps({
        "status": log.status, "samples": len(log.samples), "model": log.eval.model,
        "tokens": log.stats.model_usage["haggler"].total_tokens, "messages": [each.text for each in first.messages],
        "events": [each.event for each in first.events], "scores": {k: v.value for k, v in first.scores.items()},
        "summaries": len(read_eval_log_sample_summaries(file)),
    }))
"""


@pytest.mark.long
@pytest.mark.either_database
@pytest.mark.timeout(1800)
def test_inspect_reads_dumps_and_bundles_the_logs(engine: Engine, round_id: int, tmp_path: Path) -> None:
    python = make_environment(tmp_path / "environment", INSPECT)
    logs = tmp_path / "logs"
    logs.mkdir()
    for form in ("eval", "json"):
        (logs / f"round.{form}").write_bytes(written(engine, form, round=round_id))

    def run(*command: object) -> str:
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    told = [json.loads(line) for line in run(python, "-c", _READ, *sorted(logs.iterdir())).splitlines()]
    document = json.loads((logs / "round.json").read_bytes())
    sample = min(document["samples"], key=lambda each: each["id"])  # inspect_ai gives them in an order of its own
    for each in told:
        assert each == {
            "status": "success",
            "samples": 6,
            "model": "haggler | scripted",
            "tokens": document["stats"]["model_usage"]["haggler"]["total_tokens"],
            "messages": [message["content"] for message in sample["messages"]],
            "events": [event["event"] for event in sample["events"]],
            "scores": {name: score["value"] for name, score in sample["scores"].items()},
            "summaries": 6,
        }
    inspect = python.with_name("inspect")
    dumped = json.loads(run(inspect, "log", "dump", logs / "round.eval"))
    assert sample["id"] in [each["id"] for each in dumped["samples"]]
    run(inspect, "view", "bundle", "--log-dir", logs, "--output-dir", tmp_path / "bundle")
    assert (tmp_path / "bundle" / "index.html").is_file()
    assert (tmp_path / "bundle" / "logs" / "round.eval").is_file()
    assert json.loads(run(python, ROOT / "scripts" / "inspect_schema.py")) == SCHEMA
