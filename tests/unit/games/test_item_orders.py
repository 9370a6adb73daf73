"""A negotiation whose books, hats and balls are exchanged for each other: the same match under the same rules."""

import random
from collections.abc import Sequence
from string import Template

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.games import permutations_of
from app.games.base import JSON, Event, Violation
from app.games.negotiation.item_orders import ITEM_ORDERS
from app.games.negotiation.rules import NEGOTIATION, State
from app.games.permutations import Order
from app.players import prompts
from app.players.scripted.negotiation import SCRIPTED_GAME

ORDERS = st.sampled_from(ITEM_ORDERS.orders)
SHOUTED = str.upper, str.lower, str


def exchanged(config: JSON, moves: Sequence[Event], order: Order) -> tuple[JSON, list[Event]]:
    """A match in another order of the item types."""
    told = [ITEM_ORDERS.of_move(move.kind, move.text, move.data, order) for move in moves]
    assert all(told)
    return ITEM_ORDERS.of_config(config, order), [
        Event(move.kind, move.seat, *each) for move, each in zip(moves, told, strict=True) if each
    ]


def played(config: JSON, moves: Sequence[Event]) -> State:
    """The state after moves, each of which is judged again by its text alone."""
    state = NEGOTIATION.initial(NEGOTIATION.config(config), random.Random(0))
    for move in moves:
        assert NEGOTIATION.to_move(state) == move.seat
        judged = NEGOTIATION.parse(state, move.seat, move.text)
        assert judged == move
        state = NEGOTIATION.apply(state, judged)
    return state


def scripted_match(seed: int) -> State:
    """A match between two scripted negotiators, plain or casual, who shout now and then."""
    rng = random.Random(seed)
    config = NEGOTIATION.config({"objective": rng.choice(["self", "coop", "comp", 0.5]), "limit": 12})
    state = NEGOTIATION.initial(config, rng)
    choosers = [SCRIPTED_GAME.chooser("negotiator", rng.choice(["", "casual"])) for _ in range(2)]
    while (seat := NEGOTIATION.to_move(state)) is not None:
        text = choosers[seat](NEGOTIATION.view(state, seat), rng)  # type: ignore[misc]
        move = NEGOTIATION.parse(state, seat, rng.choice(SHOUTED)(text))
        assert not isinstance(move, Violation)
        state = NEGOTIATION.apply(state, move)
    return state


def measured(config: JSON, moves: Sequence[Event]) -> dict[str, float]:
    """What a match is measured by, but for the rule whose ties go by the order of the items."""
    found = NEGOTIATION.measures(config, moves)
    return {name: value for name, value in found.items() if name != "demand_score"}


def inverse(order: Order) -> Order:
    return tuple(order.index(item) for item in range(3))


@settings(deadline=None)
@given(st.integers(0, 2**32), ORDERS)
def test_a_match_in_another_order_is_legal_scores_the_same_and_says_the_same(seed: int, order: Order) -> None:
    state = scripted_match(seed)
    config, moves = state.config.to_json(), state.events
    other_config, other_moves = exchanged(config, moves, order)
    other = played(other_config, other_moves)
    before, after = NEGOTIATION.outcome(state), NEGOTIATION.outcome(other)
    assert before is not None
    assert after is not None
    assert (before.reason, before.utilities) == (after.reason, after.utilities)
    assert before.facts.get("scores") == after.facts.get("scores")
    assert before.facts["pareto_optimal"] == after.facts["pareto_optimal"]
    assert measured(config, moves) == measured(other_config, other_moves)
    assert exchanged(other_config, other_moves, inverse(order)) == (config, list(moves))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), ORDERS, st.sampled_from(["full-1", "full-2", "full-2-3", "compact-1"]))
def test_each_style_tells_counts_and_values_in_the_other_order(seed: int, order: Order, template: str) -> None:
    """The prompt of the other match is the prompt of a match that was begun with these counts and values."""
    state = scripted_match(seed)
    config, moves = exchanged(state.config.to_json(), state.events, order)
    prompt = {"style": template.partition("-")[0], "template": template, "renderer": 2}
    for seat in (0, 1):
        before = prompts.messages(NEGOTIATION.view(state, seat), prompt)
        after = prompts.messages(NEGOTIATION.view(played(config, moves), seat), prompt)
        assert [each["role"] for each in before] == [each["role"] for each in after]
        sections = prompts.read_sections(prompts.FOLDER / "negotiation" / f"{template}.txt")
        names = [("book", "hat", "ball")[place] for place in order]  # what was a book is the first of these
        told = zip(names, state.context.counts, state.context.values[seat], strict=True)
        values = {f"{of}_{name}": n for name, *both in told for of, n in zip(("counts", "values"), both, strict=True)}
        words = NEGOTIATION.prompt_words({"lambda": float(state.config.lam)}, sections)
        rules = Template(sections["rules"]).substitute(limit=state.config.limit, **words, **values)
        assert after[0]["content"].startswith(rules)


@pytest.mark.parametrize(
    ("text", "renamed"),
    [
        ("[message] 2 books and a hat; you get the ball.", "[message] 2 hats and a ball; you get the book."),
        ("BOOKS! Hats? The book's price, 2balls", "HATS! Balls? The hat's price, 2books"),
        ("I propose **1 book**, zero hats, 3 balls", "I propose **1 hat**, zero balls, 3 books"),
        ("A notebook is 4 points to me and 0 to you.", "A notebook is 4 points to me and 0 to you."),
    ],
)
def test_words_of_items_keep_their_number_and_their_case(text: str, renamed: str) -> None:
    assert ITEM_ORDERS.of_text(text, (1, 2, 0)) == renamed
    assert ITEM_ORDERS.of_text(renamed, inverse((1, 2, 0))) == text


@pytest.mark.parametrize(
    "text",
    [
        "I take (2, 1, 0).", "2/1/0 for me", "two, one and none", "I get 2 1 0", "the first item is mine", "item 2",
        "the caps for me", "both basketballs", "a bok and a hat", "BOOks", "📚 for me, please",
    ],
)  # fmt: skip
def test_a_text_that_names_items_otherwise_is_left_alone(text: str) -> None:
    assert ITEM_ORDERS.of_text(text, (1, 0, 2)) is None


def test_a_proposal_keeps_the_usual_order_of_items_and_moves_its_numbers() -> None:
    data = {"allocation": [1, 2, 0]}
    told = ITEM_ORDERS.of_move("proposal", "[propose] (1 book,  2 hats, 0 balls)", data, (1, 2, 0))
    assert told == ("[propose] (0 books,  1 hat, 2 balls)", {"allocation": [0, 1, 2]})
    for text in ("books 1 hats 2 balls 0", "[propose] (1 hats, 2 books, 0 balls)"):  # as imported games may have them
        assert ITEM_ORDERS.of_move("proposal", text, data, (1, 2, 0)) is None


def test_every_other_order_is_there_once() -> None:
    orders = permutations_of("negotiation").orders
    assert len(orders) == len({*orders}) == 5
    assert (0, 1, 2) not in orders
