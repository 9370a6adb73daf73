"""What every column of an analysis is called where people read it, and in what it is measured."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.analysis.bootstrap import Figure

POINTS, MOVES, TOKENS, WORDS, TURNS, SHARE = "points", "moves", "tokens", "words", "turns", "share"
TIMES = "times"  # how many times another figure


@dataclass(frozen=True, slots=True)
class ColumnMetric:
    """A column in words, and its unit; a share is a number from 0 to 1 that people read as a percentage."""

    title: str
    unit: str


_TRANSCRIPTS: Mapping[str, ColumnMetric] = {
    "score_mean": ColumnMetric("mean score", POINTS),
    "score_median": ColumnMetric("median score", POINTS),
    "messages_mean": ColumnMetric("mean length", MOVES),
    "tokens_mean": ColumnMetric("mean length in tokens", TOKENS),
    "words_mean": ColumnMetric("mean length in words", WORDS),
    "abort_rate": ColumnMetric("aborted", SHARE),
    "agreement_rate": ColumnMetric("agreed", SHARE),
    "agreed_score_mean": ColumnMetric("mean score of agreed games", POINTS),
    "agreed_score_median": ColumnMetric("median score of agreed games", POINTS),
    "agreed_messages_mean": ColumnMetric("mean length of agreed games", MOVES),
    "agreed_tokens_mean": ColumnMetric("mean length of agreed games in tokens", TOKENS),
    "agreed_words_mean": ColumnMetric("mean length of agreed games in words", WORDS),
    "pareto_rate": ColumnMetric("Pareto-optimal, of all games", SHARE),
    "agreed_pareto_rate": ColumnMetric("Pareto-optimal, of agreed games", SHARE),
}

NEGOTIATION: Mapping[str, ColumnMetric] = {
    **_TRANSCRIPTS,
    "violations_mean": ColumnMetric("refused moves a match", MOVES),
    "first_proposal_mean": ColumnMetric("moves before the first proposal", MOVES),
    "unspoken_rate": ColumnMetric("deals never said in the talk", SHARE),
    "above_share": ColumnMetric("transcripts above average", SHARE),
    **{f"above_{name}": ColumnMetric(f"above average: {each.title}", each.unit) for name, each in _TRANSCRIPTS.items()},
}

TABOO: Mapping[str, ColumnMetric] = {
    "attacker_wins_rate": ColumnMetric("attacker wins", SHARE),
    "defender_wins_rate": ColumnMetric("defender wins", SHARE),
    "rules_broken_rate": ColumnMetric("attacker breaks the rules", SHARE),
    "tied_rate": ColumnMetric("tied game", SHARE),
    "abort_rate": ColumnMetric("aborted", SHARE),
    "decided_attacker_wins_rate": ColumnMetric("attacker wins, of games with a winner", SHARE),
    "attacker_score_mean": ColumnMetric("mean score of the attacker", POINTS),
    "defender_score_mean": ColumnMetric("mean score of the defender", POINTS),
    "turns_mean": ColumnMetric("mean turns", TURNS),
    "messages_mean": ColumnMetric("mean length", MOVES),
    "tokens_mean": ColumnMetric("mean length in tokens", TOKENS),
    "words_mean": ColumnMetric("mean length in words", WORDS),
    "violations_mean": ColumnMetric("refused moves a match", MOVES),
}

MODEL: Mapping[str, ColumnMetric] = {
    "score_mean": ColumnMetric("mean score", POINTS),
    "score_median": ColumnMetric("median score", POINTS),
    "agreed_score_mean": ColumnMetric("mean score of agreed games", POINTS),
    "agreed_score_median": ColumnMetric("median score of agreed games", POINTS),
    "first_seat_score_mean": ColumnMetric("mean score in the first seat", POINTS),
    "second_seat_score_mean": ColumnMetric("mean score in the second seat", POINTS),
    "win_rate": ColumnMetric("won", SHARE),
    "loss_rate": ColumnMetric("lost", SHARE),
}

DIFFERENCE: Mapping[str, ColumnMetric] = {
    "score_mean": MODEL["score_mean"],
    "agreed_score_mean": MODEL["agreed_score_mean"],
    "win_rate": MODEL["win_rate"],
}

GAMES: Mapping[str, Mapping[str, ColumnMetric]] = {"negotiation": NEGOTIATION, "taboo": TABOO}


def number(value: float | None, unit: str) -> str:
    """A figure as people read it: a percentage with one decimal, anything else with two."""
    if value is None:
        return "–"
    text = f"{value * 100:.1f} %" if unit == SHARE else f"{value:.2f}"
    return text.replace("-", "−")


def interval(figure: Figure, unit: str) -> str:
    """Both ends of an interval, or nothing where there is none."""
    if figure.low is None or figure.high is None:
        return ""
    return f"{number(figure.low, unit).removesuffix(' %')} to {number(figure.high, unit)}"


def beside(figure: Figure, unit: str) -> str:
    """What stands beside a figure: its interval, or why it has none, and its n; nothing where there is no figure."""
    told = interval(figure, unit) or (f"no interval of {figure.no_interval}" if figure.no_interval else "")
    return ", ".join(each for each in (told, f"n = {figure.n}" if figure.n else "") if each)


def signed(value: float | None, unit: str) -> str:
    """A difference as people read it, with its sign; one of shares in percentage points."""
    text = number(value, unit).replace(" %", " pp")
    return text if value is None or text.startswith("−") else f"+{text}"


def signed_beside(figure: Figure, unit: str) -> str:
    """What stands beside a difference."""
    if figure.low is None or figure.high is None:
        return beside(figure, unit)
    return f"{signed(figure.low, unit).removesuffix(' pp')} to {signed(figure.high, unit)}"
