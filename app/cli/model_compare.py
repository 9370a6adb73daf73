"""`flask model compare`: models side by side in self-play, in cross-play and with people."""

from collections.abc import Iterator, Sequence
from typing import Any

import click
from sqlalchemy.orm import Session

from app.analysis.side_by_side import SideBySide, SideBySideChoice, side_by_side
from app.analysis.side_by_side.figures import AgainstBase, PlayerFigures
from app.analysis.side_by_side.language import VOCABULARY
from app.analysis.side_by_side.settings import OF_MODELS
from app.analysis.side_by_side.tables import TABLES, rows_of
from app.analysis.wording import figure_in_words, number, p_words, signed_in_words, with_unit
from app.campaigns.side_by_side import choice_of_campaign
from app.cli.base import WHOLE, Command, check_one_format, ensure_database, json_option, print_csv, print_json
from app.cli.leaderboard import read_weight
from app.cli.tables import aligned
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading
from app.games.metrics import SHARE, TIMES, WORDS
from app.recipes.side_by_side import choice_of_run


@click.command(cls=Command)
@click.argument("models", nargs=-1)
@click.option("--base", metavar="MODEL", help="What ratios and tests are against. [default: the first model]")
@click.option(
    "--campaign", type=WHOLE, metavar="N", help="The models of campaign N, by iteration, and its evaluations."
)
@click.option("--recipe", type=WHOLE, metavar="N", help="The models that run N of a recipe trained, and its rounds.")
@click.option("--round", "rounds", type=WHOLE, multiple=True, metavar="R", help="Only these rounds; may be repeated.")
@click.option("--study", metavar="NAME", help="People of this study alone.")
@click.option("--game", metavar="GAME", help="One game alone.")
@click.option("--lambda", "weight", metavar="L", help="One weight of the partner's points alone, such as 0 or -1.")
@json_option
@click.option("--csv", "table", type=click.Choice([*TABLES]), help="Print this table as CSV.")
def compare(table: str | None, as_json: bool, **given: Any) -> None:
    """Put models side by side: in self-play, in cross-play and with people, each against a base.

    Scores, agreement, lengths, refused moves and what was said, with 95 % intervals: people are resampled by person,
    matches of models by seed. --csv ratios has how many times the base's score each model's is, and with
    --campaign a row per iteration. docs/analysis.md says what each figure is.
    """
    check_one_format(as_json, table is not None)
    ensure_database()
    with reading() as session:
        found = side_by_side(session, _side_by_side_choice(session, given))
    if as_json:
        print_json({"side_by_side": [each.to_json() for each in found]})
        return
    if table is not None:
        games = list(dict.fromkeys(each.game for each in found))
        print_csv(TABLES[table].columns(games or None), rows_of(TABLES[table], found))
        return
    if not found:
        raise Invalid(
            "matches",
            expected="some of these models that are over",
            got=Verbatim("none"),
            remedy="`flask round run negotiation --models A B --cross-play --swap-seats --matches 120` plays some",
        )
    click.echo("\n\n".join("\n".join(block) for each in found for block in _blocks(each)))


def _side_by_side_choice(session: Session, given: dict[str, Any]) -> SideBySideChoice:
    """The choice that the options make. Raises Invalid for a bad combination, and NotFound."""
    models, campaign, recipe = given["models"], given["campaign"], given["recipe"]
    if sum((bool(models), campaign is not None, recipe is not None)) != 1:
        raise Invalid(
            "models",
            expected="names of models, --campaign, or --recipe",
            got=Verbatim("none" if not models and campaign is None and recipe is None else "several of them"),
            remedy="`flask model list` shows the models",
        )
    further = {"study": given["study"], "partner_weight": read_weight(given["weight"])}
    if given["game"] is not None:
        further["game"] = given["game"]
    if models:
        rounds = tuple(given["rounds"]) or None
        return SideBySideChoice(models=models, base=given["base"] or models[0], rounds=rounds, **further)
    if given["base"] is not None or given["rounds"]:
        option = "--base" if given["base"] is not None else "--round"
        raise Invalid(option, expected="names of models beside it", got=Verbatim("a campaign or a recipe"))
    if campaign is not None:
        return choice_of_campaign(session, campaign, **further)
    return choice_of_run(session, recipe, **further)


# ---- In words ------------------------------------------------------------------------


def _blocks(found: SideBySide) -> Iterator[list[str]]:
    weight = "" if found.partner_weight is None else f", λ = {found.partner_weight:g}".replace("-", "−")
    yield [f"{found.game}{weight}: {', '.join(found.choice.models)}; base {found.choice.base}", *_sampled(found)]
    for role in found.roles:
        of_role = "" if role is None else f", as {role}"
        yield [f"{found.defined.model_headline.heading}{of_role}", *_ratios(found, role)]
        for setting in found.settings:
            rows = [each for each in found.players if (each.setting, each.role) == (setting, role)]
            if rows:
                yield [f"{setting[0].upper()}{setting[1:]}{of_role}", *_figures_table_lines(found, rows)]
                for each in rows:
                    if each.against_base:
                        yield [f"{each.player} against {found.choice.base}, {setting}{of_role}", *_tests(found, each)]
    yield ["What was said", *_language(found)]


def _sampled(found: SideBySide) -> list[str]:
    return [f"  A sample of {each}" for each in found.sampled]


def _ratios(found: SideBySide, role: str | None) -> Iterator[str]:
    metric = found.defined.model_headline
    lines: list[Sequence[str]] = [("", *(cell for each in OF_MODELS for cell in (each, "× base")))]
    for model in found.choice.models:
        cells = []
        for setting in OF_MODELS:
            each = found.find(model, setting, role)
            figure = None if each is None else each.columns[metric.name]
            times = None if each is None else each.against_base.get(metric.name)
            cells.append(figure_in_words(figure, metric.unit))
            cells.append(figure_in_words(times and times.ratio, TIMES))
        lines.append((model, *cells))
    return (f"  {line}" for line in aligned(lines))


def _figures_table_lines(found: SideBySide, rows: Sequence[PlayerFigures]) -> Iterator[str]:
    lines: list[Sequence[str]] = [("", *(each.player for each in rows))]
    lines.append(("matches", *(f"{each.matches} ({each.units} drawn)" for each in rows)))
    for metric in found.defined.side_by_side:
        cells = (figure_in_words(each.columns[metric.name], metric.unit) for each in rows)
        lines.append((with_unit(metric), *cells))
    for result in dict.fromkeys(result for each in rows for result in each.results):
        totals = [(each.results.get(result, 0), sum(each.results.values())) for each in rows]
        lines.append((f"ended: {result}", *(number(part / whole, SHARE) for part, whole in totals)))
    return (f"  {line}" for line in aligned(lines))


def _tests(found: SideBySide, each: PlayerFigures) -> Iterator[str]:
    lines = []
    for metric in found.defined.side_by_side:
        compared: AgainstBase = each.against_base[metric.name]
        if compared.difference.value is None:
            continue
        difference = signed_in_words(compared.difference, metric.unit)
        tested = "" if compared.test is None else f"{p_words(compared.p)}, {compared.test}, {compared.pairs} pairs"
        lines.append((with_unit(metric), difference, tested))
    return (f"  {line}" for line in aligned(lines)) if lines else iter(())


def _language(found: SideBySide) -> Iterator[str]:
    lines: list[Sequence[str]] = [("", *(f"{each.player}, {_setting_and_role(each)}" for each in found.language))]
    lines.append(
        (
            "different words in 1,000",
            *(figure_in_words(each.columns[VOCABULARY], WORDS) for each in found.language),
        )
    )
    lines += [
        (metric.title, *(figure_in_words(each.columns[metric.name], metric.unit) for each in found.language))
        for metric in found.defined.language
    ]
    return (f"  {line}" for line in aligned(lines))


def _setting_and_role(each: Any) -> str:
    return each.setting if each.role is None else f"{each.setting}, {each.role}"
