"""How kind and useful a text is, by the words in it: a rough guess that needs no model. Pure."""

import re
from collections.abc import Sequence

LEAST, MOST = 1, 7
MIDDLE = 4.0
_GAIN, _LOSS, _SHORT = 0.5, 1.25, 1.0  # changes of the rating
_FEW_WORDS = 4
_WORD = re.compile(r"[a-z']+")

_KIND_WORDS = """
    advice apologise apologize ask calm care careful carefully check clear consider explain fair friendly gently glad
    happy help helpful helps honest honestly kind kindly learn listen offer open patient plan please polite
    practise prepare promise respect safe share simple slowly sorry steady step steps suggest support sure thank thanks
    together trust truth try understand useful welcome
"""
_UNKIND_WORDS = """
    annoying anyway blame boring bother cheat crooks dirt dull dumb fool foolish greedy hate hide idiot ignore lazy
    lie lies loser losers misers mock nobody none nonsense nothing obvious obviously odd pathetic pointless pretend
    problem quit ridiculous rubbish rude shout silly sneak steal stupid throw tiresome trick ugly useless waste
    whatever whining worthless wrong
"""
KIND, UNKIND = frozenset(_KIND_WORDS.split()), frozenset(_UNKIND_WORDS.split())


def rating(text: str) -> float:
    """A rating from 1, unkind and useless, to 7."""
    words = _WORD.findall(text.lower())
    score = MIDDLE + _GAIN * len(KIND.intersection(words)) - _LOSS * len(UNKIND.intersection(words))
    return max(float(LEAST), min(float(MOST), score - (_SHORT if len(words) < _FEW_WORDS else 0)))


def liveliness(text: str) -> float:
    """How much one would like to continue the conversation, from 1 to 7: higher for a text that is kind, asks back and
    is longer than a word.
    """
    words = _WORD.findall(text.lower())
    score = rating(text) - 1 + min(1.5, len(words) / 20) + (1.0 if "?" in text else 0.0)
    return max(float(LEAST), min(float(MOST), score))


def unkind_words(text: str) -> Sequence[str]:
    """The unkind words of a text, each once, in order."""
    return list(dict.fromkeys(word for word in _WORD.findall(text.lower()) if word in UNKIND))


def kind_words(text: str) -> Sequence[str]:
    """The kind words of a text, each once, in order."""
    return list(dict.fromkeys(word for word in _WORD.findall(text.lower()) if word in KIND))
