"""Campaigns that keep adapters: each iteration's model plays where its base does, and learns what was sampled there."""

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select
from transformers import AutoTokenizer

from app.campaigns import steps
from app.campaigns.iterations import results
from app.core.config import ROOT, Settings
from app.core.extensions import reading
from app.datasets.store import path_of
from app.finetuning.runner import run_job
from app.jobs import states
from app.jobs.chained import AwaitedJob
from app.jobs.context import JobContext
from app.models import Campaign, Dataset, GenerationRow, LanguageModel, RecipeStep, TrainingEvent
from app.players.local import vllm_adapters
from app.players.local.serving import SERVER, VLLM, WORKER, TokenizerFacts
from app.registry.adapters import adapter_name
from app.rounds.job import ROUND
from tests.campaigns import campaign_of
from tests.rounds import play
from tests.served_models import begin, served_model
from tests.stub_vllm import VllmStub, log_prob_of
from training.check import facts
from training.data import read_conversations
from training.rendering import Renderer

pytestmark = [pytest.mark.usefixtures("vendor_environment"), pytest.mark.parametrize("database_url", [""])]

BASE = "tiny-base"
FOLDER = ROOT / "data" / "models" / BASE
TRAINING = {"max_steps": 2, "threads": 1, "lora_rank": 2, "keep_adapters": True, "learning_rate": 0.01}


@pytest.fixture(autouse=True)
def _small_models(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMALL_MODELS", "true")
    monkeypatch.setattr(vllm_adapters, "_loaded", {})


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]


@pytest.fixture
def vllm() -> Iterator[VllmStub]:
    with VllmStub(FOLDER, BASE) as stub:
        yield stub


def carry_out(engine: Engine, settings: Settings, **spec: Any) -> list[LanguageModel]:
    """Carry out a campaign of two iterations, as workers do; its models, the base first."""
    fields = {"iterations": 2, "matches": 3, "evaluation": 2, "filter": "all", "training": TRAINING, **spec}
    number = campaign_of(engine, BASE, **fields)
    while isinstance(due := steps.take_steps(JobContext(engine, settings, uuid.uuid4().hex), number), AwaitedJob):
        if due.kind is ROUND:
            play(engine, settings, due.number)
        else:
            run_job(JobContext(engine, settings, uuid.uuid4().hex), due.number)
    with reading(engine) as session:
        row = session.get_one(Campaign, number)
        assert (row.status, row.error) == (states.DONE, None)
        found = [each.model for each in results(session, number) if each.model is not None]
        session.expunge_all()
    return found


def test_each_iteration_plays_at_the_bases_vllm_under_a_new_name_and_is_learnt_from_as_it_was_sampled(
    engine: Engine, settings: Settings, vllm: VllmStub
) -> None:
    tokenizer = TokenizerFacts.model_validate(facts(FOLDER)["tokenizer"])
    served = served_model(vllm.url, engine=VLLM, model=BASE, dtype="float32", tokenizer=tokenizer, lora_rank=16)
    begin(engine, BASE, served)
    base, *learners = carry_out(engine, settings, method="sft-kl")
    names = [BASE, *map(adapter_name, learners)]
    assert [row.adapter_base_id for row in learners] == [base.id, base.id]
    assert [row.play_with for row in learners] == [SERVER, SERVER]
    assert vllm.loads == names[1:]
    assert list(vllm.adapters.values()) == [str(settings.home / row.options["path"]) for row in learners]
    asked = Counter(request.body["model"] for request in vllm.requests)
    assert set(asked) == set(names)
    assert asked[names[1]] > asked[names[2]]  # which is evaluated alone

    with reading(engine) as session:
        calls = select(GenerationRow.model, GenerationRow.sampling["engine"].as_string()).distinct()
        assert set(session.execute(calls)) == {(adapter_name(row), "vllm") for row in (base, *learners)}
        datasets = session.scalars(
            select(Dataset).join(RecipeStep, RecipeStep.dataset_id == Dataset.id).order_by(RecipeStep.place)
        ).all()
        files = [path_of(settings.home, each) for each in datasets]
        begun = session.scalars(select(TrainingEvent.body).order_by(TrainingEvent.job_id, TrainingEvent.number)).all()
    renderer = Renderer(AutoTokenizer.from_pretrained(FOLDER), 4096)
    for file, player, name in zip(files, (base, learners[0]), names, strict=False):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        assert {(row["policy"], row["engine"]) for row in rows} == {(player.options["sha256"], "vllm")}
        for row in read_conversations(file):
            sampled = [message["ids"] for message in row.messages if message["role"] == "assistant"]
            sequences, _ = renderer.render(row.messages, sampled)
            spans = [(each, span) for each in sequences for span in each.spans]
            assert [each.ids[span.begin : span.end] for each, span in spans] == sampled
            assert {value for _, span in spans for value in span.log_probs or ()} == {log_prob_of(name)}
    started = [event for event in begun if event["event"] == "started"]
    assert [event["stored_reference_rows"] for event in started] == [0, 0]
    assert all(event["computed_reference_rows"] > 0 for event in started)


def test_iterations_over_a_base_of_workers_play_with_workers(engine: Engine, settings: Settings) -> None:
    base, *learners = carry_out(engine, settings, iterations=1)
    [learner] = learners
    assert (learner.adapter_base_id, learner.play_with) == (base.id, WORKER)
    with reading(engine) as session:
        calls = select(GenerationRow.model, GenerationRow.sampling["engine"].as_string()).distinct()
        assert set(session.execute(calls)) == {(adapter_name(row), None) for row in (base, learner)}
