"""The metrics of negotiations. Pure.

Source: Liao, Tomlin & Klein 2024, arXiv 2406.18872, whose table has most of them.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from app.games.base import GROUNDED
from app.games.metrics import (
    ABORT_RATE,
    ABOVE,
    FIRST,
    FIRST_PROPOSAL_MEAN,
    GOOD,
    MEDIAN,
    MESSAGES_MEAN,
    MODEL_SCORE,
    MOVES,
    OF_THE_BEST,
    OWN_VIOLATIONS_MEAN,
    PART,
    PARTNER_SCORE,
    POINTS,
    RATIO,
    SCORE_MEAN,
    SECOND,
    SHARE,
    TIMES,
    TOKENS,
    TOKENS_MEAN,
    VIOLATIONS_MEAN,
    WORDS,
    WORDS_MEAN,
    GameMetrics,
    Metric,
    Panel,
    PanelLine,
    Use,
    Value,
    moves,
    scores,
    tokens,
    words,
)
from app.games.negotiation import measures
from app.games.negotiation.claims import CLAIMS_VERSION
from app.games.negotiation.outcomes import DEAL
from app.games.negotiation.talk import LANGUAGE

if TYPE_CHECKING:
    from app.games.match_table import Booleans, Floats, MatchTable

_PARETO = Panel("Pareto-optimal deals")
_TALK = Use.EVALUATION | Use.CONDITION | Use.WHOLE | Use.SETTINGS
_EVALUATED = Use.TILE | Use.COMPARISON | Use.EVALUATION | Use.CONDITION


def _agreed(matches: "MatchTable") -> "Booleans":
    return matches.agreed


def _pareto(matches: "MatchTable") -> "Booleans":
    return matches.pareto


def _unspoken(matches: "MatchTable") -> "Floats":
    return matches.unspoken


def _joint_share(matches: "MatchTable") -> "Floats":
    """(n,) The joint shares. Raises ValueError if they were not read."""
    if matches.joint_share is None:
        raise ValueError("expected what both got as a share of the most, got nothing that was read")
    return matches.joint_share


def _end_value(name: str) -> Value:
    """(n,) The measure of that name, taken when each match ended."""
    return lambda matches: matches.measure(name)


def _grounded(matches: "MatchTable") -> "Floats":
    return matches.measure_by_seat(GROUNDED)


_SCORE_MEDIAN = Metric(
    "score_median", "median score", POINTS, "scores of both seats over all matches", scores, MEDIAN, by_seat=True,
    above=True,
)  # fmt: skip
_AGREED_SCORE_MEAN = Metric(
    "agreed_score_mean", "mean score of deals", POINTS, "scores over matches with a deal", scores, by_seat=True,
    among=_agreed, above=True, rank=30, uses=Use.TILE | Use.EVALUATION | Use.CONDITION, own=("agreed_score_mean", None),
)  # fmt: skip
_AGREED_SCORE_MEDIAN = Metric(
    "agreed_score_median", "median score of deals", POINTS, "scores over matches with a deal", scores, MEDIAN,
    by_seat=True, among=_agreed, above=True, own=("agreed_score_median", None),
)  # fmt: skip

# What others would have got in the contexts of these matches: reference lines for scores.
_REFERENCES = (
    Metric("random_score_mean", "score of a random complementary split", POINTS,
           "what a seat has on average in these contexts where each item goes to either seat at random",
           _end_value(measures.RANDOM_SCORE), rank=130, uses=Use.WHOLE),
    Metric("demand_score_mean", "score of the demand rule", POINTS,
           "what a seat has on average where the seat that begins gets all of the type that is worth the most to it,"
           " and the partner the rest", _end_value(measures.DEMAND_SCORE), rank=131, uses=_TALK),
    Metric("best_score_mean", "best joint score", POINTS,
           "half of the most that both can have together, in the utilities with λ", _end_value(measures.BEST_SCORE),
           rank=132, uses=Use.WHOLE),
)  # fmt: skip

METRICS = GameMetrics(
    of_matches=(
        replace(SCORE_MEAN, above=True, references=tuple(each.name for each in _REFERENCES)),
        replace(_SCORE_MEDIAN, own=("score_median", None)),
        replace(MESSAGES_MEAN, above=True, explanation="accepted moves of both seats, proposals included"),
        replace(TOKENS_MEAN, above=True),
        replace(WORDS_MEAN, above=True, rank=100, uses=Use.TILE | Use.SETTINGS),
        replace(ABORT_RATE, above=True),
        Metric(
            "agreement_rate", "agreement", SHARE, "matches with a deal", _agreed, PART, above=True, rank=20,
            uses=_EVALUATED | Use.WHOLE | Use.SETTINGS,
            lines=(PanelLine(Panel("Agreement", compared=True), "agreement"),),
        ),
        _AGREED_SCORE_MEAN,
        _AGREED_SCORE_MEDIAN,
        Metric("agreed_messages_mean", "messages in a deal", MOVES, "accepted moves, of matches with a deal", moves,
               among=_agreed, above=True, uses=Use.SETTINGS),
        Metric("agreed_tokens_mean", "tokens in a deal", TOKENS, "tokens of the accepted moves, of matches with a deal",
               tokens, among=_agreed, above=True, uses=Use.SETTINGS),
        Metric("agreed_words_mean", "words in a deal", WORDS, "words of the accepted moves, of matches with a deal",
               words, among=_agreed, above=True, uses=Use.SETTINGS),
        Metric(
            "pareto_rate", "Pareto-optimal, of all", SHARE,
            "of all matches, those with a deal that no full split betters for one seat without loss to the other, in"
            " the utilities with λ",
            _pareto, PART, above=True, rank=50, uses=Use.TILE | Use.EVALUATION | Use.WHOLE | Use.SETTINGS,
            lines=(PanelLine(_PARETO, "of all games"),),
            note="Pareto-optimal: no full split is better for one and no worse for the other.",
        ),
        Metric(
            "agreed_pareto_rate", "Pareto-optimal, of deals", SHARE,
            "of matches with a deal, those that no full split betters so", _pareto, PART,
            among=_agreed, above=True, rank=40,
            uses=Use.TILE | Use.COMPARISON | Use.EVALUATION | Use.WHOLE | Use.SETTINGS,
            lines=(PanelLine(_PARETO, "of agreed games"),),
            note="Pareto-optimal: no full split is better for one and no worse for the other.",
        ),
        VIOLATIONS_MEAN,
        FIRST_PROPOSAL_MEAN,
        Metric(
            "unspoken_rate", "deals never said in the talk", SHARE,
            "of the deals, those whose split was never named in the talk before the proposals: the share of deals that"
            " the talk does not account for",
            _unspoken, PART, rank=120, uses=Use.EVALUATION | Use.CONDITION | Use.WHOLE | Use.SETTINGS,
            lines=(PanelLine(Panel("Deals never said in the talk", compared=True)),),
            note="Never said: no message of the talk named the split that both then proposed.",
        ),
        Metric(
            "named_rate", "a split is named", SHARE,
            "matches in whose talk a message names a split that adds up, as either seat reads it",
            _end_value(measures.NAMED), PART, rank=121, uses=Use.WHOLE | Use.SETTINGS,
        ),
        Metric(
            "grounded_rate", "proposals of the last split named", SHARE,
            "of the proposals, those that ask for the seat's share of the last split named in the talk, as it reads it",
            _grounded, PART, by_seat=True, above=True, rank=122,
            uses=Use.EVALUATION | Use.CONDITION, own=("grounded_rate", None),
            lines=(PanelLine(Panel("Proposals of the last split named", compared=True)),),
        ),
        Metric(
            "first_grounded_rate", "first proposals of the last split named", SHARE,
            "the same, of first proposals alone", _end_value(measures.FIRST_GROUNDED), PART, rank=123, uses=Use.WHOLE,
        ),
        Metric(
            "second_grounded_rate", "second proposals of the last split named", SHARE,
            "the same, of second proposals alone", _end_value(measures.SECOND_GROUNDED), PART, rank=124, uses=Use.WHOLE,
        ),
        Metric(
            "misquoted_rate", "acceptances that name another split", SHARE,
            "of matches with a message that accepts in words and says what (“agreed: …”, “deal, …”), those whose last"
            " one names another split than the partner's", _end_value(measures.MISQUOTED), PART, rank=125,
            uses=Use.WHOLE | Use.SETTINGS,
        ),
        Metric(
            "last_offer_agreement_rate", "agreement on the last split named", SHARE,
            "matches that would have ended in a deal, had both seats proposed their share of the last split that each"
            " of them reads in the talk", _end_value(measures.LAST_OFFER_AGREED), PART, rank=126,
            uses=_TALK, lines=(PanelLine(Panel("Agreement on the last split named", compared=True)),),
        ),
        Metric(
            "last_offer_score_mean", "mean score of the last split named", POINTS,
            "scores over all matches, had both seats proposed so", _end_value(measures.LAST_OFFER_SCORE), rank=127,
            uses=_TALK,
            note="The last split named: what both would have, had each proposed its share of the last split that it"
            " reads in the talk.",
        ),
        Metric(
            "last_offer_pareto_rate", "Pareto-optimal, of deals on the last split named", SHARE,
            "of the matches that would have ended in a deal so, those that no full split betters",
            _end_value(measures.LAST_OFFER_PARETO), PART, rank=128, uses=Use.WHOLE | Use.SETTINGS,
        ),
        *_REFERENCES,
        Metric(
            "above_share", "share of transcripts above the mean score", SHARE,
            "of all transcripts, those above average", None, PART, seats=ABOVE, rank=80, uses=Use.TILE,
        ),
        Metric(
            "score_ratio", "score ÷ the base’s", TIMES,
            "in campaigns: a model's mean score divided by that of the base under the same condition", scores, RATIO,
            by_seat=True, rank=110, uses=Use.EVALUATION | Use.CONDITION,
            lines=(PanelLine(Panel("Mean score ÷ the base's", compared=True)),),
            note="Score ÷ the base’s: both models’ mean scores in the same matches. For its range, matches are drawn"
            " with replacement for both models together.",
        ),
    ),
    of_models=(
        MODEL_SCORE,
        _SCORE_MEDIAN,
        replace(_AGREED_SCORE_MEAN, uses=Use.RESULT | Use.DIFFERENCE | Use.SETTINGS),
        _AGREED_SCORE_MEDIAN,
        Metric("grounded_rate", "proposals of the last split named", SHARE,
               "of its proposals, those that ask for its share of the last split named in the talk, as it reads it",
               _grounded, PART, by_seat=True, uses=Use.SETTINGS),
        Metric("first_seat_score_mean", "mean score in the first seat", POINTS, "what it got in the first seat", scores,
               by_seat=True, seats=FIRST),
        Metric("second_seat_score_mean", "mean score in the second seat", POINTS, "what it got in the second seat",
               scores, by_seat=True, seats=SECOND),
    ),
    tones={DEAL: GOOD},
    claims_version=CLAIMS_VERSION,
    of_settings=(
        PARTNER_SCORE,
        Metric("joint_share_mean", "share of the best joint score", OF_THE_BEST,
               "points of both, before λ, over those of the split with the highest joint score; 0 without a deal",
               _joint_share),
        OWN_VIOLATIONS_MEAN,
    ),
    language=LANGUAGE,
)  # fmt: skip
