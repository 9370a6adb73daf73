"""Trainings at Tinker: what is played is trained on there, and the checkpoint plays, whatever is killed on the way."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine

pytest.importorskip("tinker")

from app.core.config import Settings
from app.core.errors import AppError
from app.core.extensions import reading, writing
from app.finetuning import lifecycle as jobs
from app.finetuning.job import TRAINING
from app.finetuning.listing import figures_of
from app.finetuning.tinker.address import ADDRESS, KEY_VARIABLE
from app.jobs import states
from app.jobs.process import JobProcess
from app.jobs.spec import JobBudget
from app.lineage import origin_of
from app.models import Dataset, LanguageModel, TrainingJob
from app.registry import add_api_model
from app.registry.training_charges import spent_on_trainings
from tests.checkpoints import CHATML, bytes_model, word_model
from tests.datasets import cut
from tests.experimenter import signed_in
from tests.jobs import events_of, model_of, row_of, run
from tests.rounds import check, make_round, play
from tests.stack import PATIENCE, wait_until
from tests.stub_tinker import KEY, OPEN_MODEL, StubTinker

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
FIELDS = {"batch": 4, "max_steps": 4, "learning_rate": 0.01, "max_length": 512, "too_long": "skip"}


@pytest.fixture
def settings(app: Flask) -> Settings:
    found: Settings = app.config["SETTINGS"]
    return found


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.fixture
def tinker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubTinker]:
    word_model(tmp_path / "open", length=1024)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with StubTinker(tmp_path / "open") as server:
        yield server


@pytest.fixture
def base(engine: Engine, tinker: StubTinker) -> str:
    return add_base(engine, tinker.url)


def add_base(engine: Engine, url: str, name: str = "open", model: str = OPEN_MODEL, **options: Any) -> str:
    prices = {"price_in": 1, "price_cached": 0.1, "price_training": 3}
    given = {"model": model, "base_url": url, "key_env": KEY_VARIABLE, **prices, **options}
    with writing(engine) as session:
        return add_api_model(session, name, None, ["negotiation"], given, prompt_style="compact").name


def played(engine: Engine, settings: Settings, model: str, name: str) -> Dataset:
    """A dataset of what a model has played with itself."""
    number = make_round(engine, model, matches=6)
    play(engine, settings, number)
    check(engine, number, 6)
    return cut(engine, settings.home, name, rounds=[number], filter="all", style="compact")


def make_job(
    engine: Engine, dataset: Dataset, name: str = "tuned", base: str = "open", method: str = "sft", **config: Any
) -> int:
    fields = FIELDS | config
    with writing(engine) as session:
        wish = jobs.TrainingSpec(
            method=method, dataset=str(dataset.id), name=name, base=base, config=fields, backend="tinker"
        )
        return jobs.create(session, wish, queued=True).id


def killer(settings: Settings, job_id: int) -> Callable[[], None]:
    """Kills the process that trains, as `kill -9` does."""
    lock = settings.home / "training" / str(job_id) / "lock"
    return lambda: os.kill(int(lock.read_text()), signal.SIGKILL)


def test_a_checkpoint_that_was_trained_there_plays_and_is_trained_on_whatever_is_killed(
    engine: Engine, settings: Settings, base: str, tinker: StubTinker
) -> None:
    rows = played(engine, settings, base, "first")
    job_id = make_job(engine, rows)
    kill = killer(settings, job_id)
    stages = [
        ("create_model", 1, "after"), ("forward_backward", 1, "after"), ("optim_step", 1, "after"),
        ("save_weights", 1, "after"), ("forward_backward", 4, "before"), ("optim_step", 3, "before"),
        ("save_weights", 2, "before"), ("save_weights", 6, "after"), ("save_weights_for_sampler", 1, "after"),
    ]  # fmt: skip
    for name, number, when in stages:
        tinker.on(name, number, when, kill)
    while row_of(engine, job_id).status in states.LIVE:
        assert run(engine, settings, job_id)
    row, made = row_of(engine, job_id), model_of(engine, "tuned")
    assert (row.status, row.error, row.step, row.steps) == (states.DONE, None, 4, 4)
    assert not tinker._hooks  # each stage has had its kill
    assert tinker.paid() == 4 + 4  # one more for each kill between a step's request and its state
    assert [each["step"] for each in events_of(engine, job_id, "saved")] == [2, 3, 4]

    assert made is not None
    assert made.options["model"] == row.remote_model
    assert made.options["model"] in tinker.saved
    assert (made.kind, made.games, made.prompt_style) == ("api", ["negotiation"], "compact")
    assert made.options["key_env"] == KEY_VARIABLE
    assert made.options.get("price_in") is made.options.get("price_cached") is None
    assert sum("/weights/" in path for path in tinker.saved) == 1  # states that nobody goes on from are deleted
    assert row.trained_tokens is not None
    assert row.trained_tokens > 0
    with reading(engine) as session:
        job = session.get_one(TrainingJob, job_id)
        assert origin_of(made, job) == "trained"
        assert job.model_id == made.id
        assert session.get_one(LanguageModel, job.base_id).name == "open"

    again = played(engine, settings, "tuned", "second")
    assert {each.body["model"] for each in tinker.asked} == {OPEN_MODEL, made.options["model"]}
    created = tinker.carried_out.count("create_model")
    second = make_job(engine, again, "tuned-2", "tuned", max_steps=1)
    run(engine, settings, second)
    assert row_of(engine, second).error is None
    assert tinker.carried_out.count("create_model") == created  # it begins with the weights of the first
    log = (settings.home / "training" / str(job_id) / "log.txt").read_text() + row.log
    assert KEY not in log
    config = (settings.home / "training" / str(job_id) / "config.json").read_text()
    assert KEY not in config


def test_its_page_and_form_say_where_it_is_trained_what_of_and_what_it_costs(
    client: FlaskClient, engine: Engine, settings: Settings, base: str, tinker: StubTinker
) -> None:
    rows = played(engine, settings, base, "first")
    form = client.get("/admin/jobs/new").text
    assert "At Tinker" in form
    assert "open (At Tinker)" in form
    job_id = make_job(engine, rows, max_steps=1)
    run(engine, settings, job_id)
    row = row_of(engine, job_id)
    page = client.get(f"/admin/jobs/{job_id}").text
    assert str(row.remote_model) in page
    assert "gradient_checkpointing" not in page  # nor any other field that has no meaning there
    assert row.trained_tokens is not None
    assert f"${3 * row.trained_tokens / 1e6:.4f}" in page
    assert "Tinker (tiny/open, adapters of rank 32)" in page
    assert "Memory at most" not in page.partition('id="tiles"')[2].partition("</dl>")[0]


def test_a_cancelled_training_saves_its_step_and_goes_on_from_it(
    engine: Engine, settings: Settings, base: str, tinker: StubTinker, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = make_job(engine, played(engine, settings, base, "first"), save_every=100)
    asked, ask = Event(), JobProcess.cancel

    def noted(process: JobProcess) -> None:
        ask(process)
        asked.set()

    def cancel() -> None:
        with writing(engine) as session:
            TRAINING.cancel(session, job_id)
        tinker.on("forward_backward", 3, "before", lambda: asked.wait(PATIENCE))  # no step is done until it is

    monkeypatch.setattr(JobProcess, "cancel", noted)

    tinker.on("optim_step", 1, "after", cancel)
    run(engine, settings, job_id)
    row = row_of(engine, job_id)
    assert row.status == states.CANCELLED
    assert 1 <= row.step < 4
    assert [each["step"] for each in events_of(engine, job_id, "saved")] == [row.step]
    with writing(engine) as session:
        TRAINING.resume(session, job_id, queued=True)
    run(engine, settings, job_id)
    assert (row_of(engine, job_id).status, len(tinker.adam)) == (states.DONE, 4)


def test_a_training_that_evaluates_registers_its_best_step_whatever_is_killed(
    client: FlaskClient, engine: Engine, settings: Settings, base: str, tinker: StubTinker
) -> None:
    """So high a learning rate makes each step worse than the one before."""
    rows = played(engine, settings, base, "first")
    job_id = make_job(engine, rows, eval_share=0.3, eval_every=1, learning_rate=2.0, max_grad_norm=0)
    kill = killer(settings, job_id)
    stages = [
        ("forward", 1, "before"), ("forward", 2, "after"), ("save_weights", 2, "before"), ("save_weights", 3, "after"),
        ("save_weights_for_sampler", 1, "before"),
    ]  # fmt: skip
    for name, number, when in stages:
        tinker.on(name, number, when, kill)
    while row_of(engine, job_id).status in states.LIVE:
        assert run(engine, settings, job_id)
    assert not tinker._hooks
    row, made = row_of(engine, job_id), model_of(engine, "tuned")
    assert made is not None
    evaluated = {each["step"]: each["loss"] for each in events_of(engine, job_id, "eval")}
    best = min(evaluated, key=lambda step: evaluated[step])
    assert [*evaluated] == [1, 2, 3, 4]
    assert best < 4
    assert (row.status, row.error, row.registered_step) == (states.DONE, None, best)
    [finished] = events_of(engine, job_id, "finished")
    assert (finished["step"], finished["metrics"]["eval_loss"]) == (best, evaluated[best])
    assert sum("/weights/" in path for path in tinker.saved) == 1
    page = client.get(f"/admin/jobs/{job_id}").text
    assert "held out" in page
    assert f"step {best}" in page


def test_a_training_renders_with_the_arguments_of_the_template_that_were_sent_in_play(
    engine: Engine, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bytes_model(tmp_path / "open", template="{% if not enable_thinking %}quick\n{% endif %}{{ tone }}" + CHATML)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with StubTinker(tmp_path / "open") as tinker:
        add_base(engine, tinker.url, reasoning="off")
        arguments = {"enable_thinking": True, "tone": "polite"}
        add_base(engine, tinker.url, "polite", extra={"chat_template_kwargs": arguments})
        for base, sent in (("open", {"enable_thinking": False, "thinking": False}), ("polite", arguments)):
            tinker.asked.clear()
            tinker.inputs.clear()
            rows = played(engine, settings, base, base)
            assert {str(each.body["chat_template_kwargs"]) for each in tinker.asked} == {str(sent)}
            job_id = make_job(engine, rows, f"{base}-1", base, max_steps=1, batch=100, max_length=1024)
            run(engine, settings, job_id)
            assert row_of(engine, job_id).error is None
            trained = [tinker.tokenizer.decode(each) for each in tinker.inputs]
            prompts = [
                tinker.tokenizer.apply_chat_template(
                    each.body["messages"], tokenize=False, add_generation_prompt=True, **sent
                )
                for each in tinker.asked
            ]
            assert prompts
            assert all(any(text.startswith(prompt) for text in trained) for prompt in prompts)
            assert trained[0].startswith({"open": "quick\n<|im_start|>", "polite": "polite<|im_start|>"}[base])


def spent_of(engine: Engine) -> float:
    """US dollars that the installation has spent on trainings."""
    with reading(engine) as session:
        return spent_on_trainings(session).usd


def test_a_training_stops_at_its_budget_and_goes_on_with_more(
    engine: Engine, settings: Settings, base: str, tinker: StubTinker
) -> None:
    job_id = make_job(engine, played(engine, settings, base, "first"), save_every=100)

    def wait() -> None:
        """Until what was trained before is counted, and a moment more in which the process is asked to end."""
        wait_until(lambda: spent_of(engine) > 0, "the training to be counted")
        time.sleep(1)

    tinker.on("forward_backward", 3, "before", wait)
    with writing(engine) as session:
        TRAINING.get(session, job_id).budget_usd = 0.000001
    error = error_of(engine, settings, job_id)
    assert re.fullmatch(r"budget of \$0\.000001 reached: \$0\.\d+ spent; resume with a higher one", error)
    row = row_of(engine, job_id)
    assert 1 <= row.step < 4
    assert row.trained_tokens is not None
    assert spent_of(engine) == pytest.approx(3 * row.trained_tokens / 1e6)
    with writing(engine) as session:
        TRAINING.resume(session, job_id, queued=True)
    assert error_of(engine, settings, job_id).startswith("budget of $0.000001 reached: ")
    assert row_of(engine, job_id).step == row.step
    with writing(engine) as session:
        TRAINING.resume(session, job_id, queued=True, budget=JobBudget(usd=1))
    run(engine, settings, job_id)
    with reading(engine) as session:
        done = TRAINING.get(session, job_id)
        [figures] = figures_of(session, [done]).values()
        assert (done.status, len(tinker.adam)) == (states.DONE, 4)
        assert figures["cost"] == pytest.approx(3 * done.trained_tokens / 1e6)


def error_of(engine: Engine, settings: Settings, job_id: int) -> str:
    run(engine, settings, job_id)
    row = row_of(engine, job_id)
    assert row.status == states.FAILED
    assert row.error is not None
    assert KEY not in row.error + row.log
    return row.error


def test_what_cannot_be_trained_there_is_one_line(
    engine: Engine, settings: Settings, base: str, tinker: StubTinker, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = played(engine, settings, base, "first")
    add_base(engine, tinker.url, "lost", "tiny/lost")
    line = error_of(engine, settings, make_job(engine, rows, "a", "lost"))
    assert line == "base: expected a model that 127.0.0.1 trains (tiny/open), got tiny/lost"
    line = error_of(engine, settings, make_job(engine, rows, "b", tokenizer="/nowhere/at-all"))
    assert line.startswith("tokenizer: expected that of tiny/open as /nowhere/at-all, a folder or a name at Hugging")
    assert line.endswith("name another in the field tokenizer")
    tinker.refuse("create_model", 402, "Your account has no credit; pay for key " + KEY)
    monkeypatch.setenv(KEY_VARIABLE, "sk-of-another-vendor")
    line = error_of(engine, settings, make_job(engine, rows, "d"))
    assert "api_key must start with the 'tml-' prefix" in line
    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None if name == "tinker" else name)
        line = error_of(engine, settings, make_job(engine, rows, "c"))
    assert line.startswith("tinker: expected it to be installed where the job runs, got none; pip install -c const")
    monkeypatch.delenv(KEY_VARIABLE)
    line = error_of(engine, settings, make_job(engine, rows, "e"))
    assert line.startswith("expected a key in the environment variable TINKER_API_KEY, got none")
    assert tinker.paid() == 0


def test_a_training_that_is_not_for_tinker_is_not_created(
    engine: Engine, settings: Settings, base: str, tinker: StubTinker
) -> None:
    rows = played(engine, settings, base, "first")
    add_base(engine, "https://api.openai.com/v1", "elsewhere", key_env="OTHER_KEY")
    with pytest.raises(
        AppError, match="expected an API model at Tinker, whose address ends with /oai/api/v1, got else"
    ):
        make_job(engine, rows, "a", "elsewhere")
    with pytest.raises(AppError, match="method: expected sft, sft-kl, offline-po, stable-alignment, which Tinker can"):
        make_job(engine, rows, "a", None, method="tiny")
    with pytest.raises(AppError, match="device: expected a field of sft at Tinker"):
        make_job(engine, rows, "a", device="cpu")
    wish = jobs.TrainingSpec(method="sft", dataset=str(rows.id), name="a", base="open", backend="openai")
    refusal = "base: expected an API model at OpenAI, got open, which is at Tinker; set backend to tinker"
    with writing(engine) as session, pytest.raises(AppError, match=refusal):
        jobs.create(session, wish, queued=True)


def test_a_host_that_may_not_be_called_is_not_called(
    engine: Engine, settings: Settings, base: str, tinker: StubTinker
) -> None:
    rows = played(engine, settings, base, "first")
    add_base(engine, ADDRESS, "vendor", "Qwen/Qwen3-8B", key_env="VENDOR_KEY")
    allowed = settings.model_copy(update={"API_HOSTS": "127.0.0.1"})
    line = error_of(engine, allowed, make_job(engine, rows, "a", "vendor"))
    assert line.startswith("base_url: expected a host that API_HOSTS allows (127.0.0.1), got 'tinker.thinking")
