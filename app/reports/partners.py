"""A part of reports: models side by side in self-play, against each other and with people, and what they said."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.analysis.side_by_side import SideBySide, SideBySideChoice, side_by_side
from app.analysis.side_by_side.settings import MOST_BESIDE, SELF_PLAY
from app.analysis.side_by_side.tables import TABLES
from app.analysis.wording import figure_in_words, heading, number, signed_in_words
from app.core.csv_tables import to_csv
from app.games.metrics import SHARE
from app.reports.origins import NONE
from app.reports.report import ReportSection, ReportTable

_MOST_SHOWN = 4  # figures in a table on the page; its CSV has all of them
_TALKS = 100  # matches whose words are read, for each player in a setting


def partners_section(
    session: Session,
    models: Sequence[str],
    game: str,
    partner_weight: float | None,
    rounds: Sequence[int] | None = None,
) -> ReportSection:
    """These models side by side, each against the first, in these rounds or all; empty if that shows nothing.

    People are included once their wave is frozen.
    """
    section = ReportSection("partners", "With other partners")
    if len(models) < 2:
        return section
    choice = SideBySideChoice(
        models=tuple(models[:MOST_BESIDE]),
        base=models[0],
        game=game,
        partner_weight=partner_weight,
        rounds=None if rounds is None else tuple(rounds),
    )
    found = [each for each in side_by_side(session, choice, _TALKS) if each.partner_weight == partner_weight]
    if not found or found[0].settings == [SELF_PLAY]:
        return section
    [one] = found
    return ReportSection(
        section.key,
        section.title,
        paragraphs=[
            (
                "In self-play a model has both seats, in cross-play two models have one each, and with people a person"
                " has the other one. What is resampled is what was drawn independently: seeds, and people with all of"
                " their matches."
            )
        ],
        tables=[_figures_table(one), *_tests_table(one), *_language_table(one)],
    )


def _csv(one: SideBySide, name: str) -> bytes:
    table = TABLES[name]
    return b"".join(to_csv(table.columns([one.game]), table.rows(one)))


def _who(player: str, role: str | None) -> str:
    return player if role is None else f"{player} as {role}"


def _figures_table(one: SideBySide) -> ReportTable:
    shown = one.defined.side_by_side[:_MOST_SHOWN]
    rows = [
        (
            _who(each.player, each.role),
            each.setting,
            str(each.matches),
            *(figure_in_words(each.columns.get(metric.name), metric.unit) for metric in shown),
        )
        for each in one.players
    ]
    head = ("Player", "Setting", "Matches", *(heading(metric) for metric in shown))
    caption = "Figures of each player by setting, with 95 % intervals; the file has further ones."
    return ReportTable("side-by-side", caption, head, rows, _csv(one, "figures"))


def _tests_table(one: SideBySide) -> list[ReportTable]:
    """The difference of each model from the base, with its test."""
    rows = []
    for each in one.players:
        for metric in one.defined.side_by_side[:_MOST_SHOWN]:
            found = each.against_base.get(metric.name)
            if found is None or found.difference.value is None:
                continue
            rows.append(
                (
                    _who(each.player, each.role),
                    each.setting,
                    heading(metric),
                    signed_in_words(found.difference, metric.unit),
                    found.test or NONE,
                    NONE if found.p is None else "< 0.001" if found.p < 0.001 else f"{found.p:.3f}",
                )
            )
    head = ("Player", "Setting", "Figure", f"Minus {one.choice.base}", "Test", "p")
    caption = (
        f"What each model has over {one.choice.base} in the same setting, and how likely so large a difference is if"
        " there is none. Tests are not corrected for their number."
    )
    return [ReportTable("side-by-side-tests", caption, head, rows, _csv(one, "tests"))] if rows else []


def _language_table(one: SideBySide) -> list[ReportTable]:
    metrics = one.defined.language[:_MOST_SHOWN]
    if not one.language or not metrics:
        return []
    rows = [
        (
            _who(each.player, each.role),
            each.setting,
            str(each.words),
            *(
                NONE if (figure := each.columns.get(metric.name)) is None or figure.value is None
                else number(figure.value, metric.unit)
                for metric in metrics
            ),
        )
        for each in one.language
    ]  # fmt: skip
    titles = (metric.heading if metric.unit == SHARE else f"{metric.heading} ({metric.unit})" for metric in metrics)
    caption = f"What players said, in at most {_TALKS} matches of each in each setting; the file has intervals."
    return [
        ReportTable(
            "side-by-side-language", caption, ("Player", "Setting", "Words", *titles), rows, _csv(one, "language")
        )
    ]
