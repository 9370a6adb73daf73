"""Writes the tables of metrics in docs/analysis.md from the games' definitions: `python -m scripts.metric_tables`."""

from collections.abc import Iterator, Sequence

from app.analysis.campaign_charts import DrawnPanel, panels_of
from app.core.config import ROOT
from app.games import GAMES, metrics_of
from app.games.metrics import Metric
from scripts.page_tables import between

PAGE = ROOT / "docs" / "analysis.md"
METRICS = "<!-- metrics: python -m scripts.metric_tables -->", "<!-- end of metrics -->"
STAR = "\\*"  # Markdown for an asterisk
PANELS = "<!-- panels: python -m scripts.metric_tables -->", "<!-- end of panels -->"


def tables() -> str:
    """The metrics of every game: of its matches, and of each model in them."""
    return "\n\n".join(part for game in GAMES for part in _of_game(game))


def _of_game(name: str) -> Iterator[str]:
    defined = metrics_of(name)
    yield f"### {GAMES[name].title} (`{name}`)"
    yield _table(defined.of_matches)
    if above := [f"`above_{each.name}`" for each in defined.of_matches if each.above]:
        yield f"Of the transcripts above average alone, the same of these names: {', '.join(above)}."
    yield "Of each model (`by_model`), by role where roles differ, else where different models sat in the two seats:"
    yield _table(defined.of_models)
    shown = ", ".join(f"`{each.name}`" for each in defined.side_by_side if each not in defined.of_settings)
    yield f"Of models [side by side](#people-and-models-side-by-side), of those above {shown}, and:"
    yield _table(defined.of_settings)
    yield "Of what each of them says:"
    rows = (f"| `{each.name}` | {each.title} | {each.unit} | {each.explanation} |" for each in defined.language)
    yield "\n".join(["| column | title | unit | what it is |", "|---|---|---|---|", *rows])


def _table(metrics: Sequence[Metric]) -> str:
    rows = (f"| `{each.name}` | {each.title} | {each.unit}, {each.interval} | {each.explanation} |" for each in metrics)
    return "\n".join(["| column | title | unit, interval | what it is |", "|---|---|---|---|", *rows])


def panels() -> str:
    """The panels of every game's campaigns."""
    rows = (f"| {name} | {'; '.join(_panel(each) for each in panels_of(name))} |" for name in GAMES)
    return "\n".join(["| game | panels |", "|---|---|", *rows])


def _panel(drawn: DrawnPanel) -> str:
    names = ", ".join(f"`{name}`" for name in drawn.lines)
    further = "" if drawn.panel.alone else ", where there are further evaluations"
    return f"{drawn.title} ({names}{further}){STAR if drawn.panel.compared else ''}"


def with_tables(text: str) -> str:
    """The page with its tables as they are to be."""
    return between(between(text, METRICS, tables()), PANELS, panels())


def main() -> None:
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
