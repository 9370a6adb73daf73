"""`flask analyze`: the figures of rounds, or of any matches, with intervals, as a table, as JSON and as charts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import click

from app.analysis.chart import Chart
from app.analysis.charts import charts_of
from app.analysis.comparisons import compare, compare_differences, compare_models, cross_plays
from app.analysis.crossplay import CrossPlay, cross_play
from app.analysis.figure_files import FORMATS
from app.analysis.matches import MatchAnalysis, analyse_matches
from app.analysis.paired import SEEDS, PairedDifference
from app.analysis.rounds import RoundAnalysis, analyse
from app.analysis.tables import analysis_columns, analysis_rows
from app.analysis.themes import LIGHT, THEMES
from app.analysis.wording import figure_in_words, signed_in_words, with_unit
from app.cli.base import WHOLE, Command, check_one_format, ensure_database, print_csv, print_json, progress
from app.cli.drawing import write_chart
from app.cli.match_filter import filter_options, read_filter
from app.cli.tables import aligned
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading
from app.core.files import replace_file
from app.games import metrics_of
from app.games.metrics import POINTS, SHARE, Metric
from app.matches.filter import EVERYTHING, MatchFilter, in_words

_WIDEST = 60  # characters of a name in a table
A = TypeVar("A", bound=MatchAnalysis)


@click.command(cls=Command)
@click.option("--round", "round_ids", type=WHOLE, multiple=True, metavar="R", help="A round; several for side by side.")
@click.option("--matrix", "matrix_id", type=WHOLE, metavar="R", help="The first round of a cross-play, for all pairs.")
@filter_options("round")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all columns.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV: a row per round or choice, model or difference.")
@click.option("--charts", "folder", metavar="DIR", help="Write charts into this folder.")
@click.option("--format", "form", type=click.Choice(FORMATS), default=FORMATS[0], show_default=True)
@click.option("--theme", type=click.Choice(THEMES), default=LIGHT, show_default=True, help="The colours of charts.")
def analyze(
    round_ids: Sequence[int],
    matrix_id: int | None,
    as_json: bool,
    as_csv: bool,
    folder: str | None,
    form: str,
    theme: str,
    **given: str | None,
) -> None:
    """Work out what rounds, or the matches that a filter chooses, have shown: scores, lengths, agreement, outcomes.

    With --round alone, rounds are put side by side. With any other choice all matches that it leaves are taken
    together, those of people, too: one analysis for each game and each λ.

    Figures have 95 % intervals: Wilson's of shares, by resampling of the rest, where there are enough matches. A round
    of two models has figures of each, and what one has over the other. docs/analysis.md says what each figure is.
    """
    check_one_format(as_json, as_csv)
    choice = _filter_from_options(given, round_ids, matrix_id)
    if not round_ids and matrix_id is None and choice is None:
        raise Invalid(
            "--round",
            expected="the number of a round, --matrix, or a choice of matches such as --source live",
            got=Verbatim("none"),
            remedy="`flask round list` shows them",
        )
    ensure_database()
    with reading() as session:
        rounds = analyse(session, round_ids) if choice is None else []
        chosen = [] if choice is None else analyse_matches(session, choice)
        matrix = None if matrix_id is None else cross_play(session, matrix_id)
    analyses: list[MatchAnalysis] = [*rounds, *chosen]
    _refuse_empty(rounds, matrix)
    if choice is not None and not chosen:
        raise Invalid("matches", expected="some that are over", got=Verbatim(f"none: {in_words(choice)}"))
    written = [] if folder is None else _write_charts(_charts(rounds, chosen, matrix), Path(folder), form, theme)
    if as_json:
        print_json(
            {
                "rounds": [each.to_json() for each in rounds],
                "matches": [each.to_json() for each in chosen],
                "matrix": None if matrix is None else matrix.to_json(),
                "charts": [str(path) for path in written],
            }
        )
        return
    if as_csv:
        games = [each.game for each in analyses] + ([] if matrix is None else [matrix.game])
        print_csv(analysis_columns(list(dict.fromkeys(games))), analysis_rows(analyses, matrix))
        return
    click.echo("\n\n".join("\n".join(block) for block in _report_blocks(analyses, matrix)))
    if written:
        click.echo(f"\nWrote {len(written)} charts to {folder}, each with its numbers as CSV.")


def _filter_from_options(
    given: Mapping[str, str | None], round_ids: Sequence[int], matrix_id: int | None
) -> MatchFilter | None:
    """The filter that the options give; None if whole rounds are analyzed. Raises Invalid, and NotFound."""
    choice = read_filter(given)
    if choice == EVERYTHING:
        return None
    if matrix_id is not None:
        raise Invalid("--matrix", expected="nothing beside it that chooses matches", got=Verbatim(in_words(choice)))
    if len(round_ids) > 1:
        raise Invalid("--round", expected="one with a further choice", got=Verbatim(str(len(round_ids))))
    return replace(choice, round=round_ids[0]) if round_ids else choice


def _refuse_empty(analyses: Sequence[RoundAnalysis], matrix: CrossPlay | None) -> None:
    found = [(each.round_id, each.matches, each.planned) for each in analyses]
    if matrix is not None:
        found.append((matrix.matrix_id, matrix.matches, matrix.planned))
    for round_id, matches, planned in found:
        if matches == 0:
            raise Invalid(
                "round",
                expected="one with matches that are over",
                got=Verbatim(f"none of {planned} over"),
                remedy=f"`flask round show {round_id}` says how far it is",
                subject=f"round {round_id}",
            )


# ---- Charts -----------------------------------------------------------------------


def _charts(rounds: Sequence[RoundAnalysis], chosen: Sequence[MatchAnalysis], matrix: CrossPlay | None) -> list[Chart]:
    charts = [chart for each in (*rounds, *chosen) for chart in charts_of(each)]
    for _, group in _by_game(rounds):
        if len(group) > 1:
            by_model = [chart for chart in (compare_models(group), compare_differences(group)) if chart is not None]
            charts += by_model or [compare(group)]
    return charts + ([] if matrix is None else cross_plays(matrix))


def _write_charts(charts: Sequence[Chart], folder: Path, form: str, theme: str) -> list[Path]:
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with progress(charts, lambda: len(charts)) as each:
            for chart in each:
                path = folder / f"{chart.name}.{form}"
                write_chart(chart, path, form, theme)
                replace_file(path.with_suffix(".csv"), [chart.csv().encode()])
                written.append(path)
    except OSError as error:
        reason = error.strerror or "it cannot be written"
        raise Invalid(
            "--charts", expected="a folder that can be written to", got=Verbatim(f"{folder} ({reason})")
        ) from None
    return written


# ---- Tables -------------------------------------------------------------------------


def _report_blocks(analyses: Sequence[MatchAnalysis], matrix: CrossPlay | None) -> Iterator[list[str]]:
    """Blocks of lines."""
    if analyses:
        yield [_heading(each) for each in analyses]
    for each in analyses:
        if each.metrics.parts:
            yield [*_model_lines(each), *([] if each.paired is None else _difference(each, each.paired))]
    for game, group in _by_game(analyses):
        both = ["All matches; scores are those of both models together"] if any(each.paired for each in group) else []
        yield [*both, *_metrics_table_lines(metrics_of(game).columns, group)]
    for each in analyses:
        yield _outcomes(each)
    if matrix is not None:
        yield list(_matrix(matrix))


def _by_game(analyses: Sequence[A]) -> list[tuple[str, list[A]]]:
    ordered = sorted(analyses, key=lambda each: each.game)
    return [(game, list(group)) for game, group in groupby(ordered, key=lambda each: each.game)]


def _heading(each: MatchAnalysis) -> str:
    far = f"{each.matches} matches"
    if not isinstance(each, RoundAnalysis):
        return f"{each.game}, {_table_heading(each)}: {each.name}, {far}"
    if not each.complete:
        far = f"{each.matches} of {each.planned} matches, {each.state}"
    weight = "" if each.partner_weight is None else f", λ = {each.partner_weight:g}".replace("-", "−")
    return f"Round {each.round_id}: {each.name[:_WIDEST]}, {each.game}{weight}, {far}"


def _table_heading(each: MatchAnalysis) -> str:
    """The heading of the matches in a table."""
    if isinstance(each, RoundAnalysis):
        return f"round {each.round_id}"
    return "matches" if each.partner_weight is None else f"matches with λ = {each.partner_weight:g}".replace("-", "−")


def _metrics_table_lines(known: Mapping[str, Metric], group: Sequence[MatchAnalysis]) -> Iterator[str]:
    """One line per column, with its figure in each round."""
    heads = [_table_heading(each) for each in group]
    rows = [
        (with_unit(column), [figure_in_words(each.metrics.columns[name], column.unit) for each in group])
        for name, column in known.items()
    ]
    yield from _aligned([("", heads), *rows])


def _outcomes(each: MatchAnalysis) -> list[str]:
    rows = [
        (found.reason, [str(found.matches), figure_in_words(found.share, SHARE)]) for found in each.metrics.outcomes
    ]
    return [f"Outcomes of {_table_heading(each)}", *_aligned(rows)]


def _model_lines(each: MatchAnalysis) -> Iterator[str]:
    """One line per figure of each model, by role where roles differ."""
    for part in each.metrics.parts:
        role = "" if part.role is None else f" as {part.role}"
        yield f"{part.player[:_WIDEST]}{role} in {_table_heading(each)}, {part.matches} matches"
        rows = [
            (with_unit(each.defined.models[name]), [figure_in_words(figure, each.defined.models[name].unit)])
            for name, figure in part.columns.items()
        ]
        yield from _aligned(rows)


def _difference(each: MatchAnalysis, versus: PairedDifference) -> Iterator[str]:
    """The advantage of one model over the other, and what was paired."""
    yield f"{versus.first[:_WIDEST]} minus {versus.second[:_WIDEST]} in {_table_heading(each)}, {_pairing_text(versus)}"
    rows = []
    for name, figure in versus.columns.items():
        column = each.defined.models[name]
        rows.append((with_unit(column), [signed_in_words(figure, column.unit)]))
    yield from _aligned(rows)


def _pairing_text(versus: PairedDifference) -> str:
    if versus.pairing == SEEDS:
        return f"paired by {versus.pairs} seeds, each played once from either side"
    seat = "" if versus.always_first is None else f"; {versus.always_first} always had the first seat"
    return f"paired by {versus.pairs} matches, whose seats were not swapped{seat}"


def _matrix(matrix: CrossPlay) -> Iterator[str]:
    far = str(matrix.matches) if matrix.complete else f"{matrix.matches} of {matrix.planned}"
    yield f"Cross-play {matrix.matrix_id}: {matrix.game}, {far} matches, mean scores"
    for cell in matrix.cells:
        role = "" if cell.role is None else f" as {cell.role}"
        yield f"  {cell.row}{role} against {cell.column}: {figure_in_words(cell.score, POINTS)}"


def _aligned(rows: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Rows with the first column aligned to the left and the others lined up."""
    return (f"  {line}" for line in aligned([(name, *cells) for name, cells in rows]))
