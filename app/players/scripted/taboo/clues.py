"""The built-in clues of taboo: what leads people to say a word, and which word a text hints at.

`data/taboo/clues.json` maps a word to its category, a few associations, and hints: questions whose natural answer is
the word. The table is read on first use.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log
from pathlib import Path

TABLE = Path(__file__).resolve().parents[4] / "data" / "taboo" / "clues.json"
LONGEST = 2000  # characters of a text that are read

_TERM = re.compile(r"[a-z]{2,}")
_TOO_COMMON = 0.06  # terms in a larger share of the table's entries tell nothing
_RANKED = 10  # words that are considered
_NOTHING = 40  # nats below the likeliest word; adds nothing to a sum of odds
_ELSEWHERE = 5.0, 4.0  # how well a word outside the table fits, in nats: initially, and for each further text


@dataclass(frozen=True, slots=True)
class Clues:
    """The table's entry for a word."""

    word: str
    category: str
    associations: tuple[str, ...]
    hints: tuple[str, ...]


@lru_cache(maxsize=1)
def table() -> Mapping[str, Clues]:
    """The clue table, by word."""
    raw = json.loads(TABLE.read_text(encoding="utf-8"))
    return {
        word: Clues(word, entry["category"], tuple(entry["associations"]), tuple(entry["hints"]))
        for word, entry in raw.items()
    }


@lru_cache(maxsize=8192)  # a player rereads the whole conversation at each turn
def terms(text: str) -> frozenset[str]:
    """The words of a text in their plainest form."""
    return frozenset(_stem(term) for term in _TERM.findall(text[:LONGEST].lower()))


def beliefs(texts: Sequence[str], ruled_out: frozenset[str] = frozenset()) -> list[tuple[str, float]]:
    """The words that `texts` hint at, with their probabilities, likeliest first.

    The probabilities leave room for words that are not in the table. `ruled_out` are terms, as `terms` returns them.
    """
    weights, words_of = _weights(), _words_of()
    scores: defaultdict[str, float] = defaultdict(float)
    for term in sorted(weights.keys() & frozenset().union(*map(terms, texts))):  # sums of fractions depend on the order
        for word, weight in weights[term]:
            scores[word] += weight
    for term in words_of.keys() & ruled_out:
        for word in words_of[term]:
            scores.pop(word, None)
    if not scores:
        return []
    elsewhere = _ELSEWHERE[0] + _ELSEWHERE[1] * len(texts)
    top = max(elsewhere, *scores.values())
    total = sum([exp(score - top) for score in scores.values() if score > top - _NOTHING]) + exp(elsewhere - top)
    least = sorted(scores.values())[-_RANKED:][0]
    likely = sorted((-score, word) for word, score in scores.items() if score >= least)
    return [(word, exp(-score - top) / total) for score, word in likely[:_RANKED]]


@lru_cache(maxsize=1)
def _words_of() -> Mapping[str, tuple[str, ...]]:
    """The words of the table by what `terms` makes of them."""
    return {plain: tuple(word for word in table() if _stem(word) == plain) for plain in set(map(_stem, table()))}


@lru_cache(maxsize=1)
def _weights() -> Mapping[str, tuple[tuple[str, float], ...]]:
    """For each term, the words whose clues contain it, weighted by how rare the term is in the table."""
    holders: defaultdict[str, list[str]] = defaultdict(list)
    for word, entry in table().items():
        for term in terms(" ".join((entry.category, *entry.associations, *entry.hints))):
            holders[term].append(word)
    size = len(table())
    return {
        term: tuple((word, log(size / len(words))) for word in words)
        for term, words in holders.items()
        if len(words) <= _TOO_COMMON * size
    }


def _stem(term: str) -> str:
    return term[:-1] if len(term) > 3 and term.endswith("s") and not term.endswith("ss") else term
