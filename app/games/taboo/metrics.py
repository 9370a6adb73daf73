"""The metrics of games of taboo. Pure.

Source: Cheng et al. 2024, arXiv 2404.10642, whose figures are based on the outcomes.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from app.games.metrics import (
    ABORT_RATE,
    BAD,
    FIRST,
    FIRST_WINS,
    MESSAGES_MEAN,
    MODEL_SCORE,
    OWN_VIOLATIONS_MEAN,
    PART,
    PARTNER_SCORE,
    POINTS,
    SECOND,
    SECOND_WINS,
    SHARE,
    TOKENS_MEAN,
    TURNS,
    VIOLATIONS_MEAN,
    WORDS_MEAN,
    GameMetrics,
    Metric,
    Panel,
    PanelLine,
    Use,
    ended_as,
    scores,
)
from app.games.taboo.outcomes import ATTACKER, ATTACKER_WINS, DEFENDER, DEFENDER_WINS, ROLES, RULES_BROKEN, TIED

if TYPE_CHECKING:
    from app.games.match_table import Booleans, Floats, MatchTable

_ENDED = Panel("How games ended")
_SCORES = Panel("Mean scores")
_EVALUATED = Use.EVALUATION | Use.CONDITION


def _won(matches: "MatchTable") -> "Booleans":
    return matches.won


def _lost(matches: "MatchTable") -> "Booleans":
    return matches.lost


def _attacker_won(matches: "MatchTable") -> "Booleans":
    return matches.won[:, ATTACKER]


def _decided(matches: "MatchTable") -> "Booleans":
    return matches.decided


def _turns_per_match(matches: "MatchTable") -> "Floats":
    return matches.turns


METRICS = GameMetrics(
    of_matches=(
        Metric(
            "attacker_wins_rate", "attacker wins", SHARE, "matches that the attacker won", ended_as(ATTACKER_WINS),
            PART, rank=10, uses=_EVALUATED | Use.HEADLINE | Use.TILE | Use.COMPARISON,
            own=("win_rate", ROLES[ATTACKER]),
            lines=(PanelLine(_ENDED, "attacker wins"),
                   PanelLine(Panel("Games won as attacker", compared=True, alone=False))),
        ),
        Metric(
            "defender_wins_rate", "defender wins", SHARE, "matches that the defender won", ended_as(DEFENDER_WINS),
            PART, rank=20, uses=_EVALUATED | Use.TILE | Use.COMPARISON, own=("win_rate", ROLES[DEFENDER]),
            lines=(PanelLine(_ENDED, "defender wins"),
                   PanelLine(Panel("Games won as defender", compared=True, alone=False))),
        ),
        Metric(
            "rules_broken_rate", "attacker breaks the rules", SHARE, "matches in which the attacker said the word",
            ended_as(RULES_BROKEN),
            PART, rank=40, uses=Use.TILE | Use.EVALUATION | Use.SETTINGS,
            lines=(PanelLine(_ENDED, "rules broken"),),
        ),
        Metric(
            "tied_rate", "tied", SHARE, "matches whose turns were used up", ended_as(TIED), PART, rank=30,
            uses=Use.TILE | Use.EVALUATION | Use.SETTINGS, lines=(PanelLine(_ENDED, "tied"),),
        ),
        ABORT_RATE,
        Metric(
            "decided_attacker_wins_rate", "attacker wins, of decided games", SHARE,
            "of matches with a winner, those that the attacker won", _attacker_won, PART, among=_decided, rank=45,
            uses=Use.TILE,
        ),
        Metric(
            "attacker_score_mean", "mean score of attackers", POINTS,
            "utilities: 1 and −1 for winner and loser, −1 for an attacker who breaks the rules, else 0", scores,
            by_seat=True, seats=FIRST, rank=64, uses=_EVALUATED, own=("score_mean", ROLES[ATTACKER]),
            lines=(PanelLine(_SCORES, "attacker"),),
        ),
        Metric(
            "defender_score_mean", "mean score of defenders", POINTS,
            "utilities: 1 and −1 for winner and loser, else 0", scores, by_seat=True,
            seats=SECOND, rank=66, uses=_EVALUATED, own=("score_mean", ROLES[DEFENDER]),
            lines=(PanelLine(_SCORES, "defender"),),
        ),
        Metric(
            "turns_mean", "turns in a match", TURNS, "the attacker's moves", _turns_per_match, rank=62,
            uses=_EVALUATED | Use.TILE | Use.WHOLE | Use.SETTINGS,
            lines=(PanelLine(Panel("Turns of the attacker"), "turns"),),
        ),
        replace(MESSAGES_MEAN, uses=Use.WHOLE | Use.SETTINGS, lines=()),
        TOKENS_MEAN,
        WORDS_MEAN,
        VIOLATIONS_MEAN,
    ),
    of_models=(
        replace(MODEL_SCORE, uses=Use.RESULT | Use.DIFFERENCE | Use.SETTINGS),
        Metric("win_rate", "won", SHARE, "matches that it won", _won, PART, by_seat=True,
               uses=Use.HEADLINE | Use.RESULT | Use.DIFFERENCE | Use.SETTINGS),
        Metric("loss_rate", "lost", SHARE, "matches that it lost; a broken rule is no loss, as it has no winner", _lost,
               PART, by_seat=True, uses=Use.RESULT | Use.SETTINGS),
    ),
    of_settings=(PARTNER_SCORE, OWN_VIOLATIONS_MEAN),
    tones={ATTACKER_WINS: FIRST_WINS, DEFENDER_WINS: SECOND_WINS, RULES_BROKEN: BAD},
)  # fmt: skip
