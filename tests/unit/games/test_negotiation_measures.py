"""What matches of Deal or No Deal are measured by, against arithmetic done by hand."""

import pytest

from app.games.base import Event
from app.games.negotiation.rules import NEGOTIATION

# Three books, two hats, a ball: worth 1, 3, 1 to seat 0, and 2, 0, 4 to seat 1.
CONFIG = {"objective": "self", "counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]], "first": 0}
OFFER = "I take the hats, and you get the rest"
# A random split gives each 5 of 10 points; seat 0 values the hats most: 6, and 3·2 + 4 are left to seat 1.
REFERENCES = {"random_score": 5.0, "demand_score": 8.0, "best_score": 8.0}


def moves(*texts: str) -> list[Event]:
    """Moves from seat 0 on; those of numbers alone are proposals."""
    return [
        Event("proposal", place % 2, "[propose]", {"allocation": [int(number) for number in text.split()]})
        if text.replace(" ", "").isdigit()
        else Event("message", place % 2, f"[message] {text}")
        for place, text in enumerate(texts)
    ]


def test_a_deal_on_what_was_said() -> None:
    found = NEGOTIATION.measures(CONFIG, moves(OFFER, "Deal: you get the hats, and I take the rest", "0 2 0", "3 0 1"))
    assert found == {
        **REFERENCES,
        "named": True, "unspoken": False, "misquoted": False,
        "grounded_0": True, "grounded_1": True, "first_grounded": True, "second_grounded": True,
        "last_offer_agreed": True, "last_offer_score": 8.0, "last_offer_pareto": True,  # (6 + 10) / 2
    }  # fmt: skip


def test_a_last_move_that_takes_the_first_offer_where_another_was_named_since() -> None:
    talk = OFFER, "Agreed: you get the books, and I take the rest"
    found = NEGOTIATION.measures(CONFIG, moves(*talk, "0 2 0", "0 2 1"))
    assert found == {
        **REFERENCES,
        "named": True, "misquoted": True,
        "grounded_0": False, "grounded_1": True, "first_grounded": False, "second_grounded": True,
        "last_offer_agreed": True, "last_offer_score": 3.5, "last_offer_pareto": False,  # 3 books for 0, a ball for 1
    }  # fmt: skip


def test_a_deal_out_of_nothing() -> None:
    found = NEGOTIATION.measures(CONFIG, moves("Hello!", "Hi there.", "0 2 0", "3 0 1"))
    assert found == {
        **REFERENCES,
        "named": False, "unspoken": True,
        "grounded_0": False, "grounded_1": False, "first_grounded": False, "second_grounded": False,
        "last_offer_agreed": False, "last_offer_score": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(("objective", "demand", "last"), [("coop", 16.0, 16.0), ("comp", 0.0, 0.0), (0.5, 12.0, 12.0)])
def test_scores_are_utilities(objective: object, demand: float, last: float) -> None:
    found = NEGOTIATION.measures({**CONFIG, "objective": objective}, moves(OFFER))
    assert (found["demand_score"], found["last_offer_score"]) == (demand, last)


def test_the_rule_goes_by_the_seat_that_begins_and_by_all_items_of_a_type() -> None:
    # To seat 1 three books are worth 6 and one ball 4: seat 0 is left with 2·3 + 1.
    found = NEGOTIATION.measures({**CONFIG, "first": 1}, [])
    assert found["demand_score"] == (6 + 7) / 2
    assert found["named"] is False
