"""Rounds whose models read the messages of another round's matches in place of those of their partners."""

from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app.core.config import Settings
from app.core.errors import Invalid
from app.core.extensions import reading, writing
from app.jobs import states
from app.models import EventRow, GenerationRow, MatchRow
from app.rounds.exchanged_talk import messages_of
from app.rounds.job import ROUND
from app.rounds.lifecycle import spec_of
from tests.datasets import cut, rows_of
from tests.rounds import add_models, haggler, make_round, play
from tests.stub_openai import StubServer


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script("haggler", haggler)
        yield server


def messages(engine: Engine, number: int) -> list[list[str]]:
    """What the second seat said in each match of a round."""
    with reading(engine) as session:
        logs = select(MatchRow.index, EventRow.body).join(EventRow, EventRow.match_id == MatchRow.id)
        of_seat = logs.where(MatchRow.round_id == number, EventRow.kind == "message", EventRow.seat == 1)
        found: dict[int, list[str]] = {}
        for index, body in session.execute(of_seat.order_by(MatchRow.index, EventRow.seq)):
            found.setdefault(index or 0, []).append(body["text"])
        return [found[index] for index in sorted(found)]


def test_a_model_reads_what_was_said_in_the_next_match_of_the_other_round(
    app: Flask, engine: Engine, stub: StubServer
) -> None:
    settings: Settings = app.config["SETTINGS"]
    add_models(engine, stub.url, "haggler")
    donor = make_round(engine, "scripted", matches=3, config={"first": 1})
    play(engine, settings, donor)
    said = messages(engine, donor)
    number = make_round(engine, "haggler", "scripted", matches=3, config={"first": 1}, talk_of=str(donor))
    play(engine, settings, number)
    with reading(engine) as session:
        assert spec_of(session, ROUND.get(session, number)).talk_of == str(donor)
        prompts = select(MatchRow.index, GenerationRow.prompt).join(MatchRow, MatchRow.id == GenerationRow.match_id)
        read: dict[int, list[str]] = {}
        for index, prompt in session.execute(prompts.where(GenerationRow.ply == 1, GenerationRow.attempt == 0)):
            read[index or 0] = [each["content"] for each in prompt if each["role"] == "user"]
    own = messages(engine, number)
    for index in range(3):
        assert said[(index + 1) % 3][0] in read[index][-1]
        assert own[index][0] not in read[index][-1]


def test_with_swapped_seats_a_model_reads_the_talk_of_another_pair(app: Flask, engine: Engine) -> None:
    donor = make_round(engine, "scripted", matches=4, swap_seats=True)
    play(engine, app.config["SETTINGS"], donor)
    said = messages(engine, donor)
    with reading(engine) as session:
        talk = messages_of(session, donor)
    assert [list(each[1]) for each in talk] == [*said[2:], *said[:2]]


def test_a_round_of_one_game_has_no_other_talk(app: Flask, engine: Engine) -> None:
    donor = make_round(engine, "scripted", matches=2, swap_seats=True)
    play(engine, app.config["SETTINGS"], donor)
    with reading(engine) as session, pytest.raises(Invalid, match="talk_of: expected a round with two different games"):
        messages_of(session, donor)


def test_no_dataset_is_cut_from_a_round_with_the_talk_of_another(app: Flask, engine: Engine) -> None:
    settings: Settings = app.config["SETTINGS"]
    donor = make_round(engine, "scripted", matches=3)
    play(engine, settings, donor)
    number = make_round(engine, "scripted", matches=3, talk_of=str(donor))
    play(engine, settings, number)
    with pytest.raises(Invalid, match=rf"\(round {number}\), whose models read messages of .* \(round {donor}\)"):
        cut(engine, settings.home, rounds=[number], filter="all")
    rows = rows_of(settings.home, cut(engine, settings.home, rounds=[], filter="all", matches={"source": "selfplay"}))
    assert len(rows) == 6  # both seats of the matches of `donor`


def test_another_round_that_has_no_talk_is_refused(app: Flask, engine: Engine) -> None:
    def refused(**wish: Any) -> str:
        with pytest.raises(Invalid) as refusal:
            make_round(engine, "scripted", matches=2, **wish)
        return refusal.value.message

    assert "talk_of: expected the number of a round of negotiation that is done, got 9" in refused(talk_of="9")
    assert "talk_of" in refused(talk_of="one")
    donor = make_round(engine, "scripted", matches=3)
    play(engine, app.config["SETTINGS"], donor)
    with writing(engine) as session:
        ROUND.get(session, donor).status = states.RUNNING
    assert "that is done" in refused(talk_of=str(donor))
