"""Draw what pages cost by the number of matches, of figures that bench.page_costs has printed as JSON.

python -m bench.page_curve docs/images/page-costs.svg SQLite=sqlite.json PostgreSQL=postgresql.json
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.analysis.chart import Chart, Description, Spec
from app.analysis.drawing import draw
from app.analysis.themes import Palette
from bench.page_costs import MOST_GROWTH, NOTHING

_Costs = Mapping[str, Mapping[str, Mapping[str, float]]]  # by page and number of matches: own and database, seconds
_NEAR = 0.2  # share of the seconds: names of pages that end this close would overlap
_TICKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)  # seconds


def chart_of(found: Mapping[str, _Costs]) -> Chart:
    """The curves of all pages by database; pages that grow by more than a third are dark and labelled."""
    rows: list[dict[str, Any]] = []
    for database, pages in found.items():
        labels: list[tuple[float, list[str]]] = []  # close ones form one text
        for page, costs in pages.items():
            seconds = {int(size): each["own"] + each["database"] for size, each in costs.items()}
            first, last = seconds[min(seconds)], seconds[max(seconds)]
            grows = last > MOST_GROWTH * first and last - first > NOTHING
            rows += [
                {"database": database, "page": page, "matches": size, "seconds": cost, "grows": grows, "name": ""}
                for size, cost in seconds.items()
            ]
            if grows:
                near = next((names for at, names in labels if abs(at - last) < _NEAR * at), None)
                if near is None:
                    labels.append((last, [page]))
                else:
                    near.append(page)
        most = max(row["matches"] for row in rows)
        rows += [
            {"database": database, "page": "", "matches": most, "seconds": at, "grows": True, "name": ", ".join(names)}
            for at, names in labels
        ]
    sizes = sorted({row["matches"] for row in rows})

    def draw_pages(colours: Palette) -> Spec:
        x = {"field": "matches", "type": "quantitative", "title": "Finished matches",
             "scale": {"type": "log", "domain": [sizes[0], sizes[-1]], "nice": False},
             "axis": {"values": sizes, "format": ",", "labelBound": False}}  # fmt: skip
        y = {"field": "seconds", "type": "quantitative", "title": "Seconds of CPU of a page",
             "scale": {"type": "log", "nice": False}, "axis": {"values": _TICKS, "format": "~g"}}  # fmt: skip
        dark, grey = colours.ink, colours.soft
        stroke = {"condition": {"test": "datum.grows", "value": dark}, "value": grey}
        line = {
            "transform": [{"filter": "datum.page != ''"}],
            "mark": {"type": "line", "point": {"filled": True, "size": 14}, "clip": True},
            "encoding": {
                "detail": {"field": "page"}, "color": stroke,
                "strokeWidth": {"condition": {"test": "datum.grows", "value": 1.8}, "value": 0.6},
            },
        }  # fmt: skip
        names = {
            "transform": [{"filter": "datum.name != ''"}],
            "mark": {"type": "text", "align": "right", "dy": -7, "fontSize": 9, "color": dark},
            "encoding": {"text": {"field": "name"}},
        }
        facet = {"field": "database", "type": "nominal", "title": None, "sort": list(found)}
        panel = {"width": 330, "height": 380, "encoding": {"x": x, "y": y}, "layer": [line, names]}
        return {"data": {"values": rows}, "facet": {"column": facet}, "spec": panel}

    grown = [f"{row['name']} on {row['database']}" for row in rows if row["name"]]
    said = f"Pages that grow by more than a third: {', '.join(grown) or 'none'}."
    shown = [row for row in rows if row["page"]]
    table = [[row["database"], row["page"], f"{row['matches']:,}", f"{row['seconds']:.3f}"] for row in shown]
    described = Description(said, ("Database", "Page", "Matches", "Seconds"), table)
    return Chart("page-costs", "What each page costs by the number of finished matches", described, draw_pages, shown)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the figures and write the picture."""
    parser = argparse.ArgumentParser(prog="python -m bench.page_curve", description=__doc__.partition("\n")[0])
    parser.add_argument("picture", type=Path, help="the SVG file that is written")
    parser.add_argument("figures", nargs="+", metavar="DATABASE=FILE", help="what --json has printed, by database")
    asked = parser.parse_args(arguments)
    named = dict(each.partition("=")[::2] for each in asked.figures)
    found = {database: json.loads(Path(file).read_text("utf-8")) for database, file in named.items()}
    asked.picture.write_bytes(draw(chart_of(found), "svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
