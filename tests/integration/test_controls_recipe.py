"""The recipe of controls, run for real and small: each control plays, cuts its dataset, trains and is measured."""

from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine

from app.core.config import ROOT, Settings
from app.core.extensions import reading
from app.jobs import states
from app.models import Dataset, RoundRow
from app.recipes.job import RECIPE
from tests.datasets import rows_of
from tests.recipes import carry_on, make_run_of_file, row_of

FILE = ROOT / "data" / "recipes" / "controls.yaml"
SMALL: dict[str, Any] = {
    "objective": "coop", "matches": "16", "rounds": "1", "steps": "1", "temperatures": "0.5", "temperature": "0.5",
}  # fmt: skip
REWARDED = {"method": "offline-po", "rewards": "spag", "filter": "all"}


@pytest.fixture(autouse=True)
def _small_models(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMALL_MODELS", "true")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"control": "random_rows"}, marks=pytest.mark.long),
        {**REWARDED, "control": "shuffled_rewards"},
        pytest.param({"filter": "all"}, marks=pytest.mark.long),
        {"message_weight": "0"},
        pytest.param({"proposal_weight": "0"}, marks=pytest.mark.long),
    ],
    ids=lambda given: ", ".join(f"{name}={value}" for name, value in given.items() if given.keys() != REWARDED.keys()),
)
def test_each_control_is_run_to_its_end(app: Flask, engine: Engine, given: dict[str, str]) -> None:
    settings: Settings = app.config["SETTINGS"]
    number = make_run_of_file(engine, FILE, **SMALL, **given)
    carry_on(engine, settings, number)
    row = row_of(engine, number)
    assert (row.status, row.error) == (states.DONE, None)
    with reading(engine) as session:
        found = {step.name: step for step in RECIPE.steps_of(session, number)}
        dataset = session.get_one(Dataset, found["rows"].dataset_id)
        spec = {**dataset.spec}
        assert session.get_one(RoundRow, found["exchanged"].number).talk_of == found["measure"].number
        table = found["table"].figures
    assert table is not None
    assert [each["step"] for each in table["rows"]] == ["untrained", "measure", "exchanged"]
    asked = {"control": "none", "filter": "above_avg", "message_weight": 1, "proposal_weight": 1}
    assert {name: spec.get(name, usual) for name, usual in asked.items()} == {
        name: type(usual)(given.get(name, usual)) for name, usual in asked.items()
    }
    moves = [
        each for line in rows_of(settings.home, dataset) for each in line["messages"] if each["role"] == "assistant"
    ]
    for kind in ("message", "proposal"):
        if given.get(f"{kind}_weight") == "0":
            assert {each["weight"] for each in moves if each["content"].startswith(f"[{kind[:6]}")} == {0}
