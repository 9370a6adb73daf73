"""Models side by side as CSV: figures, ratios, tests, results, what was said, and offers; one table each."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.analysis.side_by_side import SideBySide
from app.analysis.side_by_side.figures import LOST, MCNEMAR, RESAMPLING, WON
from app.analysis.side_by_side.language import GROUPS, VOCABULARY, WORDS_DRAWN
from app.analysis.side_by_side.settings import OF_MODELS, SETTINGS, UNITS
from app.analysis.tables import figure_columns, flat_figures
from app.core.csv_tables import Column
from app.games import GAMES, metrics_of
from app.games.metrics import Metric

Row = Mapping[str, Any]  # a row's values by column; a missing column is empty


@dataclass(frozen=True, slots=True)
class SideBySideTable:
    """A table under its codebook name: its `columns` for some games, or all, and its rows for a comparison."""

    name: str
    columns: Callable[[Sequence[str] | None], Sequence[Column]]
    rows: Callable[[SideBySide], Iterator[Row]]


def rows_of(table: SideBySideTable, found: Iterable[SideBySide]) -> Iterator[Row]:
    """The rows of a table of several games and weights."""
    for each in found:
        yield from table.rows(each)


def _column(name: str, type_: str, meaning: str, values: str) -> Column:
    return Column(name, type_, meaning, values, lambda row: row.get(name))


_KIND = (
    _column("game", "text", "What was played.", " | ".join(GAMES)),
    _column("lambda", "number", "The weight of the partner's points in a score.",
            "from -1 to 1; empty in a game without"),
    _column("iteration", "integer", "The iteration of the campaign that the model is of.",
            "from 0, which is the base; empty outside of a campaign"),
)  # fmt: skip
_PLAYER = _column("player", "text", "The player: a model of the registry, or people, who are one player.", "a name")
_SETTING = _column(
    "setting", "text", "Who has the other seat: the model itself, another model, or a person; or that people played"
    " each other, here or in dialogues that were imported.", " | ".join(SETTINGS),
)  # fmt: skip
_ROLE = _column("role", "text", "The role of the player.", "as the game names it; empty where both seats have one")
_MATCHES = _column("matches", "integer", "Matches of the player that are over and in the row.", "from 1")
_UNITS = (
    _column("unit", "text", "What was drawn independently, and is resampled.",
            " | ".join(dict.fromkeys(UNITS.values()))),
    _column("units", "integer", "How many of these there are.", "from 1"),
)  # fmt: skip
_ABOUT = (*_KIND, _PLAYER, _SETTING, _ROLE, _MATCHES, *_UNITS)
_ENDS = ("low", "Lower"), ("high", "Upper")


def _metrics(games: Sequence[str] | None) -> dict[str, Metric]:
    return {each.name: each for game in games or GAMES for each in metrics_of(game).side_by_side}


def _with_ends(name: str, meaning: str, values: str) -> Iterator[Column]:
    yield _column(name, "number", f"{meaning}.", values)
    for end, word in _ENDS:
        yield _column(f"{name}_{end}", "number", f"{word} end of the 95 % interval of {name}.", "empty without one")


def _game_and_player(found: SideBySide, player: str) -> dict[str, Any]:
    return {
        "game": found.game,
        "lambda": found.partner_weight,
        "iteration": found.choice.iterations.get(player),
        "player": player,
    }


# ---- Figures -----------------------------------------------------------------------


def _figure_columns(games: Sequence[str] | None) -> Sequence[Column]:
    return *_ABOUT, *figure_columns(_metrics(games))


def _figure_rows(found: SideBySide) -> Iterator[Row]:
    for each in found.players:
        yield {**_about_player(found, each), **flat_figures(each.columns)}


def _about_player(found: SideBySide, each: Any) -> dict[str, Any]:
    return {
        **_game_and_player(found, each.player),
        "setting": each.setting,
        "role": each.role,
        "matches": each.matches,
        "unit": UNITS[each.setting],
        "units": each.units,
    }


# ---- Ratios to the base --------------------------------------------------------------


def _ratio_columns(_games: Sequence[str] | None) -> Sequence[Column]:
    return (
        *_KIND,
        _PLAYER,
        _column("base", "text", "The model that ratios are to.", "a name"),
        _ROLE,
        _column("figure", "text", "Which figure of a model it is: the one that says most in the game.", "a column"),
        *(column for setting in OF_MODELS for column in _of_setting(setting)),
    )


def _of_setting(setting: str) -> Iterator[Column]:
    name = setting.replace("-", "_").replace(" ", "_")
    yield from _with_ends(name, f"The figure {_in(setting)}", "empty where it has no matches there")
    yield from _with_ends(
        f"{name}_ratio", f"How many times the base's it is {_in(setting)}",
        "above 0; empty where the base's is not, and for the base",
    )  # fmt: skip
    yield _column(f"{name}_matches", "integer", f"Matches of the player {_in(setting)}.", "from 1")


def _in(setting: str) -> str:
    return setting if setting.startswith("with") else f"in {setting}"


def _ratio_rows(found: SideBySide) -> Iterator[Row]:
    metric = found.defined.model_headline
    for model in found.choice.models:
        for role in found.roles:
            row: dict[str, Any] = {}
            for setting in OF_MODELS:
                each, name = found.find(model, setting, role), setting.replace("-", "_").replace(" ", "_")
                if each is None:
                    continue
                figure = each.columns[metric.name]
                row |= {name: figure.value, f"{name}_low": figure.low, f"{name}_high": figure.high}
                row[f"{name}_matches"] = each.matches
                if metric.name in each.against_base:
                    ratio = each.against_base[metric.name].ratio
                    row |= {f"{name}_ratio": ratio.value, f"{name}_ratio_low": ratio.low}
                    row[f"{name}_ratio_high"] = ratio.high
            if row:
                yield {
                    **_game_and_player(found, model),
                    "base": found.choice.base,
                    "role": role,
                    "figure": metric.name,
                    **row,
                }


# ---- Tests ---------------------------------------------------------------------------


def _test_columns(games: Sequence[str] | None) -> Sequence[Column]:
    return (
        *_KIND,
        _PLAYER,
        _column("base", "text", "The model that it is compared with.", "a name"),
        _SETTING,
        _ROLE,
        _column("figure", "text", "What is compared: a column of the table side_by_side.", " | ".join(_metrics(games))),
        _column("value", "number", "The figure of the player; in cross-play against partners that both have met.",
                "empty where there is nothing to take it of"),
        _column("base_value", "number", "The same of the base.", "empty where there is nothing to take it of"),
        *_with_ends("difference", "The player's minus the base's", "any; empty where one is missing"),
        *_with_ends("ratio", "The player's divided by the base's", "empty where the base's is not above 0"),
        _column("test", "text", "The test of no difference: McNemar's exact one of paired shares, or by resampling.",
                f"{MCNEMAR} | {RESAMPLING}; empty where there is too little"),
        _column("pairs", "integer", "Pairs of the exact test, else units that both have.", "from 0"),
        _column("p", "number", "Two-sided p of the test, not corrected for the number of tests.",
                "from 0 to 1; empty without a test"),
    )  # fmt: skip


def _test_rows(found: SideBySide) -> Iterator[Row]:
    for each in found.players:
        about = {
            **_game_and_player(found, each.player),
            "base": found.choice.base,
            "setting": each.setting,
            "role": each.role,
        }
        for name, compared in each.against_base.items():
            difference, ratio = compared.difference, compared.ratio
            yield {
                **about,
                "figure": name,
                "value": compared.value,
                "base_value": compared.base,
                "difference": difference.value,
                "difference_low": difference.low,
                "difference_high": difference.high,
                "ratio": ratio.value,
                "ratio_low": ratio.low,
                "ratio_high": ratio.high,
                "test": compared.test,
                "pairs": compared.pairs,
                "p": compared.p,
            }


# ---- Results -------------------------------------------------------------------------


def _result_columns(_games: Sequence[str] | None) -> Sequence[Column]:
    return (
        *_KIND,
        _PLAYER,
        _SETTING,
        _ROLE,
        _column("result", "text", "How the player's matches ended: won or lost, else the reason of the outcome.",
                f"{WON} | {LOST} | a reason, as the game names it"),
        _column("seats", "integer", "How many of its seats ended so; a match with itself has two.", "from 0"),
        _column("share", "number", "Their share of all of its seats.", "from 0 to 1"),
    )  # fmt: skip


def _result_rows(found: SideBySide) -> Iterator[Row]:
    for each in found.players:
        total = sum(each.results.values())
        for result, number in each.results.items():
            about = {**_game_and_player(found, each.player), "setting": each.setting, "role": each.role}
            yield {**about, "result": result, "seats": number, "share": number / total}


# ---- What was said -------------------------------------------------------------------


def _language_columns(games: Sequence[str] | None) -> Sequence[Column]:
    metrics = {each.name: each for game in games or GAMES for each in metrics_of(game).language}
    return (
        *_ABOUT,
        _column("words", "integer", "Words of its messages in these matches.", "from 0"),
        *_with_ends(
            VOCABULARY,
            f"Different words to expect in {WORDS_DRAWN:,} words that are drawn from all that it said; its interval is"
            f" a jackknife by {GROUPS} groups",
            "from 1; empty of fewer words",
        ),
        _column(f"{VOCABULARY}_n", "integer", "Of how many matches it is taken.", "from 1"),
        *figure_columns(metrics),
    )


def _language_rows(found: SideBySide) -> Iterator[Row]:
    for each in found.language:
        yield {**_about_player(found, each), "words": each.words, **flat_figures(each.columns)}


def _offer_columns(_games: Sequence[str] | None) -> Sequence[Column]:
    return (
        *_KIND,
        _PLAYER,
        _SETTING,
        _ROLE,
        _column("offer", "integer", "Which of the player's offers in a match it is.", "from 1, the first"),
        *_with_ends("demanded", "What these offers are worth to the player itself, on average", "from 0 to 10 points"),
        _column("matches", "integer", "Matches in which the player made so many offers.", "from 1"),
    )


def _offer_rows(found: SideBySide) -> Iterator[Row]:
    for each in found.language:
        about = {**_game_and_player(found, each.player), "setting": each.setting, "role": each.role}
        for place, figure in enumerate(each.demands, 1):
            ends = {"demanded": figure.value, "demanded_low": figure.low, "demanded_high": figure.high}
            yield {**about, "offer": place, **ends, "matches": figure.n}


# By their names in the command and in page addresses.
TABLES = {
    "figures": SideBySideTable("side_by_side", _figure_columns, _figure_rows),
    "ratios": SideBySideTable("side_by_side_ratios", _ratio_columns, _ratio_rows),
    "tests": SideBySideTable("side_by_side_tests", _test_columns, _test_rows),
    "results": SideBySideTable("side_by_side_results", _result_columns, _result_rows),
    "language": SideBySideTable("side_by_side_language", _language_columns, _language_rows),
    "offers": SideBySideTable("side_by_side_offers", _offer_columns, _offer_rows),
}
CODEBOOK_TABLES = {table.name: table.columns(None) for table in TABLES.values()}
