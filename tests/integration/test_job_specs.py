"""A field that is added to the spec of a kind is in its command, form, "like", validation and schema, and nowhere else
has it to be added."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

import click
import pytest
from click.testing import CliRunner
from flask import Flask
from sqlalchemy import Engine
from werkzeug.datastructures import MultiDict

from app.alignments.spec import AlignmentSpec
from app.assessments.spec import AnswerSampling, AssessmentSpec
from app.benchmarks.spec import BenchmarkSpec
from app.campaigns.spec import CampaignSpec
from app.cli.base import Command
from app.cli.spec_options import spec_options
from app.core.errors import Invalid
from app.core.extensions import db, reading
from app.core.validation import choices_in
from app.finetuning.spec import TrainingSpec
from app.jobs import states
from app.jobs.spec import PRESET, JobSpec, fields_of, parts_of, spec_field
from app.society.spec import SocietySpec
from app.web.admin.spec_form import ShownField, filled_in, refusal, sections
from scripts.spec_tables import table
from scripts.translations import job_specs
from tests.benchmarks import make_benchmark
from tests.campaigns import add_local
from tests.experimenter import signed_in
from training import methods
from training.methods import all_methods


class Longer(BenchmarkSpec):
    """A benchmark with one field more."""

    patience: int = spec_field("Patience", "Minutes that an item may take.", 5, metavar="MINUTES", ge=1, le=60)


class Second(JobSpec):
    """The second version of a spec, whose field was called otherwise in the first."""

    version: ClassVar[int] = 2

    count: int = spec_field("Count", "How many.", 3, ge=1)

    @classmethod
    def of_version(cls, _before: int, fields: dict[str, object]) -> dict[str, object]:
        return {"count" if name == "number" else name: value for name, value in fields.items()}


def asked_by_command(spec: type[JobSpec], *words: str) -> JobSpec | str:
    """What a command makes of its arguments, or its refusal."""
    found: list[JobSpec] = []

    @click.command(cls=Command)
    @spec_options(spec)
    def run(spec: JobSpec) -> None:
        found.append(spec)

    result = CliRunner().invoke(run, words)
    return found[0] if found else result.output.strip()


def shown(app: Flask, spec: type[JobSpec]) -> dict[str, ShownField]:
    """The fields of a form for a spec, by name."""
    with app.test_request_context(), reading() as session:
        found = sections(session, spec, filled_in(spec, {}))
        return {each.name: each for _, groups in found for group in groups for each in group.fields}


def test_a_field_is_added_in_one_place(app: Flask) -> None:
    got = asked_by_command(Longer, "tiny", "--tasks", "a,b", "--patience", "7")
    assert got == Longer(model="tiny", tasks="a,b", patience=7)
    refused = asked_by_command(Longer, "tiny", "--tasks", "a,b", "--patience", "70")
    assert refused == "Error: patience: expected a whole number from 1 to 60, got '70'"
    field = shown(app, Longer)["patience"]
    assert (field.title, field.help, field.inputmode) == ("Patience", "Minutes that an item may take.", "numeric")
    assert filled_in(Longer, got.to_json() if isinstance(got, Longer) else {})["patience"] == "7"
    assert Longer.model_json_schema()["properties"]["patience"]["maximum"] == 60
    assert Longer.of_json(json.loads(json.dumps(Longer(model="a", tasks="b", patience=9).to_json()))).patience == 9
    with pytest.raises(Invalid) as wrong:
        Longer.read({"model": "a", "tasks": "b", "patience": "0"})
    assert refusal(Longer, wrong.value).field == "patience"
    assert "| `patience` | 5 | Patience: Minutes that an item may take. 1 to 60. |" in table(Longer)


class Kinder(AnswerSampling):
    """How answers are sampled, with one setting more."""

    kindness: int = spec_field("Kindness", "Of every answer.", 2, metavar="N", ge=1, le=3)


class Closer(AssessmentSpec):
    """An assessment with a setting more among its nested ones, and with a list more."""

    sampling: Kinder = spec_field("Sampling", "Of all.", Kinder(), prefix="answer_", preset="sampling", labels={})
    guests: tuple[str, ...] = spec_field("Guests", "Who listens.", (), widget="models", use="chat", max_length=3)


def test_a_nested_field_and_a_list_are_added_in_one_place(app: Flask) -> None:
    asked_for = ("a", "b", "--raters", "c", "--guests", "d", "e")
    got = asked_by_command(Closer, *asked_for, "--kindness", "3", "--sampling", "published")
    assert isinstance(got, Closer)
    assert (got.guests, got.sampling.kindness, got.sampling.top_p) == (("d", "e"), 3, 0.9)
    for more, line in (
        (("--kindness", "4"), "--kindness: expected a whole number from 1 to 3, got '4'"),
        (("--guests", "d"), "guests: expected each model once, got 'd'"),
        (("--guests", "f", "g"), "guests: expected 0 to 3 models, got 4"),
    ):
        assert asked_by_command(Closer, *asked_for, *more) == f"Error: {line}"
    fields = shown(app, Closer)
    assert (fields["answer_kindness"].title, fields["answer_kindness"].inputmode) == ("Kindness", "numeric")
    assert ("scripted-observer", "scripted-observer") in fields["guests"].choices
    form = filled_in(Closer, got.to_json())
    assert (form["answer_kindness"], form["guests"], form["sampling"]) == ("3", ["d", "e"], "")
    with pytest.raises(Invalid) as wrong:
        Closer.read({"model": "a", "base": "b", "raters": ["c"], "sampling": {"kindness": 0}})
    assert refusal(Closer, wrong.value).field == "answer_kindness"
    assert "| `sampling.kindness` | 2 | Kindness: Of every answer. 1 to 3. |" in table(Closer)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("tasks: a\nmodel: tiny\nitem_limit: 0\n", "job.yaml:3: item_limit: expected a whole number from 1 to"),
        ("tasks: a\nmodel: tiny\ntask: b\n", "job.yaml:3: task: expected one of the fields model, tasks, item_limit"),
        ("tasks: a\nmodel: tiny\nbatch: [1]\n", "job.yaml:3: batch: expected a whole number from 1 to 1024, got [1]"),
        ("tasks: [3]\nmodel: tiny\n", "job.yaml:1: tasks: expected text, got [3]"),
        ("tasks: a\ntasks: b\n", "job.yaml:2: tasks: expected each key once, got it in line 1, too"),
        ("model: tiny\n", "tasks: expected a value, got none"),
        ("version: 9\nmodel: tiny\ntasks: a\n", "job.yaml:1: version: expected at most 1, got 9"),
        ("- a\n", "job.yaml: expected keys with their values (key: value), got ['a']"),
    ],
)
def test_a_file_is_refused_in_one_line_with_the_place(text: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(text, encoding="utf-8")
    got = asked_by_command(BenchmarkSpec, "--spec", str(tmp_path / "job.yaml"))
    assert isinstance(got, str)
    assert line in got
    assert "\n" not in got


@pytest.mark.parametrize(
    ("spec", "text", "line"),
    [
        (AssessmentSpec, "sampling:\n  temperature: 3\n", "job.yaml:5: sampling.temperature: expected a number from 0"),
        (AssessmentSpec, "sampling:\n  warmth: 3\n", "job.yaml:5: sampling.warmth: expected one of the fields temp"),
        (AssessmentSpec, "sampling: [1]\n", "job.yaml:4: sampling: expected names with their values, got [1]"),
        (AssessmentSpec, "sampling:\n  preset: loud\n", "job.yaml:5: sampling.preset: expected published, got 'loud'"),
        (AssessmentSpec, "raters: [c]\n", "job.yaml:4: raters: expected each key once, got it in line 3, too"),
        (SocietySpec, "agents: [a]\n", "job.yaml:4: agents: expected names with their values, got ['a']"),
        (SocietySpec, "agents:\n  a: none\n", "job.yaml:4: agents: expected a number above 0 to 1e+06, got 'none'"),
        (SocietySpec, "agents:\n  a: 1\n  a: 2\n", "job.yaml:6: agents.a: expected each key once, got it in line 5"),
        (
            SocietySpec,
            "agents: {a: 1}\nconfig:\n  size: 1\n",
            "job.yaml:6: config.size: expected a whole number",
        ),
        (
            SocietySpec,
            "agents: {a: 1}\nconfig:\n  recall: maybe\n",
            "job.yaml:6: config.recall: expected true or",
        ),
        (AlignmentSpec, "version: 3\n", "job.yaml:4: version: expected at most 2, got 3"),
        (
            AlignmentSpec,
            "version: 1\nagents: [[d, 1]]\ntraining: much\n",
            "train: expected names with their values",
        ),
        (AlignmentSpec, "preset: mine\n", "job.yaml:4: preset: expected published or code, got 'mine'"),
    ],
)
def test_a_fault_inside_of_a_field_is_named_with_its_line(
    spec: type[JobSpec], text: str, line: str, tmp_path: Path
) -> None:
    named = "model: a\nbase: b\nraters: [c]\n" if spec is AssessmentSpec else "observers: [c]\n\n\n"
    base = "base: b\nobservers: [c]\n\n" if spec is AlignmentSpec else named
    (tmp_path / "job.yaml").write_text(base + text, encoding="utf-8")
    got = asked_by_command(spec, "--spec", str(tmp_path / "job.yaml"))
    assert isinstance(got, str)
    assert line in got
    assert "\n" not in got


def test_what_stands_beside_a_file_is_laid_over_it(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps(BenchmarkSpec(model="tiny", tasks="a", batch=4).to_json()))
    got = asked_by_command(BenchmarkSpec, "--spec", str(tmp_path / "job.json"), "--batch", "2")
    assert got == BenchmarkSpec(model="tiny", tasks="a", batch=2)


def test_a_spec_of_an_earlier_version_is_read_and_one_of_a_later_version_refused() -> None:
    assert Second.of_json({"version": 1, "number": 4}) == Second(count=4)
    assert Second.of_json({"number": 4}) == Second(count=4)  # a file of before versions
    with pytest.raises(Invalid, match="version: expected at most 2, got 3"):
        Second.of_json({"version": 3, "count": 4})


MINE = """
from pydantic import Field

from training.methods import sft
from training.methods.base import FromCheckpoint, Method


class MineConfig(FromCheckpoint):
    zeal: int = Field(default=3, ge=1, title="Zeal", description="How hard it tries.", json_schema_extra={"rank": 6})
    calm: float = Field(default=0.5, gt=0, title="Calm", description="How calm it stays.")


METHOD = Method(name="mine", title="Mine", summary="It tries hard.", config=MineConfig, loss="sft")
"""


def test_fields_of_a_training_method_that_is_added_are_everywhere(
    app: Flask, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    all_methods.cache_clear()
    try:
        add_local(engine, "local")
        client, wish = signed_in(app), ("mine", "--dataset", "rows", "--name", "new", "--base", "local")
        page = client.get("/admin/jobs/new?method=mine").text
        assert 'name="zeal"' in page
        assert "How hard it tries. Empty: 3." in page
        assert '<li data-if="method=mine"><span class="mono">calm</span>: How calm it stays. Empty: 0.5.</li>' in page
        got = asked_by_command(TrainingSpec, *wish, "--config", "zeal=5", "calm=0.25")
        assert isinstance(got, TrainingSpec)
        assert got.config == {"zeal": 5, "calm": 0.25}
        refused = asked_by_command(TrainingSpec, *wish, "--config", "zeal=0")
        assert refused == "Error: config.zeal: expected a whole number from 1 to 1000000000, got 0"
        form = filled_in(TrainingSpec, got.to_json())
        assert (form["zeal"], form["config"]) == ("5", "calm = 0.25")
        sent = {"method": "mine", "dataset": "1", "base": "local", "name": "new"}
        for typed, at in (({"zeal": "0"}, "zeal"), ({"config": "calm = 0"}, "config")):
            answer = client.post("/admin/jobs/new", data=sent | typed)
            assert answer.status_code == 400
            assert re.search(rf'id="{at}"[^>]*aria-invalid="true"', answer.text)
    finally:
        all_methods.cache_clear()


def test_the_schema_of_a_training_has_the_fields_of_the_place_where_it_is_trained() -> None:
    told = {
        (each["if"]["properties"]["method"]["const"], each["if"]["properties"]["backend"]["const"]): each
        for each in TrainingSpec.model_json_schema()["allOf"]
    }
    assert {method for method, backend in told if backend == "openai"} == {"sft"}
    assert {method for method, backend in told if backend == "together"} == {"sft", "dpo"}
    assert ("dpo", "local") not in told
    here, there = (
        told["sft", backend]["then"]["properties"]["config"]["properties"] for backend in ("local", "openai")
    )
    assert ("n_epochs" in here, "n_epochs" in there) == (False, True)
    assert ("epochs" in here, "epochs" in there) == (True, False)
    assert told["sft", "openai"]["if"]["required"] == ["backend"]  # without one it is trained here


def test_a_benchmark_like_an_earlier_one_is_filled_in(app: Flask, engine: Engine) -> None:
    add_local(engine, "local")
    number = make_benchmark(engine, "local", "everyday-reasoning", item_limit=12, batch=3)
    page = signed_in(app).get(f"/admin/benchmarks/new?like={number}").text
    assert f'Filled in as it was for <a href="/admin/benchmarks/{number}">' in page
    assert 'name="item_limit" type="text" value="12"' in page
    assert 'name="batch" type="text" value="3"' in page
    assert '<option value="local" selected>' in page


class _Sent(HTMLParser):
    """What a browser sends of the form on a page, as it is first shown."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields = list[tuple[str, str]]()
        self._select, self._textarea, self._first = "", "", False
        self.feed(page.partition('id="launch"')[2].partition("</form>")[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        name, value = given.get("name", ""), given.get("value", "")
        if tag == "input" and (given["type"] in ("text", "hidden") or "checked" in given):
            self.fields.append((name, value))
        elif tag == "select":
            self._select, self._first = name, True
        elif tag == "option" and ("selected" in given or self._first):
            self.fields = [each for each in self.fields if each[0] != self._select] + [(self._select, value)]
            self._first = False
        elif tag == "textarea":
            self.fields.append((name, ""))


@pytest.mark.parametrize("kind", ["societies", "alignments"])
def test_a_form_can_be_sent_as_it_is_first_shown(app: Flask, engine: Engine, kind: str) -> None:
    add_local(engine, "learner")
    client = signed_in(app)
    sent = MultiDict(_Sent(client.get(f"/admin/{kind}/new").text).fields)
    assert (sent["embedder"], sent["size"], sent["name"], sent["seed"]) == ("tfidf", "10", "", "")
    for action, status in (("estimate", 200), ("start", 303)):
        given = MultiDict([*sent.items(True), ("action", action)])
        assert client.post(f"/admin/{kind}/new", data=given).status_code == status
    again = MultiDict(_Sent(client.get(f"/admin/{kind}/new?like=1").text).fields)
    drawn = ("seed", "like", "questions", "priors", "held_out", "request_key", "csrf_token")
    both = [sorted((name, value) for name, value in each.items(True) if name not in drawn) for each in (sent, again)]
    assert both[0] == both[1]
    assert (again["questions"], again["like"]) == ("again", "1")
    assert again["seed"].isdigit()


TEACHER = ("--teacher", "scripted")  # so that the fields of what comes before the rounds are asked for, too
COMMANDS: dict[type[JobSpec], Sequence[str]] = {
    AlignmentSpec: ("alignment", "run", "--base", "local", "--observers", "scripted-observer"),
    AssessmentSpec: ("assessment", "run", "local", "tiny-base", "--raters", "scripted-observer"),
    CampaignSpec: ("campaign", "run", "--game", "taboo", "--base", "tiny-base", *TEACHER),
    SocietySpec: ("society", "run", "--agents", "scripted-agent", "--observers", "scripted-observer"),
    TrainingSpec: ("training", "run", "stable-alignment", "--dataset", "1", "--base", "tiny-base", "--name", "taught"),
}
RATED = {"query": "Hi?", "responses": ["Good day.", "No."], "scores": [6, 2]}


def presets_of(spec: type[JobSpec]) -> Iterator[tuple[str, str]]:
    """The presets that a spec declares, each with its option: its own, those of its parts, and those of methods."""
    yield from ((f"--{PRESET}", name) for name in spec.presets)
    for field, schema in fields_of(spec).items():
        if field == PRESET:
            yield from ((f"--{PRESET}", name) for name in choices_in(schema))
        elif PRESET in schema:
            part = parts_of(spec).get(field)
            known = all_methods()[COMMANDS[spec][2]].presets if part is None else part.presets
            yield from ((f"--{schema[PRESET]}", name) for name in known)


@pytest.mark.parametrize(
    ("spec", "option", "preset"), [(spec, *each) for spec in job_specs() for each in presets_of(spec)]
)
def test_every_preset_makes_a_job_in_a_new_database(
    make_app: Callable[..., Flask], tmp_path: Path, spec: type[JobSpec], option: str, preset: str
) -> None:
    app = make_app(SMALL_MODELS=True)
    (tmp_path / "rated.jsonl").write_text(json.dumps(RATED))
    with app.app_context():
        add_local(db.engine, "local")
    flask = app.test_cli_runner()
    imported = flask.invoke(args=["dataset", "import", str(tmp_path / "rated.jsonl"), "--format", "stable-alignment"])
    assert imported.exit_code == 0, imported.output
    started = flask.invoke(args=[*COMMANDS[spec], option, preset, "--queue"])
    assert started.exit_code == 0, started.output
    shown = flask.invoke(args=[COMMANDS[spec][0], "show", "1", "--json"])
    assert json.loads(shown.stdout)["status"] == states.WAITING
