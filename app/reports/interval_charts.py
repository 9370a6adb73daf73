"""Charts of figures with their intervals, one below the other, which reports draw from tables of any kind."""

from collections.abc import Sequence

from app.analysis.bootstrap import Figure
from app.analysis.chart import Chart, Description, Spec, ends, in_lines
from app.analysis.comparisons import TITLE_LETTERS, points_with_whiskers
from app.analysis.language import ENGLISH
from app.analysis.themes import Palette
from app.analysis.wording import beside, number
from app.games.metrics import SHARE

Rows = Sequence[tuple[str, Figure]]


def interval_chart(
    name: str, title: str, of: str, unit: str, rows: Rows, rows_title: str, zero: float | None = None
) -> Chart:
    """A point with its whiskers for each row. `of` and `unit` title the axis; `zero` is where a dashed line stands."""
    values = [{"row": label, **ends(figure)} for label, figure in rows]
    axis = in_lines(of, "%" if unit == SHARE else unit, TITLE_LETTERS) if unit else [of]

    def draw(colours: Palette) -> Spec:
        colour = {"value": colours.second}
        spec = points_with_whiskers(
            values, "row", axis, colour, colours, ENGLISH, share=unit == SHARE, rows_title=rows_title
        )
        if zero is not None:
            line = {"x": {"datum": zero}, "y": None, "color": {"value": colours.strong}}
            spec["layer"].insert(0, {"mark": {"type": "rule", "strokeDash": [3, 3], "aria": False}, "encoding": line})
        return spec

    table = [(label, number(figure.value, unit), beside(figure, unit)) for label, figure in rows]
    listed = "; ".join(f"{label} {value}" for label, value, _ in table)
    described = Description(f"{title}: {listed}.", (rows_title, of, "95 % interval and n"), table)
    data = [{"row": label, **figure._asdict()} for label, figure in rows]
    return Chart(name, title, described, draw, data)
