"""`python -m bench.last_offers` on messages and matches with values worked out by hand."""

import itertools
import json
import random
from pathlib import Path

import pytest

from app.games.negotiation.contexts import three
from app.players.scripted.negotiation import phrases
from bench.last_offers import Match, Offer, figures, matches_of, offer_in

COUNTS = (2, 1, 3)


@pytest.mark.parametrize(
    ("text", "offer"),
    [
        ("Hi! How about I take both books and the hat, and you get all the balls?", Offer((2, 1, 0), (0, 0, 3))),
        ("Deal: you get the hat and two balls, and I keep the books and one ball.", Offer((2, 0, 1), (0, 1, 2))),
        ("you take nothing, and I take everything.", Offer((2, 1, 3), (0, 0, 0))),
        ("The balls matter most to me, the hat nothing. I'll take 3 balls", Offer((0, 0, 3), None)),
        ("you can have the hat", Offer(None, (0, 1, 0))),
        ("I care most about the books. What do you think?", None),
        ("What I have in mind: the hat and two balls for you", None),
        ("In points, worth to me: each book 2, the hat 3, each ball 1.", None),
    ],
)
def test_an_offer_is_read_by_its_two_parts(text: str, offer: Offer | None) -> None:
    assert offer_in(text, COUNTS) == offer


def test_sentences_of_the_scripted_negotiator_are_read_as_they_are_meant() -> None:
    rng = random.Random(1)
    for share in itertools.product(*(range(count + 1) for count in COUNTS)):
        rest = three([count - n for count, n in zip(COUNTS, share, strict=True)])
        for said in (phrases.counter(three(share), COUNTS, rng, False), phrases.accept(three(share), COUNTS, rng)):
            offer = offer_in(said.lower(), COUNTS)
            assert offer is not None, said
            assert offer.shares(COUNTS) == (share, rest), said


def match(*messages: tuple[int, str], proposed: tuple[tuple[int, ...] | None, tuple[int, ...] | None]) -> Match:
    """Seat 0 values hats and balls (1 · 4 + 3 · 2), seat 1 books and balls (2 · 2 + 3 · 2)."""
    return Match(COUNTS, ((0, 4, 2), (2, 0, 2)), proposed, messages)


WHOLE = (0, "I take the hat and one ball, and you get both books and two balls")
WRONG = (1, "Deal: I take both books and all the balls, and you get the hat and two balls")


def test_the_last_offer_takes_the_place_of_both_proposals() -> None:
    found = figures(
        [
            match(WHOLE, (1, "Fine!"), proposed=((0, 1, 1), (1, 0, 2))),  # said well, proposed badly: 6 and 8 points
            match(WHOLE, WRONG, proposed=((0, 1, 1), (2, 0, 2))),  # what was said last has five balls
            match((0, "Hello!"), proposed=((2, 1, 3), None)),
            match((1, "I take four balls"), proposed=((0, 0, 0), (0, 0, 0))),
        ]
    )
    assert found == {
        "matches": 4,
        "deals": 0.25,
        "points": 7 / 4,
        "agreed_points": 7,
        "agreed_pareto": 1,
        "aborted": 0.25,
        "readable": 0.75,
        "last_offer_deals": 0.25,
        "last_offer_points": 7 / 4,
        "repaired_deals": 0.75,
        "repaired_points": pytest.approx((7 + (4 + 10) / 2 + (4 + 6) / 2) / 4),
    }


def test_a_round_is_read_in_its_published_form(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "text_logs").mkdir()
    items = ("book", "hat", "ball")
    result = {
        "counts": dict(zip(items, COUNTS, strict=True)),
        "p0_values": dict(zip(items, (0, 4, 2), strict=True)),
        "p1_values": dict(zip(items, (2, 0, 2), strict=True)),
        "p0_allocation": dict(zip(items, (0, 1, 1), strict=True)),
        "p1_allocation": None,
        "p0_score": 0,
        "p1_score": 0,
    }
    (tmp_path / "results" / "000.json").write_text(json.dumps(result))
    text = f"Item counts: …\nPlayer 0 values: …\n\n\nPlayer 0: [message] {WHOLE[1]}\nPlayer 1: [propose] (1 books, …)\n"
    (tmp_path / "text_logs" / "000_full.txt").write_text(text)
    [found] = matches_of(tmp_path)
    assert found == match(WHOLE, proposed=((0, 1, 1), None))._replace(proposers=(1,))
