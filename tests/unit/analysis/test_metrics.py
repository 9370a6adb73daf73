"""The figures of finished matches, against arithmetic done by hand."""

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.analysis.bootstrap import Figure
from app.analysis.metrics import Metrics
from app.games.match_table import FinishedMatch, MatchTable, of_rows
from app.games.negotiation.points import is_pareto_optimal, scores, splits, utilities
from app.games.negotiation.rules import NEGOTIATION
from tests.figures import negotiation, taboo

AB, AA = ("a", "b"), ("a", "a")
#          utilities players reason  ply words tokens refused first_proposal winner agreed pareto unspoken
DEAL = FinishedMatch((7, 4), AB, "deal", 6, 30, 60, 0, 4, None, True, True, False)
GREEDY = FinishedMatch((0, 10), ("b", "a"), "deal", 5, 20, 40, 1, 2, None, True, True, True)
NO_DEAL = FinishedMatch((0, 0), AB, "no deal", 12, 50, 100, 0, 6, None, False, False)
ABORTED = FinishedMatch((0, 0), ("b", "a"), "aborted", 3, 12, None, 5, None, None, False, False)
EVEN = FinishedMatch((5, 5), AB, "deal", 5, 28, 50, 0, 3, None, True, False)
MEASURED = [
    {"named": 1, "grounded_0": 1, "grounded_1": 1, "first_grounded": 1, "second_grounded": 1, "misquoted": 0,
     "last_offer_agreed": 1, "last_offer_score": 6, "last_offer_pareto": 1},
    {"named": 1, "grounded_0": 0, "grounded_1": 1, "first_grounded": 1, "second_grounded": 0, "misquoted": 1,
     "last_offer_agreed": 1, "last_offer_score": 4.5, "last_offer_pareto": 0},
    {"named": 0, "grounded_0": 0, "first_grounded": 0, "last_offer_agreed": 0, "last_offer_score": 0},
    {"named": 0, "last_offer_agreed": 0, "last_offer_score": 0},
]  # fmt: skip
REFERENCES = {"random_score": 5, "demand_score": 6.5, "best_score": 7.25}
DEAL, GREEDY, NO_DEAL, ABORTED = (
    row._replace(measures={**REFERENCES, **measured})
    for row, measured in zip((DEAL, GREEDY, NO_DEAL, ABORTED), MEASURED, strict=True)
)
FIVE = [DEAL, GREEDY, NO_DEAL, ABORTED, EVEN]


def value(metrics: Metrics, name: str) -> float | None:
    return metrics.columns[name].value


@pytest.mark.parametrize(
    ("column", "by_hand"),
    [
        ("score_mean", 31 / 10),  # 7 + 4 + 0 + 10 + 0 + 0 + 0 + 0 + 5 + 5 over ten seats
        ("score_median", 2),  # 0 0 0 0 0 4 5 5 7 10: between the fifth and the sixth
        ("messages_mean", 6.2),  # (6 + 5 + 12 + 3 + 5) / 5
        ("tokens_mean", 62.5),  # (60 + 40 + 100 + 50) / 4: nobody counted those of the aborted match
        ("words_mean", 28),  # (30 + 20 + 50 + 12 + 28) / 5
        ("abort_rate", 0.2),
        ("agreement_rate", 0.6),
        ("agreed_score_mean", 31 / 6),  # 7 + 4 + 0 + 10 + 5 + 5 over six seats
        ("agreed_score_median", 5),  # 0 4 5 5 7 10
        ("agreed_messages_mean", 16 / 3),  # (6 + 5 + 5) / 3
        ("agreed_tokens_mean", 50),  # (60 + 40 + 50) / 3
        ("agreed_words_mean", 26),  # (30 + 20 + 28) / 3
        ("pareto_rate", 0.4),  # two of five matches
        ("agreed_pareto_rate", 2 / 3),  # two of three deals
        ("violations_mean", 1.2),  # (1 + 5) / 5
        ("first_proposal_mean", 3.75),  # (4 + 2 + 6 + 3) / 4
        ("unspoken_rate", 0.5),  # of two deals, one; the third was never read
        ("named_rate", 0.5),  # of four matches that were measured, two
        ("grounded_rate", 3 / 5),  # of five proposals, three
        ("first_grounded_rate", 2 / 3),
        ("second_grounded_rate", 0.5),
        ("misquoted_rate", 0.5),
        ("last_offer_agreement_rate", 0.5),
        ("last_offer_score_mean", 10.5 / 4),
        ("last_offer_pareto_rate", 0.5),
        ("random_score_mean", 5),
        ("demand_score_mean", 6.5),
        ("best_score_mean", 7.25),
        ("above_share", 0.5),  # 7 4 10 5 5 are above 3.1
        ("above_score_mean", 6.2),  # 31 / 5
        ("above_score_median", 5),
        ("above_messages_mean", 5.4),  # (2·6 + 5 + 2·5) / 5: both seats of two matches, one of the third
        ("above_tokens_mean", 52),  # (2·60 + 40 + 2·50) / 5
        ("above_words_mean", 27.2),  # (2·30 + 20 + 2·28) / 5
        ("above_abort_rate", 0),
        ("above_agreement_rate", 1),
        ("above_agreed_score_mean", 6.2),
        ("above_agreed_score_median", 5),
        ("above_agreed_messages_mean", 5.4),
        ("above_agreed_tokens_mean", 52),
        ("above_agreed_words_mean", 27.2),
        ("above_pareto_rate", 0.6),  # (2 + 1) / 5
        ("above_agreed_pareto_rate", 0.6),
        ("above_grounded_rate", 1),  # both seats of the first match, the second one of the other
    ],
)
def test_a_column_is_what_arithmetic_by_hand_gives(column: str, by_hand: float) -> None:
    assert value(negotiation(of_rows(FIVE), 0), column) == pytest.approx(by_hand)


def test_every_column_has_an_interval_around_its_value() -> None:
    for figure in negotiation(of_rows(4 * FIVE), 0).columns.values():
        assert figure.value is not None
        assert figure.low is not None
        assert figure.high is not None
        assert figure.low <= figure.value <= figure.high


def test_each_of_two_models_has_what_it_got_in_either_seat() -> None:
    first, second = negotiation(of_rows(FIVE), 0).parts
    assert (first.player, first.role, first.matches) == ("a", None, 5)
    assert first.columns["score_mean"].value == pytest.approx(22 / 5)  # 7 + 10 + 0 + 0 + 5
    assert first.columns["score_median"].value == 5
    assert first.columns["agreed_score_mean"].value == pytest.approx(22 / 3)
    assert second.columns["score_mean"].value == pytest.approx(9 / 5)  # 4 + 0 + 0 + 0 + 5
    assert second.columns["agreed_score_median"].value == 4  # 0 4 5


def test_a_model_against_itself_is_not_shown_apart() -> None:
    assert negotiation(of_rows([DEAL._replace(players=AA)]), 0).parts == []


def test_outcomes_are_counted_with_the_commonest_first() -> None:
    outcomes = negotiation(of_rows(FIVE), 0).outcomes
    assert [(each.reason, each.matches) for each in outcomes] == [("deal", 3), ("aborted", 1), ("no deal", 1)]
    assert outcomes[0].share.value == pytest.approx(0.6)


def test_no_matches_have_no_figures() -> None:
    nothing = Metrics({}, (), ())
    assert negotiation(of_rows([]), 0) == nothing
    assert taboo(of_rows([])) == nothing


def test_one_match_has_figures_without_intervals() -> None:
    columns = negotiation(of_rows([DEAL]), 0).columns
    few = {"n": 1, "no_interval": "fewer than 10 matches"}
    assert columns["score_mean"] == Figure(5.5, **few)
    assert columns["above_score_mean"] == Figure(7, **few)
    assert columns["above_share"][:1] == (0.5,)
    assert columns["above_share"].n == 1


def test_every_figure_says_of_how_many_matches_it_is() -> None:
    columns = negotiation(of_rows(FIVE), 0).columns
    ns = {name: columns[name].n for name in columns}
    wanted = {
        "score_mean": 5, "agreed_score_mean": 3, "agreed_pareto_rate": 3, "tokens_mean": 4, "first_proposal_mean": 4,
        "above_score_mean": 3, "above_share": 5, "abort_rate": 5,
    }  # fmt: skip
    assert {name: ns[name] for name in wanted} == wanted


def test_shares_of_a_few_matches_have_an_interval_and_means_the_reason_why_not() -> None:
    columns = negotiation(of_rows(FIVE), 0).columns
    agreed = columns["agreement_rate"]
    assert agreed == Figure(0.6, pytest.approx(0.2307, abs=5e-5), pytest.approx(0.8824, abs=5e-5), 5)  # Wilson, 3 of 5
    assert columns["score_mean"] == Figure(3.1, n=5, no_interval="fewer than 10 matches")
    of_twelve = negotiation(of_rows([*FIVE, *FIVE, NO_DEAL, NO_DEAL]), 0).columns
    assert of_twelve["score_mean"].no_interval is None
    assert of_twelve["agreed_score_mean"] == Figure(31 / 6, n=6, no_interval="fewer than 10 matches")


def test_an_empty_subset_has_no_figures() -> None:
    metrics = negotiation(of_rows([NO_DEAL, ABORTED]), 0)
    assert metrics.columns["above_share"][:2] == (0, 0)
    for name in ("above_score_mean", "above_score_median", "above_messages_mean", "agreed_pareto_rate"):
        assert metrics.columns[name] == Figure(None)


def test_tokens_are_missing_where_no_server_counts_them() -> None:
    metrics = negotiation(of_rows([row._replace(tokens=None) for row in FIVE]), 0)
    assert metrics.columns["tokens_mean"] == Figure(None)
    assert value(metrics, "words_mean") == 28


# ---- Above the average ------------------------------------------------------------


def test_strict_competition_keeps_both_seats_of_a_deal_of_nothing_to_nothing() -> None:
    rows = [
        FinishedMatch((3, -3), AA, "deal", 4, agreed=True),  # 3 is above 0
        FinishedMatch((0, 0), AA, "deal", 6, agreed=True),  # both kept
        FinishedMatch((0, 0), AA, "no deal", 50, agreed=False),  # neither
        FinishedMatch((0, 0), AA, "aborted", 2, agreed=False),  # neither
    ]
    columns = negotiation(of_rows(rows), -1).columns
    assert columns["score_mean"].value == 0
    assert columns["above_share"].value == pytest.approx(3 / 8)
    assert columns["above_score_mean"].value == 1  # (3 + 0 + 0) / 3
    assert columns["above_messages_mean"].value == pytest.approx(16 / 3)  # (4 + 2·6) / 3


objectives = st.sampled_from(["self", "coop", "comp", 0.5, -0.5, 0.1, -0.3, 0.37])


@given(objective=objectives, seed=st.integers(0, 10_000), number=st.integers(1, 12))
def test_figures_agree_with_the_rules_of_the_game(objective: str | float, seed: int, number: int) -> None:
    rng = random.Random(seed)
    lam = NEGOTIATION.config({"objective": objective}).lam
    exact: list[tuple[tuple[Fraction, Fraction], bool, bool]] = []
    for _ in range(number):
        context = NEGOTIATION.initial(NEGOTIATION.config({}), rng).context
        split = rng.choice(list(splits(context.counts)))
        if rng.random() < 0.3:
            exact.append(((Fraction(0), Fraction(0)), False, False))
            continue
        first, second = scores(context, split)
        assert utilities(context, split, lam) == (first + lam * second, second + lam * first)
        exact.append((utilities(context, split, lam), True, is_pareto_optimal(context, split, lam)))
    rows = [
        FinishedMatch((float(u), float(v)), AA, "deal" if agreed else "no deal", 5, agreed=agreed, pareto=pareto)
        for (u, v), agreed, pareto in exact
    ]
    columns = negotiation(of_rows(rows), float(lam)).columns
    every = [each for pair, _, _ in exact for each in pair]
    mean = sum(every) / len(every)
    valid = [each for pair, agreed, _ in exact for each in pair if agreed]
    kept = [
        each for pair, agreed, _ in exact for each in pair if each > mean or (lam == -1 and agreed and pair == (0, 0))
    ]
    assert columns["score_mean"].value == pytest.approx(float(mean), abs=1e-9)
    assert columns["pareto_rate"].value == pytest.approx(sum(pareto for _, _, pareto in exact) / number)
    assert columns["above_share"].value == pytest.approx(len(kept) / len(every))
    for name, chosen in (("agreed_score", valid), ("above_score", kept)):
        if chosen:
            assert columns[f"{name}_mean"].value == pytest.approx(float(sum(chosen) / len(chosen)), abs=1e-9)
            assert columns[f"{name}_median"].value == pytest.approx(float(np.median([float(x) for x in chosen])))
        else:
            assert columns[f"{name}_mean"] == Figure(None)


# ---- Taboo ------------------------------------------------------------------------


def games() -> MatchTable:
    """Six games: a attacks in four of them."""
    return of_rows(
        [
            FinishedMatch((1, -1), AB, "attacker wins", 4, 10, winner=0),
            FinishedMatch((1, -1), AB, "attacker wins", 2, 12, winner=0),
            FinishedMatch((-1, 1), AB, "defender wins", 6, 20, winner=1),
            FinishedMatch((-1, 0), AB, "attacker breaks the rules", 3, 18),
            FinishedMatch((0, 0), ("b", "a"), "tied game", 10, 60),
            FinishedMatch((0, 0), ("b", "a"), "aborted", 5, 30, violations=6),
        ]
    )


@pytest.mark.parametrize(
    ("column", "by_hand"),
    [
        ("attacker_wins_rate", 2 / 6),
        ("defender_wins_rate", 1 / 6),
        ("rules_broken_rate", 1 / 6),
        ("tied_rate", 1 / 6),
        ("abort_rate", 1 / 6),
        ("decided_attacker_wins_rate", 2 / 3),
        ("attacker_score_mean", 0),  # (1 + 1 - 1 - 1) / 6
        ("defender_score_mean", -1 / 6),  # (-1 - 1 + 1) / 6
        ("turns_mean", 16 / 6),  # (2 + 1 + 3 + 2 + 5 + 3) / 6: the attacker's moves
        ("messages_mean", 5),  # (4 + 2 + 6 + 3 + 10 + 5) / 6
        ("words_mean", 25),
        ("violations_mean", 1),
    ],
)
def test_a_column_of_taboo_is_what_arithmetic_by_hand_gives(column: str, by_hand: float) -> None:
    assert value(taboo(games()), column) == pytest.approx(by_hand)


def test_a_model_is_shown_in_each_role_of_taboo_that_it_had() -> None:
    parts = {(part.player, part.role): part for part in taboo(games()).parts}
    assert {key: part.matches for key, part in parts.items()} == {
        ("a", "attacker"): 4,
        ("a", "defender"): 2,
        ("b", "attacker"): 2,
        ("b", "defender"): 4,
    }
    assert parts["a", "attacker"].columns["win_rate"].value == 0.5
    assert parts["a", "attacker"].columns["loss_rate"].value == 0.25
    assert parts["b", "defender"].columns["win_rate"].value == 0.25
    assert parts["b", "defender"].columns["score_mean"].value == pytest.approx(-1 / 4)
    assert parts["a", "defender"].columns["win_rate"].value == 0
