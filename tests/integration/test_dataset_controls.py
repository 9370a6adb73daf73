"""Datasets of grounded seats alone, their controls, moves that weigh more or less than others, and other orders."""

import itertools
import random
from collections import Counter
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select, update

from app.campaigns.recipe import document_of
from app.campaigns.spec import CampaignSpec
from app.core.config import Settings
from app.core.errors import Invalid
from app.core.extensions import writing
from app.datasets.spec import read_spec
from app.games.negotiation.contexts import ITEMS, generate_context
from app.games.negotiation.material import pieces_of
from app.games.negotiation.rules import NEGOTIATION
from app.models import EventRow, MatchRow
from app.rounds.held_out import is_held_out
from app.rounds.lifecycle import Material
from tests.datasets import cut, matches_of, rows_of, seat_of
from tests.rounds import make_round, play


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


@pytest.fixture
def number(engine: Engine, settings: Settings) -> int:
    """A round of `scripted`, whose matches end in deals on what was said."""
    found = make_round(engine, "scripted", matches=12)
    play(engine, settings, found)
    return found


def rows(engine: Engine, settings: Settings, number: int, **spec: Any) -> dict[tuple[str, int], dict[str, Any]]:
    """The rows of a dataset by match and seat."""
    home = settings.home
    return {seat_of(row): row for row in rows_of(home, cut(engine, home, rounds=[number], **spec))}


def reward(row: dict[str, Any]) -> float:
    return round(sum(each["reward"] for each in row["messages"] if each["role"] == "assistant"), 9)


def test_a_seat_whose_proposal_is_not_what_was_said_last_gives_no_row(
    engine: Engine, settings: Settings, number: int
) -> None:
    everything = rows(engine, settings, number, filter="nonzero")
    match = next(match for match, seat in everything if seat == 0)
    with writing(engine) as session:
        session.execute(
            update(MatchRow).where(MatchRow.id == match).values(measures={"grounded_0": False, "grounded_1": True})
        )
    assert everything.keys() - rows(engine, settings, number, filter="nonzero", grounded=True).keys() == {(match, 0)}
    with writing(engine) as session:
        session.execute(update(MatchRow).where(MatchRow.id == match).values(measures=None))
    with pytest.raises(Invalid, match=r"grounded: .* got 1 that were not.*flask match measure"):
        rows(engine, settings, number, filter="nonzero", grounded=True)


def test_a_control_has_as_many_rows_of_any_seats(engine: Engine, settings: Settings, number: int) -> None:
    kept = rows(engine, settings, number, filter="above_avg")
    first, again, other = (
        rows(engine, settings, number, filter="above_avg", control="random_rows", seed=seed) for seed in (1, 1, 2)
    )
    assert len(kept) == len(first) == len(other) < 24
    assert first == again
    assert len({frozenset(each) for each in (kept, first, other)}) == 3
    everything = rows(engine, settings, number, filter="all")
    assert all(row == everything[seat] for seat, row in first.items())


def test_rows_are_not_drawn_where_all_are_kept() -> None:
    for wish in ({"filter": "all"}, {"rewards": "spag"}):
        with pytest.raises(Invalid, match="a filter that leaves seats out"):
            read_spec({"rounds": [1], "control": "random_rows", **wish})


def test_shuffled_rewards_are_those_of_other_seats(engine: Engine, settings: Settings, number: int) -> None:
    as_won = rows(engine, settings, number, filter="all", rewards="spag")
    shuffled = rows(engine, settings, number, filter="all", rewards="spag", control="shuffled_rewards", seed=1)
    assert as_won.keys() == shuffled.keys()
    before, after = ({seat: reward(row) for seat, row in each.items()} for each in (as_won, shuffled))
    assert Counter(before.values()) == Counter(after.values())
    assert before != after
    with pytest.raises(Invalid, match="control: expected rewards beside it"):
        rows(engine, settings, number, filter="all", control="shuffled_rewards")


def test_moves_weigh_by_their_kind(engine: Engine, settings: Settings, number: int) -> None:
    def weights(**spec: float) -> set[tuple[str, float]]:
        """The weights of own moves, by how these begin."""
        found = rows(engine, settings, number, filter="all", **spec).values()
        own = [each for row in found for each in row["messages"] if each["role"] == "assistant"]
        return {(each["content"].split("]")[0], each.get("weight", 1)) for each in own}

    assert weights() == {("[message", 1), ("[propose", 1)}
    assert weights(message_weight=0) == {("[message", 0), ("[propose", 1)}
    assert weights(proposal_weight=0, message_weight=2.5) == {("[message", 2.5), ("[propose", 0)}


def test_a_seat_without_a_move_to_learn_gives_no_row(engine: Engine, settings: Settings) -> None:
    short = make_round(engine, "scripted", matches=2, config={"limit": 1})  # a message of the seat that begins, each
    play(engine, settings, short)
    assert len(rows(engine, settings, short, filter="all")) == 2
    with pytest.raises(Invalid, match="to keep at least one transcript"):
        rows(engine, settings, short, filter="all", message_weight=0)


def test_a_campaign_asks_its_datasets_for_the_same() -> None:
    spec = {"game": "negotiation", "base": "base", "iterations": 1, "matches": 10, "seed": 1}
    asked = {"grounded": True, "control": "random_rows", "proposal_weight": 3.0, "permutations": 2}
    plain, controlled = (
        next(
            step["with"] for step in document_of(CampaignSpec.read(each), "loop", None)["steps"] if step["do"] == "keep"
        )
        for each in (spec, {**spec, **asked})
    )
    assert controlled == {**plain, **asked, "seed": "${training_seeds[iteration]}"}


# ---- Other orders of the item types ------------------------------------------------


def test_each_transcript_is_added_in_all_orders_but_those_on_held_out_contexts(
    engine: Engine, settings: Settings
) -> None:
    rng = random.Random(1)
    contexts = Material("a test", pieces_of(generate_context(rng) for _ in range(12)))
    number = make_round(engine, "scripted", matches=12, material=contexts)
    play(engine, settings, number)
    spec = {"rounds": [number], "filter": "all", "rewards": "spag", "style": "compact"}
    plain = rows_of(settings.home, cut(engine, settings.home, **spec))
    dataset = cut(engine, settings.home, **spec, permutations=5)
    found: dict[tuple[str, int], dict[tuple[int, ...], dict[str, Any]]] = {}
    for row in rows_of(settings.home, dataset):
        found.setdefault(seat_of(row), {})[tuple(row.pop("order", (0, 1, 2)))] = row
    assert [each[0, 1, 2] for each in found.values()] == plain
    assert dataset.figures["permuted"] == dataset.rows - len(plain)
    held_out = 0
    for match, played in matches_of(engine, number).items():
        for order in itertools.permutations(range(3)):
            numbers = [played.config["counts"], *played.config["values"]]
            counts, *values = ([each[order.index(item)] for item in range(3)] for each in numbers)
            if order != (0, 1, 2) and is_held_out(NEGOTIATION.material, [counts, *values]):
                assert all(order not in found[match, seat] for seat in (0, 1))
                held_out += 1
                continue
            for seat in (0, 1):
                row = found[match, seat][order]
                told = zip(counts, ITEMS, values[seat], strict=True)
                assert row["messages"][0]["content"].startswith(", ".join(f"{n} {item}s at {v}" for n, item, v in told))
                assert reward(row) == reward(found[match, seat][0, 1, 2])
    assert held_out  # of some: a tenth of all contexts


def test_orders_are_drawn_by_the_seed(engine: Engine, settings: Settings, number: int) -> None:
    def orders(**spec: Any) -> list[tuple[str, tuple[int, ...]]]:
        found = rows_of(settings.home, cut(engine, settings.home, rounds=[number], filter="all", **spec))
        return [(row["group"], tuple(row["order"])) for row in found if "order" in row]

    first, again, other = (orders(permutations=2, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len({*first}) == len(first) == len(other)
    assert {*Counter(seat for seat, _ in first).values()} == {2}


def test_a_match_whose_words_cannot_be_exchanged_is_there_as_it_was_played(
    engine: Engine, settings: Settings, number: int
) -> None:
    match = min(matches_of(engine, number))
    with writing(engine) as session:
        said = session.scalars(
            select(EventRow).where(EventRow.match_id == match, EventRow.kind == "message").order_by(EventRow.seq)
        ).first()
        assert said is not None
        said.body = {**said.body, "text": "[message] I would like (1, 0, 0)."}
    found = rows_of(settings.home, cut(engine, settings.home, rounds=[number], filter="all", permutations=1))
    assert Counter(seat_of(row)[0] for row in found if "order" in row).keys() == {*matches_of(engine, number)} - {match}
    assert sum(seat_of(row)[0] == match for row in found) == 2


def test_a_game_without_item_types_has_no_other_orders(engine: Engine, settings: Settings) -> None:
    number = make_round(engine, "scripted", game="taboo", matches=2)
    play(engine, settings, number)
    refusal = "permutations: expected matches of negotiation, got some of taboo, which has no item types to exchange"
    with pytest.raises(Invalid, match=refusal):
        rows(engine, settings, number, filter="all", permutations=1)
    with pytest.raises(Invalid, match=refusal):
        CampaignSpec.read({"game": "taboo", "base": "base", "permutations": 1})
