"""Lineage: what a model was made from, back to models that nobody trained here, and what was made from it."""

import json
import re
from dataclasses import dataclass

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, update

from app.core.config import Settings
from app.core.errors import NotFound
from app.core.extensions import reading, writing
from app.lineage import ADDED, SHIPPED, TRAINED, ModelOrigin, ancestors, descendants
from app.models import TrainingJob
from app.registry import list_models
from app.web.admin import lineage as pages
from tests.campaigns import add_local, campaign_of, change, dataset_of, job_of, model_named, round_of
from tests.experimenter import signed_in


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Family:
    """Numbers of what there is: base → first → second, and a side line that learned from base and from scripted."""

    rounds: dict[str, int]
    datasets: dict[str, int]
    jobs: dict[str, int]


@pytest.fixture
def family(engine: Engine, settings: Settings) -> Family:
    add_local(engine, "base", "data/models/base")
    by_base = round_of(engine, settings, "base")
    one = dataset_of(engine, settings, by_base, name="one")
    first = job_of(engine, one, "first", "base")
    by_first = round_of(engine, settings, "first", "scripted")
    two = dataset_of(engine, settings, by_base, by_first, name="two")
    second = job_of(engine, two, "second", "first")
    nothing = job_of(engine, one, "from-nothing", None)
    failed = job_of(engine, two, "never-made", "second", "failed")
    return Family(
        {"base": by_base, "first": by_first},
        {"one": one.id, "two": two.id},
        {"first": first.id, "second": second.id, "nothing": nothing.id, "failed": failed.id},
    )


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


def above(engine: Engine, name: str) -> list[ModelOrigin]:
    with reading(engine) as session:
        return ancestors(session, model_named(engine, name).id)


def test_a_model_is_followed_back_through_jobs_datasets_and_rounds(engine: Engine, family: Family) -> None:
    second, first, base, scripted = above(engine, "second")
    assert [each.model.name for each in (second, first, base, scripted)] == ["second", "first", "base", "scripted"]
    assert [each.origin for each in (second, first, base, scripted)] == [TRAINED, TRAINED, SHIPPED, SHIPPED]
    assert second.job
    assert second.base
    assert second.dataset
    assert (second.job.id, second.base.name) == (family.jobs["second"], "first")
    assert second.dataset.id == family.datasets["two"]
    told = [(each.round and each.round.id, [model.name for model in each.models], each.rows) for each in second.sources]
    assert told == [(family.rounds["base"], ["base"], 12), (family.rounds["first"], ["first", "scripted"], 12)]
    assert [parent.name for parent in second.parents] == ["first", "base", "scripted"]
    assert (base.job, base.dataset, base.sources) == (None, None, ())
    nothing, played = above(engine, "from-nothing")
    assert (nothing.base, [parent.name for parent in nothing.parents], played.model.name) == (None, ["base"], "base")


def test_what_came_of_a_model_is_followed_to_the_last(engine: Engine, family: Family) -> None:
    with reading(engine) as session:
        of_base = descendants(session, model_named(engine, "base").id)
        of_last = descendants(session, model_named(engine, "second").id)
    assert [each.id for each in of_base.datasets] == [family.datasets["two"], family.datasets["one"]]
    # Jobs whose dataset holds a match of the base learn from it, whatever weights they went on from.
    assert {each.id for each in of_base.jobs} == set(family.jobs.values())
    assert {(model.name, steps) for model, steps in of_base.models} == {
        ("first", 1), ("second", 1), ("from-nothing", 1),
    }  # fmt: skip
    assert (list(of_last.datasets), [each.id for each in of_last.jobs]) == ([], [family.jobs["failed"]])
    assert list(of_last.models) == []


def test_every_model_of_the_registry_has_a_lineage(engine: Engine, family: Family) -> None:
    add_local(engine, "mine", "/elsewhere/weights")
    with reading(engine) as session:
        for row in list_models(session):
            found = ancestors(session, row.id)
            assert found[0].model.id == row.id
            assert all(each.job is not None or each.origin in (SHIPPED, ADDED) for each in found)
            descendants(session, row.id)
        assert ancestors(session, model_named(engine, "mine").id)[0].origin == ADDED
        for number in (0, 99, 2**40):
            with pytest.raises(NotFound):
                ancestors(session, number)


def test_a_round_of_which_no_row_was_kept_is_told_with_none(engine: Engine, family: Family, settings: Settings) -> None:
    poor = round_of(engine, settings, "second", matches=2, config={"limit": 1})
    dataset = dataset_of(engine, settings, family.rounds["base"], name="three")
    with writing(engine) as session:
        row = session.merge(dataset)
        row.spec = {**row.spec, "rounds": [family.rounds["base"], poor]}
    job_of(engine, dataset, "third", "base")
    third = above(engine, "third")[0]
    assert [(each.round and each.round.id, each.rows) for each in third.sources] == [
        (family.rounds["base"], 12), (poor, 0),
    ]  # fmt: skip


def test_a_circle_ends(engine: Engine, family: Family) -> None:
    with writing(engine) as session:
        session.execute(
            update(TrainingJob)
            .where(TrainingJob.id == family.jobs["first"])
            .values(base_id=model_named(engine, "second").id)
        )
    assert {each.model.name for each in above(engine, "first")} == {"first", "second", "base", "scripted"}
    with reading(engine) as session:
        assert {model.name for model, _ in descendants(session, model_named(engine, "first").id).models} == {"second"}


def test_the_command_tells_the_same_in_words_and_as_json(app: Flask, engine: Engine, family: Family) -> None:
    campaign = campaign_of(engine, "base")
    change(engine, campaign, 1, model_id=model_named(engine, "first").id)
    runner = app.test_cli_runner()
    told = runner.invoke(args=["model", "lineage", "second"]).output
    assert f"second: made by job {family.jobs['second']} (sft)\n  from the weights of first\n" in told
    assert f"12 of round {family.rounds['first']} (first), played by first and scripted" in told
    assert f"iteration 1 of campaign {campaign} (loop)" in told
    assert "base: local, came with Parlor" in told
    assert f"Made from it, jobs: {family.jobs['failed']} (never-made, failed)" in told
    found = json.loads(runner.invoke(args=["model", "lineage", "first", "--json"]).output)
    assert [each["model"] for each in found["ancestors"]] == ["first", "base"]
    assert found["ancestors"][0]["sources"] == [
        {"round_id": family.rounds["base"], "models": ["base"], "people": False, "rows": 12}
    ]
    assert found["descendants"]["models"] == [{"model": "second", "steps": 1}]
    refused = runner.invoke(args=["model", "lineage", "nobody"])
    assert (refused.exit_code, "model: expected one of" in refused.output) == (2, True)
    assert "Nothing has been made from it yet." in runner.invoke(args=["model", "lineage", "from-nothing"]).output


def test_the_page_leads_to_all_that_a_model_was_made_of(client: FlaskClient, engine: Engine, family: Family) -> None:
    campaign = campaign_of(engine, "base")
    change(engine, campaign, 1, model_id=model_named(engine, "first").id)
    numbers = {name: model_named(engine, name).id for name in ("second", "first", "base", "scripted", "from-nothing")}
    page = client.get(f"/admin/models/{numbers['second']}/lineage").text
    assert re.findall(r'id="model-(\d+)"', page) == [
        str(numbers[name]) for name in ("second", "first", "base", "scripted")
    ]
    leads = [f"/admin/rounds/{number}" for number in family.rounds.values()]
    leads += [f"/admin/datasets/{number}" for number in family.datasets.values()]
    leads += [f"/admin/jobs/{family.jobs[name]}" for name in ("first", "second", "failed")]
    leads += [f"#model-{numbers['base']}", f"/admin/campaigns/{campaign}", f"/admin/models/{numbers['first']}"]
    for lead in leads:
        assert f'href="{lead}"' in page
    assert "It goes back through 2 trainings" in page
    assert "1 training later" in client.get(f"/admin/models/{numbers['base']}/lineage").text
    for name, says in {
        "base": "It came with Parlor, so its lineage begins here.",
        "from-nothing": "nothing: it began with random weights",
        "scripted": "came with Parlor",
    }.items():
        assert says in client.get(f"/admin/models/{numbers[name]}/lineage").text
        assert f'href="/admin/models/{numbers[name]}/lineage"' in client.get(f"/admin/models/{numbers[name]}").text
    assert client.get("/admin/models/99999/lineage").status_code == 404


def test_long_lists_are_folded(
    client: FlaskClient, engine: Engine, settings: Settings, family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = [round_of(engine, settings, "base", matches=2) for _ in range(7)]
    job_of(engine, dataset_of(engine, settings, *rounds, name="many"), "of-many", "base")
    page = client.get(f"/admin/models/{model_named(engine, 'of-many').id}/lineage").text
    shown, _, folded = page.partition("<summary>2 more rounds</summary>")
    assert [f'href="/admin/rounds/{number}"' in shown for number in rounds] == [True] * 5 + [False] * 2
    assert all(f'href="/admin/rounds/{number}"' in folded for number in rounds[5:])
    monkeypatch.setattr(pages, "NEAR", 1)
    assert "<summary>3 earlier models</summary>" in (
        client.get(f"/admin/models/{model_named(engine, 'second').id}/lineage").text
    )


def test_a_dataset_and_a_job_lead_to_the_lineage_of_their_models(
    client: FlaskClient, family: Family, engine: Engine
) -> None:
    second = f'href="/admin/models/{model_named(engine, "second").id}/lineage"'
    assert second in client.get(f"/admin/datasets/{family.datasets['two']}").text
    assert second in client.get(f"/admin/jobs/{family.jobs['second']}").text
