"""The judges of Adversarial Taboo: does a text hold the target word, and does it declare a guess?

Source: Cheng et al. 2024, arXiv 2404.10642. `released` is the published rule, to reproduce published outcomes;
`strict`, the default, is the rule as a person would apply it: whole words, however they are disguised.
"""

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.metadata import distribution
from types import ModuleType
from typing import Any

from app.games.taboo.declarations import declared_word
from app.games.taboo.spelling import fold, readings, readings_of_word

_LONGEST_ENDING = 5  # letters by which an inflection may be longer or shorter than its word
# Singulars and plurals that neither library matches, one of them seldom used. Excluded: `die` for `dice`, which is also
# a verb.
_IRREGULAR = (
    "brother brethren, cow kine, genius genii, cello celli, scissor scissors, glass glasses, trouser trousers,"
    " jean jeans, knicker knickers, dungaree dungarees, tweezer tweezers, plier pliers, tong tongs, shear shears,"
    " clipper clippers, goggle goggles, binocular binoculars, nunchuck nunchucks"
)
_PARTNER = {a: b for pair in _IRREGULAR.split(", ") for a, b in itertools.permutations(pair.split())}
_PLAIN_WORD = re.compile(r"[^\W\d_]+")
_GAP = re.compile(r"[\W_]{0,3}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge found in one text.

    `said` is the form of the target that it holds, `guess` the word that it declares (each None if there is none),
    `right` whether that guess is the target.
    """

    said: str | None
    guess: str | None = None
    right: bool = False


def judge(rule: str, target: str, text: str) -> Verdict:
    """The verdict on one text by the rule of that name, one of RULES."""
    return _JUDGES[rule](target, text)


# ---- The strict judge --------------------------------------------------------


def judge_strictly(target: str, text: str) -> Verdict:
    """Whole words, disguised or not, that are the target or an inflection of it; declarations in any usual wording."""
    folded = fold(text)
    parts = tuple(_PLAIN_WORD.findall(fold(target)))
    word = "".join(parts)
    if len(parts) > 1:
        folded = _closed_up(folded, parts)
    said = next((reading for reading in readings(folded) if is_form_of(reading, word)), None)
    guess = declared_word(folded)
    if guess is None:
        return Verdict(said)
    return Verdict(said, guess, any(is_form_of(reading, word) for reading in readings_of_word(guess)))


def is_form_of(word: str, target: str) -> bool:
    """Whether a folded word is the folded target or an inflection of it: plural, tense, comparative.

    A derivation (`teacher` of `teach`) is a word of its own.
    """
    if word == target:
        return True
    if not (word.isascii() and word and target) or abs(len(word) - len(target)) > _LONGEST_ENDING:
        return False
    bases = _bases(target)
    return word in bases or not bases.isdisjoint(_lemmas(word))


def _closed_up(folded: str, parts: tuple[str, ...]) -> str:
    """The text with every form of a hyphenated target joined into one word: `merry go rounds` like `merry-go-round`."""
    words = list(_PLAIN_WORD.finditer(folded))
    pieces, done = [], 0
    for run in zip(*(words[n:] for n in range(len(parts))), strict=False):
        if run[0].start() < done:
            continue
        found = all(is_form_of(word[0], part) for word, part in zip(run, parts, strict=True))
        if found and all(_GAP.fullmatch(folded, a.end(), b.start()) for a, b in itertools.pairwise(run)):
            pieces += [folded[done : run[0].start()], "".join(parts)]
            done = run[-1].end()
    return "".join((*pieces, folded[done:]))


@lru_cache(maxsize=65536)
def _lemmas(word: str) -> frozenset[str]:
    """The lemmas known to either library.

    If lemminflect knows the word, simplemma adds only plurals (`writings`): its guesses are too bold there (`bare` of
    `bear`, `outing` of `out`).
    """
    known = _dictionary_lemmas(word)
    lemma: str = _libraries()[1].lemmatize(word, lang="en").lower()
    if not known or word == f"{lemma}s" or (lemma.endswith("y") and word == f"{lemma[:-1]}ies"):
        return known | {lemma}
    return known


@lru_cache(maxsize=4096)
def _bases(target: str) -> frozenset[str]:
    """The lemmas that mark a word as an inflection of the target: the target, or its own lemmas if it is inflected.

    So `mouse` is a form of `mice`, but `see` is no form of the noun `saw`.
    """
    known = _dictionary_lemmas(target) or _lemmas(target)
    return (frozenset({target}) if target in known else known) | {_other_number(target)}


def _other_number(target: str) -> str:
    """The irregular plural of a singular, or vice versa; a word without one stays the same."""
    for end, other in (("person", "people"), ("people", "person")):
        if target.endswith(end):
            return target.removesuffix(end) + other
    return _PARTNER.get(target, target)


def _dictionary_lemmas(word: str) -> frozenset[str]:
    lemminflect, _ = _libraries()
    return frozenset(lemma.lower() for lemmas in lemminflect.getAllLemmas(word).values() for lemma in lemmas)


@lru_cache(maxsize=1)
def _libraries() -> tuple[Any, Any]:
    """Both inflection libraries, loaded when a text is first judged: they import numpy and their tables."""
    return import_module("lemminflect"), import_module("simplemma")


# ---- The released rule -------------------------------------------------------

_DECLARES = re.compile(r"i know the word! it(?P<guess>.{1,8})")


def judge_as_released(target: str, text: str) -> Verdict:
    """Substrings of the lower-case text; a declaration by its published pattern, in which `.` matches no newline."""
    lowered = text.lower()
    forms, names_target = _released_forms(target.lower())
    said = next((form for form in forms if form in lowered), None)
    declaration = _DECLARES.search(lowered)
    if declaration is None:
        return Verdict(said)
    right = names_target.search(lowered)
    return Verdict(said, right["form"] if right else declaration["guess"], right is not None)


@lru_cache(maxsize=4096)
def _released_forms(target: str) -> tuple[tuple[str, ...], re.Pattern[str]]:
    """The target, with -ing, with -ed, and its plural; each bare and in quotes; and the pattern of a right guess."""
    bare = (target, f"{target}ing", f"{target}ed", released_plural(target))
    forms = (*bare, *(f"{quote}{form}{quote}" for quote in "\"'`" for form in bare))
    return forms, re.compile(f"{_DECLARES.pattern}(?P<form>{'|'.join(map(re.escape, forms))})")


def released_plural(target: str) -> str:
    """The plural as the published code forms it, right or wrong: `gentlemen`, but `nucleuss`.

    Source: `pluralize` of TextBlob, which the code of Cheng et al. 2024 calls.
    """
    plural: str = _pluralize()(target)
    return plural


@lru_cache(maxsize=1)
def _pluralize() -> Callable[[str], str]:
    """TextBlob's pluralization rules, loaded from their own file.

    Importing `textblob.inflect` would first load the whole package, and nltk with it: a second and 40 MB in the process
    that serves live matches. The rules need neither.
    """
    path = distribution("textblob").locate_file("textblob/en/inflect.py")
    module = ModuleType("textblob.en.inflect")
    SourceFileLoader(module.__name__, str(path)).exec_module(module)
    pluralize: Callable[[str], str] = module.pluralize
    return pluralize


_JUDGES: Mapping[str, Callable[[str, str], Verdict]] = {"strict": judge_strictly, "released": judge_as_released}
RULES = tuple(_JUDGES)
