"""The texts of a scripted attacker of Adversarial Taboo that plays as people do. Pure.

Small talk between the clues, single words where the plain attacker uses sentences, reactions to the answers: a model
that learns to defend against it learns that not every text points to the word, and to wait for more.
"""

import random
from collections.abc import Iterator
from itertools import chain

from app.players.scripted.taboo import clues

_CHATS = 0.3  # how often a turn gives no clue
_HINTS = 0.35  # how often a clue is a whole question


def lures(word: str, rng: random.Random) -> Iterator[str]:
    """Texts to try, the best first."""
    entry = clues.table().get(word.lower())
    chat = rng.sample(_CHAT, len(_CHAT))
    if entry is None or rng.random() < _CHATS:
        return iter(chat)
    hints = [_hurried_question(hint, rng) for hint in rng.sample(entry.hints, len(entry.hints))]
    words = [rng.choice(_FRAMES).format(each) for each in rng.sample(entry.associations, len(entry.associations))]
    return chain(*((hints, words) if rng.random() < _HINTS else (words, hints)), chat)


def _hurried_question(hint: str, rng: random.Random) -> str:
    """A question as somebody in a hurry types it."""
    return rng.choice(_OPENINGS) + hint[0].lower() + hint[1:].removesuffix("?") + rng.choice(("?", "", " ?"))


_OPENINGS = ("", "", "", "ok so ", "do you know ", "easy one: ", "tell me, ")
_FRAMES = (
    "think of {}",
    "it has to do with {}",
    "something with {}",
    "{}?",
    "what goes with {}?",
    "what do you think of when i say {}?",
    "hint: {}",
    "one more thing: {}",
    "do you like {}? i mean what belongs to it",
    "there is some {} in it, in a way",
    "you often see it together with {}",
    "people say {} when they talk about it",
    "it makes me think of {}",
    "{}, you know",
)
_CHAT = (
    "hi",
    "hello! how are you today?",
    "hey there, ready to play?",
    "how is your day going?",
    "what did you do yesterday?",
    "what do you like to do at the weekend?",
    "i went for a walk today",
    "let me think about it",
    "i have a question for you, which things do you like?",
    "what is the weather like where you live?",
    "it is a nice day",
    "do you have any hobbies?",
    "what is your favourite thing in the world?",
    "where are you from?",
    "no, not that",
    "good try",
    "not quite, but keep going",
    "hmm, close",
    "what else comes to your mind?",
    "why do you say that?",
    "haha ok",
    "that was not what i meant",
    "i am thinking of something, can you tell what it is?",
    "you will never find out",
    "ask me something",
    "did you sleep well?",
    "i like talking to you",
    "tell me about yourself",
)
