"""Analyses as CSV: a row per round or choice of matches, per model in it, and per iteration of a campaign.

Source: Liao, Tomlin & Klein 2024, arXiv 2406.18872, whose analysis has a row per iteration.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.analysis.bootstrap import Figure
from app.analysis.crossplay import CrossPlay
from app.analysis.matches import MatchAnalysis
from app.analysis.rounds import RoundAnalysis
from app.core.csv_tables import Column
from app.games import GAMES, metrics_of
from app.games.metrics import AS_PLAYED, MODEL_SCORE, SHARE, Metric
from app.games.talk import LanguageMetric

Row = Mapping[str, Any]  # a row's values by column; a missing column is empty

_ENDS = {"low": "Lower", "high": "Upper"}


def _column(name: str, type_: str, meaning: str, values: str) -> Column:
    return Column(name, type_, meaning, values, lambda row: row.get(name))


_OF_AN_ANALYSIS = (
    _column("round_id", "text", "The round; of a pair the first round of its cross-play.",
            "a number; empty for matches that a filter chose"),
    _column("name", "text", "The name of the round, or the filter that chose the matches.", "empty for a pair"),
    _column("game", "text", "What was played.", " | ".join(GAMES)),
    _column("lambda", "number", "The weight of the partner's points in a score.",
            "from -1 to 1; empty in a game without"),
    _column("state", "text", "What the round is doing.", "waiting | running | done | …; empty for all else"),
    _column("planned", "integer", "Matches that the round is to have.", "from 1; empty for all else"),
    _column("scope", "text", "What the row is about: all matches of a round or of a filter, one model in them, or one"
            " model against another in a cross-play, or what one model has over another, pair by pair.",
            "round | matches | model | difference | pair"),
    _column("model", "text", "The model, as the registry names it.",
            "a name; empty for a round that several models played"),
    _column("role", "text", "The role in which the model sat.", "as the game names it; empty for any"),
    _column("against", "text", "The other model, of a pair or of a difference: that of model minus that of against.",
            "a name; empty for a round or a model"),
    _column("pairing", "text", "Of a difference: what a pair is, a seed played once from either side or one match.",
            "seeds | matches; empty for all else"),
    _column("matches", "integer", "Matches that are over and in the figures of the row.", "from 1"),
)  # fmt: skip

_CLAIMS = _column(
    "claims_version", "integer", "Negotiation: which reading of words unspoken_rate and named_rate rest on.",
    "from 1; compare figures of one version; empty in other games",
)  # fmt: skip

_OF_AN_ITERATION = (
    _column("campaign_id", "text", "The campaign.", "a number"),
    _column("iteration", "integer", "The iteration of the campaign.", "from 0, which is the model it began with"),
    _column("model", "text", "The model that was evaluated.", "a name; empty until there is one"),
    _column("round_id", "text", "The round that was played for training: of the model before, or of the teacher,"
            " with itself.",
            "a number; empty for iteration 0, and for one that learns from a dataset that was there before"),
    _column("dataset_id", "text", "What the model learned from: the dataset that was built from the iteration's rounds,"
            " or from all rounds so far where that was asked for, or the one that the campaign starts with.",
            "a number; empty for iteration 0"),
    _column("job_id", "text", "The training job that made the model.", "a number; empty for iteration 0"),
    _column("evaluation", "text", "How the model was evaluated.",
            f"{AS_PLAYED} | greedy | temperature … | against …: one row per iteration for each"),
    _column("evaluation_id", "text", "The round on held-out material that the figures are of.",
            "a number; empty until there is one"),
)  # fmt: skip

_ROUNDS_WITH = _column(
    "rounds_with", "json", "The rounds with partners that were played for training, beside round_id.",
    "{PARTNER: ROUND}; {} where there are none",
)  # fmt: skip


def analysis_columns(games: Sequence[str] | None = None) -> tuple[Column, ...]:
    """The columns of an analysis of these games, or of all; those of models are the same for every game."""
    metrics = _by_name([metric for game in games or GAMES for metric in metrics_of(game).columns.values()])
    models = _by_name([metric for game in GAMES for metric in metrics_of(game).of_models])
    return *_OF_AN_ANALYSIS, *figure_columns({**metrics, **models, **metrics}), _CLAIMS


def campaign_columns(games: Sequence[str] | None = None) -> tuple[Column, ...]:
    """The columns of a campaign in one of these games, or in any."""
    metrics = [metric for game in games or GAMES for metric in metrics_of(game).everything.values()]
    return *_OF_AN_ITERATION, *figure_columns(_by_name(metrics)), _ROUNDS_WITH


def _by_name(metrics: Sequence[Metric]) -> dict[str, Metric]:
    return {each.name: each for each in metrics}


def figure_columns(metrics: Mapping[str, Metric | LanguageMetric]) -> Iterator[Column]:
    """Four columns for each figure: its value, both ends of its interval, and the number of matches behind it."""
    for name, metric in metrics.items():
        values = "from 0 to 1" if metric.unit == SHARE else metric.unit
        yield _column(
            name,
            "number",
            f"{metric.heading}: {metric.explanation}.",
            f"{values}; empty where there is nothing to take it of",
        )
        for end, word in _ENDS.items():
            meaning = f"{word} end of the 95 % interval of {name}."
            yield _column(f"{name}_{end}", "number", meaning, f"{values}; empty where there is none")
        yield _column(
            f"{name}_n",
            "integer",
            f"Of how many matches, or pairs of them, {name} is taken.",
            "from 1; empty where there is nothing to take it of",
        )


def analysis_rows(analyses: Sequence[MatchAnalysis], matrix: CrossPlay | None = None) -> Iterator[Row]:
    """Each round, or choice of matches, with its models, and the pairs of a cross-play."""
    for each in analyses:
        own = {**each.about(), "lambda": each.partner_weight, "claims_version": each.defined.claims_version}
        model = each.players[0] if len(each.players) == 1 else None
        scope = "round" if isinstance(each, RoundAnalysis) else "matches"
        yield {**own, "scope": scope, "model": model, "matches": each.matches, **flat_figures(each.metrics.columns)}
        for part in each.metrics.parts:
            about = {"scope": "model", "model": part.player, "role": part.role, "matches": part.matches}
            yield {**own, **about, **flat_figures(part.columns)}
        if each.paired is not None:
            about = {"scope": "difference", "model": each.paired.first, "against": each.paired.second}
            about["pairing"] = each.paired.pairing
            yield {**own, **about, "matches": each.matches, **flat_figures(each.paired.columns)}
    if matrix is not None:
        for cell in matrix.cells:
            yield {
                "round_id": matrix.matrix_id,
                "game": matrix.game,
                "scope": "pair",
                "model": cell.row,
                "role": cell.role,
                "against": cell.column,
                "matches": cell.matches,
                **flat_figures({MODEL_SCORE.name: cell.score}),
            }


def campaign_rows(campaign_id: int, results: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """The iterations of a campaign by evaluation, in the form of `flask campaign show --json`."""
    for each in results:
        own = {"round_id": each["evaluation_id"], "figures": each["figures"]}
        for label, found in ((AS_PLAYED, own), *each["evaluations"].items()):
            figures = {name: Figure(**of) for name, of in (found["figures"] or {}).items()}
            about = {"campaign_id": campaign_id, "evaluation": label, "evaluation_id": found["round_id"]}
            yield {**each, **about, **flat_figures(figures)}


def flat_figures(figures: Mapping[str, Figure]) -> dict[str, float | None]:
    """The values of `figure_columns` for each figure."""
    return {
        f"{name}{end}": value
        for name, figure in figures.items()
        for end, value in (("", figure.value), ("_low", figure.low), ("_high", figure.high), ("_n", figure.n or None))
    }
