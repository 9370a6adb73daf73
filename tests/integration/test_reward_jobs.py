"""Trainings on datasets with rewards: which are refused when they are created, and one that is run."""

import json
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select, update

from app.core.config import Settings
from app.core.errors import AppError, Conflict
from app.core.extensions import reading, writing
from app.finetuning import lifecycle as jobs
from app.finetuning.files import JobFiles
from app.jobs import states
from app.lineage import ancestors
from app.models import Dataset, LanguageModel, MatchRow, SeatRow
from app.registry.changes import remove_model
from tests.checkpoints import register, word_model
from tests.datasets import cut, import_rows, rows_of
from tests.experimenter import signed_in
from tests.jobs import make_dataset, model_of, row_of, run
from tests.rounds import make_round, play

SMALL = {"epochs": 1, "max_steps": 2, "batch": 4, "threads": 1, "device": "cpu"}


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


@pytest.fixture
def policies(engine: Engine, home: Path) -> dict[str, str]:
    """Two small local models, each with the hash of its checkpoint."""
    found = {}
    for seed, name in enumerate(("player", "other")):
        found[name] = word_model(home / "checkpoints" / name, seed)
        register(engine, name, home / "checkpoints" / name, found[name])
    return found


@pytest.fixture
def dataset(engine: Engine, settings: Settings, home: Path, policies: dict[str, str]) -> Dataset:
    """Rewards of a round of taboo, as if the local model `player` had filled its seats."""
    number = make_round(engine, "scripted", matches=8, game="taboo")
    play(engine, settings, number)
    with writing(engine) as session:
        player = session.scalars(select(LanguageModel.id).where(LanguageModel.name == "player")).one()
        of_round = SeatRow.match_id.in_(select(MatchRow.id).where(MatchRow.round_id == number))
        session.execute(update(SeatRow).where(of_round).values(language_model_id=player))
    return cut(engine, home, rounds=[number], rewards="spag", style="compact")


def create(engine: Engine, home: Path, dataset: Dataset, name: str = "better", **given: Any) -> int:
    wish = jobs.TrainingSpec.read(
        {"method": "offline-po", "dataset": str(dataset.id), "name": name, "base": "player", "config": SMALL, **given}
    )
    with writing(engine) as session:
        return jobs.create(session, wish, queued=False, home=home).id


def test_a_model_learns_from_the_rewards_of_what_it_played(
    engine: Engine, settings: Settings, home: Path, dataset: Dataset, policies: dict[str, str]
) -> None:
    assert {row["policy"] for row in rows_of(home, dataset)} == {policies["player"]}
    job_id = create(engine, home, dataset, base="other", reference="player", config={**SMALL, "advantage": "role"})
    run(engine, settings, job_id)
    row = row_of(engine, job_id)
    assert (row.status, row.error) == (states.DONE, None)
    assert row.config["reference"] == "player"
    files = JobFiles(home, job_id, "better")
    made = json.loads((files.output / "parlor.json").read_text())
    assert made["reference_sha256"] == policies["player"]
    assert model_of(engine, "better") is not None
    assert files.reference_cache.parent == home / "training"
    assert len(list(files.reference_cache.glob("*.safetensors"))) == 1
    with writing(engine) as session, pytest.raises(Conflict, match="nothing was played with or trained from"):
        remove_model(session, "player")


def test_supervised_rows_of_another_dataset_are_mixed_in(
    app: Flask, engine: Engine, settings: Settings, home: Path, dataset: Dataset
) -> None:
    plain = make_dataset(engine, settings, "plain")
    job_id = create(engine, home, dataset, sft_data="plain", config=SMALL)
    run(engine, settings, job_id)
    row = row_of(engine, job_id)
    assert (row.status, row.error, row.config["sft_data"]) == (states.DONE, None, plain.id)
    made = json.loads((JobFiles(home, job_id, "better").output / "parlor.json").read_text())
    assert (made["sft_data_sha256"], made["sft_rows"]) == (plain.sha256, plain.rows)
    client = signed_in(app)
    for address in (f"/admin/jobs/{job_id}", f"/admin/models/{row.model_id}/lineage"):
        page = client.get(address).text
        assert all(f'href="/admin/datasets/{each.id}"' in page for each in (dataset, plain)), address
    assert f"/admin/jobs/{job_id}" in client.get(f"/admin/datasets/{plain.id}").text
    assert f'<option value="{plain.id}" selected>plain' in client.get(f"/admin/jobs/new?like={job_id}").text
    with reading(engine) as session:
        [made_of, *_] = ancestors(session, row.model_id or 0)
        assert (made_of.dataset.id, made_of.sft_dataset.id) == (dataset.id, plain.id)  # type: ignore[union-attr]
        assert [source.round.id for source in made_of.sft_sources if source.round] == plain.spec["rounds"]


def test_what_cannot_be_learnt_from_is_refused_when_the_job_is_created(
    engine: Engine, settings: Settings, home: Path, dataset: Dataset, policies: dict[str, str]
) -> None:
    plain = make_dataset(engine, settings, "plain")
    played = f"{dataset.name}@{dataset.version}"
    comparison = {"query": "q", "responses": ["a", "b"], "scores": [1, 2]}
    rated = str(import_rows(engine, home, "stable-alignment", comparison, name="rated"))
    for given, line in (
        (
            {"dataset": plain},
            (
                "dataset: expected moves with a reward each, which offline-po needs, got plain@1, whose first row has a"
                " move without it; build one with `flask dataset build --rewards spag`"
            ),
        ),
        (
            {"base": "other"},
            (
                f"reference: expected the model that played {played}, {policies['player'][:12]}…, got other,"
                f" {policies['other'][:12]}…; name that model as reference, or build a dataset of what the"
                " reference played"
            ),
        ),
        ({"reference": "nobody"}, "reference: expected one of scripted, scripted-agent, "),
        ({"reference": "scripted"}, "reference: expected a local model, which has weights, got scripted, which is "),
        ({"config": {"reference": "player"}}, "config.reference: expected a field of offline-po ("),
        ({"config": {"sft_data": 1}}, "config.sft_data: expected a field of offline-po ("),
        ({"sft_data": "nothing"}, "sft_data: expected the number, name or name@version of one that exists, got "),
        ({"sft_data": rated}, "sft_data: expected a dataset of conversations, got rated@1, which holds "),
    ):
        arguments: dict[str, Any] = {"dataset": dataset, **given}
        with pytest.raises(AppError) as refused:
            create(engine, home, **arguments)
        assert str(refused.value).startswith(line)
    wish = {"method": "sft", "dataset": str(dataset.id), "name": "better", "base": "player"}
    with pytest.raises(AppError, match=r"^reference: expected none with sft, which "):
        jobs.TrainingSpec.read({**wish, "reference": "other"})
    refusal = r"^sft_data: expected none with sft, which mixes .+; train with offline-po or stable-alignment$"
    with pytest.raises(AppError, match=refusal):
        jobs.TrainingSpec.read({**wish, "sft_data": "plain"})


def test_the_pages_offer_rewards_their_formats_and_a_reference(
    app: Flask, engine: Engine, home: Path, dataset: Dataset
) -> None:
    client = signed_in(app)
    number = dataset.spec["rounds"][0]
    form = {"rounds": str(number), "filter": "all", "rewards": "spag", "decay": "0.5"}
    made = client.post("/admin/datasets/new", data={**form, "style": "compact", "name": "even"})
    assert made.status_code == 303
    page = client.get(made.headers["Location"]).text
    assert "γ = 0.5" in page
    assert "rewarded moves" in page
    varied = client.post("/admin/datasets/new", data={**form, "style": "full", "wordings": "3", "seed": "7"})
    assert "3, drawn by seed 7" in client.get(varied.headers["Location"]).text
    written = client.get(f"{made.headers['Location']}/export/openai")
    assert written.headers["Content-Disposition"].endswith('-openai.jsonl"')
    assert {message["role"] for line in written.text.splitlines() for message in json.loads(line)["messages"]} == {
        "user", "assistant",
    }  # fmt: skip
    weighted = client.get(f"/admin/datasets/{dataset.id}").text
    assert f"/admin/datasets/{dataset.id}/export/spag-rows" in weighted
    assert f"/admin/datasets/{dataset.id}/export/trl-preference" not in weighted
    assert client.get(f"/admin/datasets/{dataset.id}/export/trl-preference").status_code == 400
    assert client.get(f"/admin/datasets/{dataset.id}/export/pickle").status_code == 400
    refused = client.post("/admin/datasets/new", data={**form, "decay": "2"})
    assert refused.status_code == 400
    job = {"dataset": str(dataset.id), "method": "offline-po", "base": "other", "name": "better"}
    assert 'id="reference"' in client.get(f"/admin/jobs/new?dataset={dataset.id}").text
    assert client.post("/admin/jobs/new", data=job).status_code == 400
    assert client.post("/admin/jobs/new", data={**job, "reference": "player"}).status_code == 303
    with reading(engine) as session:
        again = session.scalars(select(Dataset.id).where(Dataset.name == "even")).one()
    assert again != dataset.id
    assert '<option value="player" selected>' in client.get("/admin/jobs/new?like=1").text
