"""Charts of a leaderboard: the ratings with their intervals, and how much and how well players play."""

from app.analysis.bootstrap import Figure
from app.analysis.chart import HEIGHT, WIDTH, Chart, Description, Spec, ends, in_lines
from app.analysis.comparisons import TITLE_LETTERS, points_with_whiskers
from app.analysis.language import ENGLISH, Language
from app.analysis.leaderboard import Leaderboard
from app.analysis.ratings import POINTS as BY_POINTS
from app.analysis.themes import Palette
from app.analysis.wording import beside, number
from app.games.metrics import POINTS, SHARE


def leaderboard_charts(board: Leaderboard, language: Language = ENGLISH) -> list[Chart]:
    """The charts of a leaderboard that are not empty."""
    return [*_ratings_chart(board, language), *_played_and_quality(board, language)]


def _ratings_chart(board: Leaderboard, language: Language) -> list[Chart]:
    """A point with its interval for each rated player, the best first."""
    if not board.ratings.ratings:
        return []
    gettext = language.gettext
    figures = {
        each.player: Figure(each.value, each.low, each.high, board.matches_of(each.player))
        for each in board.ratings.ratings
    }
    values = [{"player": language.player(name), **ends(figure)} for name, figure in figures.items()]
    is_in_points = board.ratings.by == BY_POINTS
    of = gettext("Points a match") if is_in_points else gettext("Rating")
    axis = in_lines(of, gettext("of the average partner"), TITLE_LETTERS) if is_in_points else [of]
    who, title = gettext("Player"), gettext("Ratings, with 95 %% intervals")

    def draw(colours: Palette) -> Spec:
        return points_with_whiskers(
            values, "player", axis, {"value": colours.second}, colours, language, rows_title=who
        )

    unit = POINTS if is_in_points else ""
    rows = [
        (language.player(name), number(each.value, unit, language), beside(each, unit, language))
        for name, each in figures.items()
    ]
    listed = "; ".join(f"{name} {value}" for name, value, _ in rows)
    described = Description(f"{title}: {listed}.", (who, of, gettext("95 %% interval")), rows)
    data = [{"player": name, **figure._asdict()} for name, figure in figures.items()]
    return [Chart("ratings", title, described, draw, data, language)]


def _played_and_quality(board: Leaderboard, language: Language) -> list[Chart]:
    """Each player's quality against the share it plays to the end: right keeps the rules, up plays well."""
    gettext = language.gettext
    known = {name: each for name, each in board.standings.items() if each.quality is not None}
    if not known:
        return []
    data = [
        {"place": place, "player": name, "played": each.played, "quality": each.quality, "score": each.score}
        for place, (name, each) in enumerate(known.items(), 1)
    ]
    values = [{**row, "player": language.player(str(row["player"]))} for row in data]
    x, y = gettext("Played to the end, of all matches"), gettext("Quality of those played (0 to 100)")
    score, who = gettext("Played × quality"), gettext("Player")

    def draw(colours: Palette) -> Spec:
        played = {"field": "played", "type": "quantitative", "title": x, "axis": {"format": ".0%"}}
        place: Spec = {
            "x": {**played, "scale": {"zero": False, "padding": 24}},
            "y": {"field": "quality", "type": "quantitative", "title": y, "scale": {"zero": False, "padding": 24}},
        }
        hover = [
            {"field": "player", "title": who},
            {"field": "played", "title": x, "type": "quantitative", "format": ".1%"},
            {"field": "quality", "title": y, "type": "quantitative", "format": ".1f"},
            {"field": "score", "title": score, "type": "quantitative", "format": ".1f"},
        ]
        # Labels alternate between three heights, so that both are readable where two points meet.
        labels = [
            {
                "transform": [{"filter": f"datum.place % 3 == {turn}"}],
                "mark": {
                    "type": "text", "align": "left", "dx": 9, "dy": 10 * (turn - 1),
                    "color": colours.ink, "aria": False,
                },
                "encoding": {"text": {"field": "place"}},
            }
            for turn in range(3)
            if turn in {place % 3 for place in range(1, len(data) + 1)}  # Vega warns about a layer without rows
        ]  # fmt: skip
        return {
            "width": WIDTH - 100,
            "height": HEIGHT,
            "data": {"values": values},
            "encoding": place,
            "layer": [
                {
                    "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1, "color": colours.second},
                    "encoding": {"tooltip": hover},
                },
                *labels,
            ],
        }

    rows = [
        (
            language.player(name),
            number(each.played, SHARE, language),
            language.decimals(each.quality or 0, 1),
            language.decimals(each.score, 1),
        )
        for name, each in known.items()
    ]
    best = max(known, key=lambda name: known[name].score)
    sentence = gettext(
        "Players further right end fewer matches by refused moves or no answer; players higher up score better in "
        "matches played to the end. Highest product: %(player)s, %(score)s. The numbers at the points: %(players)s.",
        player=language.player(best),
        score=language.decimals(known[best].score, 1),
        players=", ".join(f"{place} {language.player(name)}" for place, name in enumerate(known, 1)),
    )
    described = Description(sentence, (who, x, y, score), rows)
    return [Chart("played-quality", gettext("Played × quality"), described, draw, data, language)]
