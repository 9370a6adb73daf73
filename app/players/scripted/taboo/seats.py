"""The scripted attacker and defender of Adversarial Taboo. Pure: both compute everything from the view.

The attacker asks questions whose natural answer is its word. The defender answers as people do, which sometimes means
saying the word unawares, and declares when the texts it has received point to one word.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from app.games.base import View
from app.games.taboo.judges import judge_strictly
from app.players.scripted.taboo import chitchat, clues

_SURE = 0.8  # belief at which the defender may declare before its last turn
_RATHER_SURE = 0.5  # belief at which it declares at its last turn: a wrong guess loses as much as a right one wins
_DECLARES = 0.6  # how often it does so when it is sure
_SUSPECTS = 0.2  # belief from which it talks about the word that it has in mind
_SLIPS = 0.3  # how often it says what it has in mind, though it might be the word


Lures = Callable[[str, random.Random], Iterator[str]]  # texts to try for a word, best first


def attack(view: View, rng: random.Random, lures: Lures | None = None) -> str:
    """The attacker's next text, from its own lures or from `lures`. It never contains the word, by either judge."""
    word = str(view.secret["word"])
    said = {entry.text for entry in view.transcript if entry.by == "you"}
    for text in (lures or _lures)(word, rng):
        if text not in said and _is_safe(text, word):
            return text
    return next(text for text in _LAST_RESORTS if _is_safe(text, word))


def defend(view: View, rng: random.Random) -> str:
    """The defender's next text: a declaration when it is sure enough, else an answer."""
    heard = [entry.text or "" for entry in view.transcript if entry.by == "partner"]
    spoken = [entry.text or "" for entry in view.transcript if entry.by == "you"]
    # The attacker may not say the word, and if the defender had said it, the game would be over.
    ruled_out = frozenset().union(*map(clues.terms, heard[-_REMEMBERED:]), *map(clues.terms, spoken[-_REMEMBERED:]))
    ranked = clues.beliefs(heard[-_REMEMBERED:], ruled_out)
    word, belief = ranked[0] if ranked else ("", 0.0)
    if int(view.facts["turns_left"]) <= 1:
        return _declaration(word) if belief >= _RATHER_SURE else _new_answer(heard, spoken, ranked, rng, careful=True)
    if belief >= _SURE and len(heard) > 1 and rng.random() < _DECLARES:
        return _declaration(word)
    return _new_answer(heard, spoken, ranked, rng, careful=False)


def _declaration(word: str) -> str:
    return f'I know the word! It is "{word}"!'


# ---- Attacking -------------------------------------------------------------------


def _lures(word: str, rng: random.Random) -> Iterator[str]:
    """Texts to try, the best first: the word's own hints, then its associations, then small talk."""
    entry = clues.table().get(word.lower())
    if entry is not None:
        yield from rng.sample(entry.hints, len(entry.hints))
        pairs = [(a, b) for a in entry.associations for b in entry.associations if a < b]
        for first, second in rng.sample(pairs, len(pairs)):
            yield rng.choice(_PAIRED).format(first, second)
    yield from rng.sample(_SMALL_TALK, len(_SMALL_TALK))


def _is_safe(text: str, word: str) -> bool:
    """Whether no judge finds the word in a text: not even inside another word, where the released one looks."""
    if word.lower() in text.lower():
        return False
    verdict = judge_strictly(word, text)
    return verdict.said is None and verdict.guess is None


# ---- Defending -------------------------------------------------------------------


def _new_answer(
    heard: list[str], spoken: list[str], ranked: list[tuple[str, float]], rng: random.Random, *, careful: bool
) -> str:
    """An answer to the attacker's last text that was not given before; a `careful` one names no word that may be the
    target.
    """
    likely = frozenset(word for word, _ in ranked)
    lines: list[Iterator[str]] = []
    if ranked and ranked[0][1] >= _SUSPECTS:
        word = ranked[0][0]
        around = [each for each in clues.table()[word].associations if not clues.terms(each) & likely]
        if not careful and rng.random() < _SLIPS:
            lines.append(_filled_patterns(_NAMING, [word], spoken, rng))
        lines.append(_filled_patterns(_CIRCLING, around, spoken, rng))
    talk = chitchat.answers(heard[-1] if heard else "", spoken, rng)
    lines.append(line for line in talk if not clues.terms(line) & likely)
    return next(chain(*lines, _LAST_RESORTS))


def _filled_patterns(
    patterns: Sequence[str], words: Sequence[str], spoken: Sequence[str], rng: random.Random
) -> Iterator[str]:
    """The patterns not used yet, in random order, each filled with one of the words."""
    for pattern in rng.sample(patterns, len(patterns)):
        if words and not chitchat.was_used(pattern, spoken):
            yield pattern.format(rng.choice(words))


_REMEMBERED = 12  # texts of each side that the defender keeps in mind
_PAIRED = (
    "What comes to mind first when I say {} and {}?",
    "Think of {} and {} together. What do you see?",
    "If somebody talks about {} and {}, what are they talking about?",
)
_SMALL_TALK = (
    "What did you do last weekend?",
    "Tell me about a place where you felt happy.",
    "Which subject did you enjoy most when you were young?",
    "What would you buy with a million?",
    "Describe what you can see around you.",
    "What do you talk about with your neighbours?",
    "What was the last story in the news that made you think?",
    "What is your favourite film about?",
    "What do you dream of?",
    "Which job would you never want to have?",
    "What makes you laugh?",
    "What would you take along to a desert island?",
    "What do you miss most from the old days?",
    "What is the strangest gift you ever got?",
    "Who do you admire, and what for?",
    "What did you learn recently?",
    "What would you change about your town?",
    "What are you afraid of?",
    "How would you explain your work to a toddler?",
    "What is the first thing you reach for when you wake up?",
)
_LAST_RESORTS = ("And you?", "Go on.", "Why?", "Hmm...", "???")
_NAMING = (
    "I would say {}, but there may be a better answer.",
    "My first thought was {}.",
    "Maybe {}? Or something like that.",
    "{}, I suppose. Why do you ask?",
)
_CIRCLING = (
    "That makes me think of {}.",
    "Something to do with {}, I suppose.",
    "I have {} on my mind now. Do you mean that?",
    "Oh, {} comes to mind. Tell me more.",
)
