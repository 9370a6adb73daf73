"""Runs of any kind over each other: which are shown, how they are drawn, and what cannot be."""

import html
import json
import re

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine

from app.core.extensions import writing
from app.models import TrainingEvent
from tests.experimenter import signed_in
from tests.jobs import make_dataset, make_job
from tests.rounds import make_round, play


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.fixture
def trainings(app: Flask, engine: Engine) -> list[int]:
    """Two training jobs: the losses of the first fall from 4 to 1, those of the second from 2 to 0."""
    dataset = make_dataset(engine, app.config["SETTINGS"])
    losses = [4.0, 3.0, 2.0, 1.0], [2.0, 1.0, 0.5, 0.0]
    numbers = [make_job(engine, dataset, name) for name in ("a", "b")]
    with writing(engine) as session:
        for number, of in zip(numbers, losses, strict=True):
            bodies = [{"event": "step", "step": at, "loss": loss} for at, loss in enumerate(of, 1)]
            session.add_all(TrainingEvent(job_id=number, number=at, body=body) for at, body in enumerate(bodies))
    return numbers


def layers(page: str) -> list[dict[str, object]]:
    """The layers of the drawn chart."""
    [text] = re.findall(r"<template [^>]*>(.*?)</template>", page)
    found: list[dict[str, object]] = json.loads(html.unescape(text))["light"]["layer"]
    return found


def test_curves_are_smoothed_over_their_pale_values_as_the_address_says(
    client: FlaskClient, trainings: list[int]
) -> None:
    address = f"/admin/compare/trainings?run={trainings[0]}&run={trainings[1]}"
    [plain] = layers(client.get(address).text)
    assert [each["y"] for each in plain["data"]["values"]] == [4, 3, 2, 1, 2, 1, 0.5, 0]  # type: ignore[index]
    assert len(set(map(tuple, plain["encoding"]["strokeDash"]["scale"]["range"]))) == 2  # type: ignore[index]
    raw, smoothed = layers(client.get(f"{address}&smooth=moving&window=2").text)
    assert raw["mark"]["opacity"] < 1  # type: ignore[index]
    means = [4, 3.5, 2.5, 1.5, 2, 1.5, 0.75, 0.25]
    assert [each["y"] for each in smoothed["data"]["values"]] == means  # type: ignore[index]


def test_what_a_log_axis_cannot_show_is_said(client: FlaskClient, trainings: list[int]) -> None:
    page = client.get(f"/admin/compare/trainings?run={trainings[0]}&run={trainings[1]}&log=1").text
    assert f"Values of b (job {trainings[1]}) that are 0 or less, which a log axis cannot show, are missing: 1." in page
    [line] = layers(page)
    assert [each["y"] for each in line["data"]["values"]] == [4, 3, 2, 1, 2, 1, 0.5]  # type: ignore[index]


def test_compare_is_reached_from_the_page_of_a_run_and_takes_further_ones(
    client: FlaskClient, trainings: list[int]
) -> None:
    first, second = trainings
    assert f'href="/admin/compare/trainings?run={first}"' in client.get(f"/admin/jobs/{first}").text
    page = client.get(f"/admin/compare/trainings?run={first}").text
    assert f'<option value="{second}">b (job {second})</option>' in page


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "expected 1 to 6 different ones to compare, got 0"),
        ("run=999", "expected the number of one that exists, got 999"),
        ("run={}&figure=charm", "charm"),
        ("run={}&smooth=moving&window=0", "window: expected"),
        ("run={}&smooth=exponential&weight=nan", "expected a number from 0 to 0.99"),
    ],
)
def test_a_comparison_that_cannot_be_says_why(client: FlaskClient, trainings: list[int], query: str, said: str) -> None:
    answer = client.get(f"/admin/compare/trainings?{query.format(trainings[0])}")
    assert answer.status_code in (400, 404)
    assert said in html.unescape(answer.text)


def test_a_round_is_drawn_as_its_mean_went_on_and_a_kind_without_curves_by_its_facts(
    app: Flask, engine: Engine, client: FlaskClient
) -> None:
    number = make_round(engine, "scripted", matches=12)
    empty = client.get(f"/admin/compare/rounds?run={number}").text
    assert "None of these runs has a figure that could be drawn yet." in empty
    assert "<figure" not in empty
    play(engine, app.config["SETTINGS"], number)
    page = client.get(f"/admin/compare/rounds?run={number}").text
    [line] = layers(page)
    assert [each["x"] for each in line["data"]["values"]] == [*range(1, 13)]  # type: ignore[index]
    assert "Mean score so far" in page
