"""Models side by side: intervals, tests and figures of what was said, against SciPy and plain resampling."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from app.analysis.bootstrap import FEW_PEOPLE, FEW_SEEDS, SAME_IN_ALL, wilson
from app.analysis.side_by_side.figures import (
    MCNEMAR,
    RESAMPLING,
    PlayerFigures,
    exact_mcnemar,
    figures_in,
    resampled_p,
)
from app.analysis.side_by_side.language import expected_words, language_figures
from app.analysis.side_by_side.settings import (
    CROSS_PLAY,
    PERSON,
    SELF_PLAY,
    WITH_PEOPLE,
    SettingMatches,
    SpokenMatch,
)
from app.games import GAMES, metrics_of
from app.games.base import Event
from app.games.match_table import FinishedMatch, of_rows
from app.games.talk import MESSAGES, Talk, words_of

SEATS = ("", "")
RNG_SEED = 5


def match(
    players: tuple[str, str], scores: tuple[float, float] = (0, 0), unit: int = 0, **fields: object
) -> FinishedMatch:
    agreed = sum(scores) > 0
    return FinishedMatch(scores, players, "deal" if agreed else "no deal", 6, agreed=agreed, pair=unit, **fields)  # type: ignore[arg-type]


def played(setting: str, rows: Sequence[FinishedMatch], material: Sequence[int] | None = None) -> SettingMatches:
    number = len(rows)
    table = of_rows(rows)
    refused = np.array([(row.violations, 0) for row in rows], np.float64)
    table = replace(table, joint_share=table.utility.sum(1) / 16, seat_violations=refused)
    of = [row.pair for row in rows] if material is None else material
    return SettingMatches(setting, table, np.array(of), [SpokenMatch(str(place), {}) for place in range(number)], False)


def compared(setting: str, rows: Sequence[FinishedMatch], *models: str) -> dict[str, PlayerFigures]:
    found = figures_in(
        played(setting, rows), models, models[0], metrics_of("negotiation"), GAMES["negotiation"].roles, 0
    )
    return {each.player: each for each in found}


def self_play(model: str, seeds: Sequence[int], agreed: Sequence[bool]) -> list[FinishedMatch]:
    return [match((model, model), (6, 5) if deal else (0, 0), seed) for seed, deal in zip(seeds, agreed, strict=True)]


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (3, 9), (9, 3), (40, 41), (600, 710), (7_000, 7_400)])
def test_mcnemars_exact_test_is_scipys_binomial_test(first: int, second: int) -> None:
    number = first + second
    expected = stats.binomtest(first, number, 0.5).pvalue if number else 1.0
    assert exact_mcnemar(first, second) == pytest.approx(expected, rel=1e-9)


def test_shares_in_self_play_are_paired_by_seed_and_tested_exactly() -> None:
    rng = np.random.default_rng(RNG_SEED)
    base, model = rng.random(60) < 0.4, rng.random(60) < 0.7
    rows = [*self_play("base", range(60), base), *self_play("model", range(60), model)]
    found = compared(SELF_PLAY, rows, "base", "model")["model"].against_base["agreement_rate"]
    assert (found.test, found.pairs) == (MCNEMAR, 60)
    alone = int((model & ~base).sum()), int((base & ~model).sum())
    assert found.p == pytest.approx(stats.binomtest(alone[0], sum(alone), 0.5).pvalue)
    assert (found.value, found.base) == (pytest.approx(model.mean()), pytest.approx(base.mean()))
    assert found.difference.value == pytest.approx(model.mean() - base.mean())
    assert found.ratio.value == pytest.approx(model.mean() / base.mean())


def test_shares_of_other_seeds_have_no_pairs_and_no_exact_test() -> None:
    rng = np.random.default_rng(RNG_SEED)
    rows = [
        *self_play("base", range(60), rng.random(60) < 0.4),
        *self_play("model", range(60, 120), rng.random(60) < 0.7),
    ]
    found = compared(SELF_PLAY, rows, "base", "model")["model"].against_base["agreement_rate"]
    assert (found.test, found.pairs) == (RESAMPLING, 0)


def with_people(model: str, scores: Sequence[float], people: Sequence[int]) -> list[FinishedMatch]:
    return [
        match((model, "people") if place % 2 else ("people", model), (score, 3) if place % 2 else (3, score), person)
        for place, (score, person) in enumerate(zip(scores, people, strict=True))
    ]


def test_people_are_resampled_by_person_as_plain_resampling_does() -> None:
    rng = np.random.default_rng(RNG_SEED)
    people = np.repeat(np.arange(40), 5)
    liked = rng.normal(6, 2, 40)[people]  # whoever is generous is so in all matches
    scores = liked + rng.normal(0, 0.5, 200)
    found = compared(WITH_PEOPLE, with_people("model", scores, people), "model")["model"]
    figure = found.columns["score_mean"]
    assert (found.matches, found.units, figure.n) == (200, 40, 200)
    assert figure.value == pytest.approx(scores.mean())
    means = scores.reshape(40, 5).mean(1)
    plain = np.random.default_rng(99)
    drawn = [means[plain.integers(40, size=40)].mean() for _ in range(4_000)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert figure.low == pytest.approx(low, abs=0.12)
    assert figure.high == pytest.approx(high, abs=0.12)
    alone = [scores[plain.integers(200, size=200)].mean() for _ in range(4_000)]
    assert figure.high - figure.low > 1.6 * np.ptp(np.quantile(alone, [0.025, 0.975]))  # type: ignore[operator]


def test_ratios_and_differences_draw_a_person_with_all_models_that_they_met() -> None:
    rng = np.random.default_rng(RNG_SEED)
    people = np.arange(60)
    liked = rng.normal(6, 2, 60)
    base, model = liked + rng.normal(0, 0.3, 60), liked + 0.4 + rng.normal(0, 0.3, 60)
    rows = [*with_people("base", base, people), *with_people("model", model, people)]
    found = compared(WITH_PEOPLE, rows, "base", "model")["model"].against_base["score_mean"]
    plain = np.random.default_rng(99)
    picks = plain.integers(60, size=(4_000, 60))
    low, high = np.quantile((model - base)[picks].mean(1), [0.025, 0.975])
    assert found.difference.low == pytest.approx(low, abs=0.03)
    assert found.difference.high == pytest.approx(high, abs=0.03)
    ratios = model[picks].mean(1) / base[picks].mean(1)
    assert (found.ratio.low, found.ratio.high) == (
        pytest.approx(np.quantile(ratios, 0.025), abs=0.01),
        pytest.approx(np.quantile(ratios, 0.975), abs=0.01),
    )
    assert (found.test, found.pairs) == (RESAMPLING, 60)
    assert found.p is not None
    assert (
        found.p < 0.01 < 0.1 < stats.ttest_ind(model, base).pvalue
    )  # unpaired, it is little among so different people


def test_few_people_have_no_interval_however_many_matches_they_played() -> None:
    rows = with_people("model", np.arange(40) / 10, np.arange(40) % 9)
    found = compared(WITH_PEOPLE, rows, "model")["model"]
    assert found.units == 9
    for name in ("score_mean", "agreed_score_mean", "messages_mean"):
        assert (found.columns[name].low, found.columns[name].no_interval) == (None, FEW_PEOPLE)


def test_a_share_that_all_people_have_is_as_sure_as_people_are_many() -> None:
    people = np.arange(60) % 12
    found = compared(WITH_PEOPLE, with_people("model", np.full(60, 5.0), people), "model")["model"]
    agreement = found.columns["agreement_rate"]
    assert (agreement.value, agreement.low) == (1, pytest.approx(wilson(1, 12)[0]))


@pytest.mark.parametrize(("model", "low", "high"), [(5.0, -0.243, 0.243), (0.0, -1.0, -0.657)])
def test_shares_that_never_vary_differ_as_surely_as_people_are_many(model: float, low: float, high: float) -> None:
    people = np.arange(12)
    rows = [*with_people("base", np.full(12, 5.0), people), *with_people("model", np.full(12, 5.0), people + 12)]
    if not model:
        rows[12:] = [match(row.players, unit=row.pair or 0) for row in rows[12:]]
    found = compared(WITH_PEOPLE, rows, "base", "model")["model"].against_base["agreement_rate"]
    assert (found.difference.low, found.difference.high) == (
        pytest.approx(low, abs=1e-3),
        pytest.approx(high, abs=1e-3),
    )
    assert (found.ratio.low, found.ratio.no_interval, found.test) == (None, SAME_IN_ALL, None)


def test_swapped_seats_are_drawn_by_seed_and_not_tested_as_if_each_were_by_itself() -> None:
    rng = np.random.default_rng(RNG_SEED)
    rows = []
    for name, chance in (("base", 0.4), ("model", 0.8)):
        for seed in range(30):
            sides = (name, "rival"), ("rival", name)
            rows += [match(players, (6, 5) if rng.random() < chance else (0, 0), seed) for players in sides]
    found = compared(CROSS_PLAY, rows, "base", "model")["model"]
    assert (found.matches, found.units) == (60, 30)
    agreement = found.against_base["agreement_rate"]
    assert (agreement.test, agreement.pairs) == (RESAMPLING, 30)
    assert found.columns["agreement_rate"].no_interval is None
    few = [row for row in rows if row.pair is not None and row.pair < 9]
    assert compared(CROSS_PLAY, few, "base", "model")["model"].columns["score_mean"].no_interval == FEW_SEEDS


def test_in_cross_play_models_are_compared_against_partners_that_both_have_met() -> None:
    rows = [match(("base", "rival"), (2, 5), seed) for seed in range(20)]
    rows += [match(("model", "rival"), (4, 5), seed) for seed in range(20)]
    rows += [match(("model", "stranger"), (10, 1), seed) for seed in range(20)]
    found = compared(CROSS_PLAY, rows, "base", "model")["model"]
    assert found.columns["score_mean"].value == 7
    against = found.against_base["score_mean"]
    assert (against.value, against.base, against.difference.value, against.ratio.value) == (4, 2, 2, 2)
    strangers = [row for row in rows if "rival" not in row.players or "base" in row.players]
    assert compared(CROSS_PLAY, strangers, "base", "model")["model"].against_base == {}


def test_a_base_without_points_has_no_ratio() -> None:
    rows = [*self_play("base", range(20), [False] * 20), *self_play("model", range(20), [True] * 20)]
    ratio = compared(SELF_PLAY, rows, "base", "model")["model"].against_base["score_mean"].ratio
    assert (ratio.value, ratio.low) == (None, None)


def test_results_are_those_of_the_players_own_seats() -> None:
    rows = [
        FinishedMatch((1, -1), ("model", "people"), "attacker wins", 3, winner=0, pair=0),
        FinishedMatch((-1, 1), ("people", "model"), "defender wins", 3, winner=1, pair=1),
        FinishedMatch((1, -1), ("people", "model"), "attacker wins", 3, winner=0, pair=2),
        FinishedMatch((-1, 0), ("model", "people"), "attacker breaks the rules", 1, pair=3),
        FinishedMatch((0, 0), ("model", "people"), "tied game", 10, pair=4),
    ]
    found = figures_in(played(WITH_PEOPLE, rows), ("model",), "model", metrics_of("taboo"), GAMES["taboo"].roles, None)
    assert {each.role: each.results for each in found} == {
        "attacker": {"won": 1, "lost": 0, "attacker breaks the rules": 1, "tied game": 1},
        "defender": {"won": 1, "lost": 1},
    }


def test_resampled_p_agrees_with_a_t_test_on_many_numbers() -> None:
    rng = np.random.default_rng(RNG_SEED)
    numbers = rng.normal(0.2, 1, 150)
    drawn = numbers[rng.integers(150, size=(20_000, 150))].mean(1)
    assert resampled_p(drawn) == pytest.approx(stats.ttest_1samp(numbers, 0).pvalue, abs=0.01)
    assert resampled_p(-drawn) == resampled_p(drawn)
    assert resampled_p(np.zeros(1_000)) == 1


# ---- What was said ---------------------------------------------------------------


def test_expected_words_are_those_of_drawing_without_replacement() -> None:
    counts = [400, 300, 200, 90, *[5] * 60, *[1] * 40]
    total = sum(counts)
    expected = sum(1 - stats.hypergeom(total, count, 1_000).pmf(0) for count in counts)
    assert expected_words(counts) == pytest.approx(expected)
    assert expected_words([500, 499]) is None
    assert expected_words([999, 1]) == pytest.approx(2)


def test_words_are_told_apart_without_marks_and_case() -> None:
    assert words_of("I'd like THE book - it’s 2 hats!") == ["i'd", "like", "the", "book", "it's", "2", "hats"]


def test_language_is_of_the_moves_of_each_seat() -> None:
    talks = [Talk([["i", "want", "it", "all"], ["i", "want", "it"], ["i", "want", "it"]]), Talk([["no"]])]
    found = language_figures(("model", None), WITH_PEOPLE, PERSON, talks, np.array([0, 1]), np.array([0, 1]), MESSAGES)
    values = {name: figure.value for name, figure in found.columns.items()}
    assert values == {
        "vocabulary": None,
        "words_per_message_mean": 11 / 4,
        "repeated_message_rate": 1 / 4,
        "repeated_sequence_rate": 2 / 4,
    }
    assert (found.words, found.matches, found.columns["words_per_message_mean"].no_interval) == (11, 2, FEW_PEOPLE)


def test_the_interval_of_the_vocabulary_is_about_as_wide_as_it_varies() -> None:
    rng = np.random.default_rng(RNG_SEED)
    chances = 1 / np.arange(1, 401)
    words = [f"word{place}" for place in range(400)]

    def said() -> list[Talk]:
        return [Talk([list(rng.choice(words, 40, p=chances / chances.sum()))]) for _ in range(60)]

    each = np.arange(60)
    found = [
        language_figures(("model", None), WITH_PEOPLE, PERSON, said(), each, each, MESSAGES).columns["vocabulary"]
        for _ in range(60)
    ]
    spread = float(np.std([figure.value for figure in found]))
    widths = [(figure.high - figure.low) / 2 for figure in found]  # type: ignore[operator]
    assert 1.3 * spread < np.mean(widths) < 3.5 * spread
    whole = Counter(word for talk in said() for message in talk.messages for word in message)
    assert math.isclose(found[0].value or 0, expected_words(list(whole.values())) or 0, rel_tol=0.1)


def test_offers_are_what_a_negotiator_demands_for_itself() -> None:
    config = {"counts": [1, 2, 2], "values": [[10, 0, 0], [0, 3, 2]]}
    moves = [
        Event("message", 0, "[message] Hello! How are you?"),
        Event("message", 1, "[message] I would like both hats and both balls."),
        Event("message", 0, "[message] I want the book, you can have the rest."),
        Event("message", 1, "[message] Could I have the book and you take everything else?"),
        Event("proposal", 0, "[propose] (1 books, 0 hats, 0 balls)", {"allocation": [1, 0, 0]}),
        Event("proposal", 1, "[propose] (0 books, 2 hats, 1 balls)", {"allocation": [0, 2, 1]}),
    ]
    first, second = (GAMES["negotiation"].talk(config, moves, seat) for seat in (0, 1))
    assert (first.offers, first.offering, len(first.messages)) == ([10, 10], 1, 2)
    assert (second.offers, second.offering, len(second.messages)) == ([10, 0, 8], 2, 2)
    values = {each.name: each.part(second) for each in metrics_of("negotiation").language}
    assert values["first_offer_mean"] == (10, 1)
    assert values["concession_mean"] == (2, 1)
    assert values["offer_message_rate"] == (2, 2)


@pytest.mark.parametrize("objective", ["self", "coop", "comp", 0.5])
def test_the_share_of_the_best_joint_score_is_of_points_before_the_partners_count(objective: object) -> None:
    game = GAMES["negotiation"]
    config = {"counts": [1, 2, 2], "values": [[10, 0, 0], [0, 3, 2]], "objective": objective, "limit": 50, "first": 0}
    weight = float(game.partner_weight(config) or 0)
    utilities = 10 + weight * 6, 6 + weight * 10  # of a best of 20
    known = game.joint_share(config, utilities, None)
    assert (known is None) == (objective == "comp")
    facts = {"scores": [10, 6]}
    assert game.joint_share(config, utilities, facts) == pytest.approx(0.8)
    assert known in (None, pytest.approx(0.8))
    assert game.joint_share(config, (0, 0), {}) == 0
