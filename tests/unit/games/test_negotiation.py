"""The rules of Deal or No Deal, as a player and an analyst notice them."""

import random
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import Invalid
from app.games.base import Event, Violation
from app.games.negotiation.contexts import Context, generate_context, read_contexts
from app.games.negotiation.points import (
    best_joint_score,
    frontier,
    is_pareto_optimal,
    scores,
    splits,
    utilities,
)
from app.games.negotiation.rules import NEGOTIATION, State

CONTEXT = Context((3, 2, 1), ((1, 3, 1), (2, 0, 4)))
SELFPLAY = Path(__file__).parents[4] / "shared" / "data" / "negotiation" / "selfplay.txt"


def begin(objective: object = "self", first: int = 0, limit: int = 50) -> State:
    raw = {"objective": objective, "limit": limit, "counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]]}
    return NEGOTIATION.initial(NEGOTIATION.config({**raw, "first": first}), random.Random(0))


def play(state: State, *texts: str) -> State:
    for text in texts:
        seat = NEGOTIATION.to_move(state)
        assert seat is not None, f"over before {text!r}"
        move = NEGOTIATION.parse(state, seat, text)
        assert isinstance(move, Event), move
        state = NEGOTIATION.apply(state, move)
    return state


TALKED = ("[message] hello", "[message] hi")


@pytest.mark.parametrize(
    ("before", "text", "kind"),
    [
        ((), "[message] hello", "message"),
        ((), "[Message] hello", "message"),
        ((), "  [message] two\nlines ", "message"),
        ((), "[message] hello [END] and more", "message"),
        ((), "[message] hello[end][propose] (1 books, 1 hats, 1 balls)", "message"),
        (TALKED, "[propose] (1 books, 2 hats, 0 balls)", "proposal"),
        (TALKED, "[propose] (1 book, 2 hats, 0 ball)", "proposal"),
        (TALKED, "[propose] (1 Books, 2 HATS, 0 balls)", "proposal"),
        (TALKED, "[propose](1 books,2 hats,0 balls)", "proposal"),
        (TALKED, "[propose] ( 1 books , 2 hats , 0 balls )", "proposal"),
        (TALKED, "[propose] (1 books, 2 hats, 0 balls)\nThat is my last word.", "proposal"),
        (TALKED, "[propose] (1 books, 2 hats, 0 balls) [END] bye", "proposal"),
        (TALKED, "[propose] (1 books, 2 hats, 0 balls)\n[message] and thanks", "proposal"),
        (TALKED, "[propose] (0 books, 0 hats, 0 balls)", "proposal"),
        (("[message] hello",), "[propose] (3 books, 2 hats, 1 balls)", "proposal"),
    ],
)
def test_a_good_move_is_read(before: tuple[str, ...], text: str, kind: str) -> None:
    state = play(begin(), *before)
    seat = NEGOTIATION.to_move(state)
    assert seat is not None
    move = NEGOTIATION.parse(state, seat, text)
    assert isinstance(move, Event)
    assert move.kind == kind


@pytest.mark.parametrize(
    ("before", "text", "code"),
    [
        ((), "", "no_prefix"),
        ((), "hello", "no_prefix"),
        ((), "hello [message] there", "no_prefix"),
        ((), "[END] [message] hello", "no_prefix"),
        ((), "[message]", "empty"),
        ((), "[message]   [end]", "empty"),
        ((), "[message] hi [message] there", "two_prefixes"),
        ((), "[message] hi [propose] (1 books, 1 hats, 1 balls)", "two_prefixes"),
        ((), "[message] hi [PROPOSE] (1 books, 1 hats, 1 balls)", "two_prefixes"),
        ((), "[propose] (1 books, 1 hats, 1 balls)", "too_early"),
        (TALKED, "[propose] (1 books, 1 hats, 1 balls) [message] ok?", "two_prefixes"),
        (TALKED, "[propose] (-1 books, 1 hats, 1 balls)", "grammar"),
        (TALKED, "[propose] (1.5 books, 1 hats, 1 balls)", "grammar"),
        (TALKED, "[propose] (one books, 1 hats, 1 balls)", "grammar"),
        (TALKED, "[propose] (books 1, hats 1, balls 1)", "grammar"),
        (TALKED, "[propose] books 1 hats 2 balls 3", "grammar"),
        (TALKED, "[propose] (1 hats, 1 books, 1 balls)", "grammar"),
        (TALKED, "[propose] (1 books, 1 hats)", "grammar"),
        (TALKED, "[propose] 1 books, 1 hats, 1 balls", "grammar"),
        (TALKED, "[propose] (1 books, 1 hats, 1 balls) please", "grammar"),
        (TALKED, "[propose] I want (1 books, 1 hats, 1 balls)", "grammar"),
        (TALKED, "[propose]\n(1 books, 1 hats, 1 balls)", "grammar"),
        (TALKED, "[propose] (١ books, 1 hats, 1 balls)", "grammar"),
        (TALKED, f"[propose] ({'9' * 5000} books, 1 hats, 1 balls)", "grammar"),
        (TALKED, "[propose] (4 books, 1 hats, 1 balls)", "too_many"),
        (TALKED, "[propose] (1 books, 1 hats, 2 balls)", "too_many"),
        ((*TALKED, "[propose] (1 books, 1 hats, 1 balls)"), "[message] wait", "talking_is_over"),
    ],
)
def test_a_bad_move_is_refused_with_its_reason(before: tuple[str, ...], text: str, code: str) -> None:
    state = play(begin(), *before)
    seat = NEGOTIATION.to_move(state)
    assert seat is not None
    move = NEGOTIATION.parse(state, seat, text)
    assert isinstance(move, Violation)
    assert move.code == code
    assert move.reason


def test_proposals_that_add_up_are_a_deal() -> None:
    state = play(begin(), *TALKED, "[propose] (1 books, 2 hats, 0 balls)", "[propose] (2 books, 0 hats, 1 balls)")
    outcome = NEGOTIATION.outcome(state)
    assert outcome is not None
    assert (outcome.reason, outcome.winner, outcome.utilities) == ("deal", None, (7, 8))
    assert outcome.facts["agreed"] is True
    assert outcome.facts["allocations"] == [[1, 2, 0], [2, 0, 1]]


def test_the_seat_that_proposed_second_gets_its_own_side() -> None:
    state = play(
        begin(first=1), *TALKED, "[propose] (2 books, 0 hats, 1 balls)", "[propose] (1 books, 2 hats, 0 balls)"
    )
    outcome = NEGOTIATION.outcome(state)
    assert outcome is not None
    assert outcome.utilities == (7, 8)


@pytest.mark.parametrize("second", ["(2 books, 0 hats, 0 balls)", "(3 books, 0 hats, 1 balls)"])
def test_proposals_that_do_not_add_up_are_no_deal(second: str) -> None:
    state = play(begin(), *TALKED, "[propose] (1 books, 2 hats, 0 balls)", f"[propose] {second}")
    outcome = NEGOTIATION.outcome(state)
    assert outcome is not None
    assert (outcome.reason, outcome.utilities) == ("no deal", (0, 0))
    assert outcome.facts == {"agreed": False, "pareto_optimal": False}


def test_the_last_move_ends_the_match_even_with_a_proposal_pending() -> None:
    state = play(begin(limit=3), *TALKED, "[propose] (1 books, 2 hats, 0 balls)")
    outcome = NEGOTIATION.outcome(state)
    assert outcome is not None
    assert (outcome.reason, outcome.utilities) == ("move limit", (0, 0))


def test_a_second_proposal_as_the_last_move_still_counts() -> None:
    state = play(begin(limit=4), *TALKED, "[propose] (1 books, 2 hats, 0 balls)", "[propose] (2 books, 0 hats, 1 ball)")
    outcome = NEGOTIATION.outcome(state)
    assert outcome is not None
    assert outcome.reason == "deal"


@pytest.mark.parametrize(
    ("objective", "expected"),
    [("self", (7, 8)), ("coop", (15, 15)), ("comp", (-1, 1)), (0.5, (11, 11.5)), (-0.1, (6.2, 7.3))],
)
def test_the_objective_sets_how_much_a_partners_points_count(objective: object, expected: tuple[float, float]) -> None:
    deal = "[propose] (1 books, 2 hats, 0 balls)", "[propose] (2 books, 0 hats, 1 balls)"
    outcome = NEGOTIATION.outcome(play(begin(objective), *TALKED, *deal))
    assert outcome is not None
    assert outcome.utilities == expected


def test_a_hidden_proposal_is_shown_when_the_match_is_over() -> None:
    state = play(begin(), *TALKED, "[propose] (1 books, 2 hats, 0 balls)")
    hidden = NEGOTIATION.view(state, 1)
    assert hidden.transcript[-1].text is None
    assert hidden.may == ({"kind": "proposal"},)
    assert NEGOTIATION.view(state, 0).transcript[-1].text == "[propose] (1 books, 2 hats, 0 balls)"
    over = NEGOTIATION.view(play(state, "[propose] (2 books, 0 hats, 1 balls)"), 1)
    assert over.transcript[2].text == "[propose] (1 books, 2 hats, 0 balls)"
    assert over.facts["split"] == {
        "you": {"book": 2, "hat": 0, "ball": 1},
        "partner": {"book": 1, "hat": 2, "ball": 0},
    }


def test_an_offer_is_not_among_the_moves_before_anybody_spoke() -> None:
    assert NEGOTIATION.view(begin(), 0).may == ({"kind": "message"},)
    assert NEGOTIATION.view(begin(), 1).may == ()
    assert NEGOTIATION.view(play(begin(), "[message] hi"), 1).may == ({"kind": "message"}, {"kind": "proposal"})


# ---- Points and the frontier, against a second reckoning ---------------------


@given(st.integers(0, 10_000), st.sampled_from([Fraction(n, 4) for n in range(-4, 5)]))
def test_the_frontier_is_what_nothing_dominates(seed: int, lam: Fraction) -> None:
    context = generate_context(random.Random(seed))
    everything = {split: utilities(context, split, lam) for split in splits(context.counts)}
    by_definition = {
        split
        for split, (a, b) in everything.items()
        if all(not ((x > a and y >= b) or (x >= a and y > b)) for x, y in everything.values())
    }
    assert set(frontier(context, lam)) == by_definition
    assert {split for split in everything if is_pareto_optimal(context, split, lam)} == by_definition
    assert max(sum(scores(context, split)) for split in everything) == best_joint_score(context)


def test_every_full_split_is_optimal_under_strict_competition() -> None:
    assert frontier(CONTEXT, Fraction(-1)) == list(splits(CONTEXT.counts))


# ---- Config ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        ({"objective": "selfish"}, "objective: expected self, coop, comp or a number"),
        ({"objective": 1.5}, "1.5"),
        ({"objective": "nan"}, "nan"),
        ({"objective": True}, "True"),
        ({"limit": 0}, "limit: expected a whole number from 1 to 1000, got 0"),
        ({"limit": "many"}, "limit"),
        ({"limit": 2.5}, "limit"),
        ({"first": 2}, "first"),
        ({"colour": "red"}, "'colour'"),
        ({"counts": [3, 2, 1]}, "counts and values together"),
        ({"counts": [3, 2], "values": [[1, 3, 1], [2, 0, 4]]}, "three whole counts"),
        ({"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 5]]}, "values of seat 1 that make 10 points"),
        ({"counts": [3, 2, 0], "values": [[1, 3, 1], [2, 0, 4]]}, "1 to 10 of each item"),
        ({"counts": [3, 2, 1], "values": [[1, 3, True], [2, 0, 4]]}, "three whole"),
        ({"counts": "abc", "values": "ab"}, "three whole"),
    ],
)
def test_a_bad_config_names_the_field_and_what_came(raw: dict[str, object], names: str) -> None:
    with pytest.raises(Invalid, match="expected") as caught:
        NEGOTIATION.config(raw)
    assert names in caught.value.message


@given(st.integers(), st.sampled_from(["self", "coop", "comp", 0, 0.25, -0.7, "0.5"]))
def test_a_resolved_config_leaves_nothing_to_chance(seed: int, objective: object) -> None:
    state = NEGOTIATION.initial(NEGOTIATION.config({"objective": objective}), random.Random(seed))
    again = NEGOTIATION.initial(NEGOTIATION.config(state.config.to_json()), random.Random(seed + 1))
    assert again == state


# ---- Contexts ----------------------------------------------------------------


@given(st.integers())
def test_generated_contexts_are_worth_talking_about(seed: int) -> None:
    context = generate_context(random.Random(seed))
    assert 5 <= sum(context.counts) <= 7
    assert min(context.counts) >= 1
    for values in context.values:
        assert sum(count * value for count, value in zip(context.counts, values, strict=True)) == 10
    wanted = list(zip(*context.values, strict=True))
    assert all(a or b for a, b in wanted)
    assert any(a and b for a, b in wanted)


def test_the_generator_reaches_every_table_size_and_both_ends() -> None:
    rng = random.Random(1)
    drawn = [generate_context(rng) for _ in range(3000)]
    assert {sum(context.counts) for context in drawn} == {5, 6, 7}
    assert {value for context in drawn for row in context.values for value in row} >= set(range(11))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0 1 1 3 3\n1 1 1 0 3\n", "line 2: expected six whole numbers"),
        ("1 0 1 1 3 3\n1 1 1 0 3 x\n", "line 2: expected six whole numbers"),
        ("1 0 1 1 3 3\n1 1 1 0 3 -3\n", "line 2"),
        ("1 0 1 1 3 3\n1 1 2 0 3 3\n", "line 2: expected the counts of line 1, 1 1 3, got 1 2 3"),
        ("1 0 1 1 3 3\n1 1 1 0 3 4\n", "line 2: expected values of seat 1 that make 10 points over all items, got 13"),
        ("1 0 1 1 3 3\n1 1 1 0 3 3\n1 0 1 1 3 3\n", "line 3: expected a second line for seat 1"),
        ("\n\n", "empty file"),
        ("0 5 5 2 1 0\n0 5 5 2 1 0\n", "line 2: expected 1 to 10 of each item"),
    ],
)
def test_a_broken_contexts_file_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_contexts(text.splitlines(), "my.txt")
    assert message in caught.value.message
    assert caught.value.message.startswith("my.txt")


def test_a_contexts_file_is_read_with_seat_0_on_the_first_line() -> None:
    assert read_contexts(["3 1 2 3 1 1", "3 2 2 0 1 4"]) == [CONTEXT]


@pytest.mark.skipif(not SELFPLAY.exists(), reason="the published contexts file is not beside the project")
def test_the_published_contexts_all_load_and_have_the_published_headroom() -> None:
    with SELFPLAY.open() as lines:
        contexts = read_contexts(lines)
    assert len(contexts) == 4086
    assert contexts[-1] == Context((2, 1, 4), ((1, 4, 1), (4, 2, 0)))
    best = [best_joint_score(context) for context in contexts]
    assert sum(best) / len(best) == pytest.approx(15.01, abs=0.005)
    shares = [len(frontier(context)) / len(list(splits(context.counts))) for context in contexts]
    assert sum(shares) / len(shares) == pytest.approx(0.239, abs=0.0005)


# ---- Whatever is typed ---------------------------------------------------------

TEXTS = st.one_of(
    st.text(max_size=60),
    st.builds("[message] {}".format, st.text(max_size=30)),
    st.builds("[propose] ({} books, {} hats, {} balls)".format, *[st.integers(-1, 4)] * 3),
)


@given(st.lists(TEXTS, max_size=25), st.integers(1, 12), st.sampled_from(["self", "coop", "comp", 0.3]))
def test_no_sequence_of_texts_breaks_the_game(texts: list[str], limit: int, objective: object) -> None:
    state = begin(objective, limit=limit)
    for text in texts:
        seat = NEGOTIATION.to_move(state)
        if seat is None:
            break
        assert NEGOTIATION.outcome(state) is None
        move = NEGOTIATION.parse(state, seat, text)
        if isinstance(move, Event):
            state = NEGOTIATION.apply(state, move)
    outcome = NEGOTIATION.outcome(state)
    if outcome is not None:
        lam = float(state.config.lam)
        highest = max(a + lam * b for a, b in (scores(CONTEXT, split) for split in splits(CONTEXT.counts)))
        assert outcome.utilities[0] <= highest + 1e-9
        if outcome.reason == "deal":
            assert sum(outcome.facts["scores"]) <= best_joint_score(CONTEXT)


def test_every_pair_of_offers_scores_what_the_context_says() -> None:
    for split in splits(CONTEXT.counts):
        offers = ["[propose] ({} books, {} hats, {} balls)".format(*side) for side in split]
        outcome = NEGOTIATION.outcome(play(begin(), *TALKED, *offers))
        assert outcome is not None
        expected = tuple(
            sum(v * n for v, n in zip(values, side, strict=True))
            for values, side in zip(CONTEXT.values, split, strict=True)
        )
        assert outcome.utilities == expected
    assert len(list(splits(CONTEXT.counts))) == len(list(product(range(4), range(3), range(2))))
