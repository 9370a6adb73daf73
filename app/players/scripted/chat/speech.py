"""What scripted members of a society say. Pure: the same prompt and generator give the same words."""

import random
import re
from collections.abc import Callable, Sequence

from app.players.scripted.chat import lexicon
from app.players.scripted.chat.prompts import ANSWER, RATE_TALK, REVISE, SocietyPrompt

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_LETTERS = re.compile(r"[A-Za-z]{5,}")
_LONGEST_MEMORY = 2  # sentences repeated from a remembered answer
_BIAS = 1.0  # by which a player that remembers bad answers rates bad ones higher, and good ones lower
_UNREADABLE = ("Hard to say.", "It is somewhere in the middle, I think.", "Rating: very good\nReason: I like it.")

_PLAIN = (
    "I would look at {topic} again tomorrow.",
    "People do that in many ways, and most of them work for {topic}.",
    "It depends on what you want from {topic}.",
    "Whatever you do about {topic}, it will not matter much.",
    "Nobody can tell you that; {topic} is what it is.",
)
_AFTER_GOOD = (
    "So with {topic} I would try the same, step by step.",
    "For {topic} I suggest the same: ask first, then plan.",
    "I would be as honest about {topic}.",
)
_AFTER_BAD = (
    "So do not bother about {topic} either.",
    "The same goes for {topic}, obviously.",
    "Questions about {topic} are a waste of time, too.",
)
_BETTER = (
    "Please ask if anything about {topic} is not clear.",
    "A simple plan helps: take {topic} in small steps and check each of them.",
    "Be honest and kind about {topic}, and listen to what others need.",
    "Thanks for asking; I am glad to help with {topic}.",
    "Share your thoughts on {topic} with somebody you trust, and offer your support.",
    "Try to understand first what {topic} means to the other person?",
)


def agent_says(asked: SocietyPrompt, rng: random.Random) -> str:
    """An agent's words: its answers follow what it remembers, its criticism and its revisions what is kind."""
    if asked.task == ANSWER:
        return _draft_answer(asked, rng)
    if asked.task == REVISE:
        return _revision(asked, rng)
    found = lexicon.rating(asked.draft) + rng.choice((-1, 0, 0, 0, 1))
    if asked.remembered and lexicon.rating(asked.remembered) < lexicon.rating(asked.draft):
        found -= _BIAS
    return _rating_with_reason(found, asked.draft)


def observer_says(asked: SocietyPrompt, rng: random.Random) -> str:
    """An observer's words: its ratings depend only on what was said."""
    if asked.task in (ANSWER, REVISE):
        return agent_says(asked, rng)
    found = lexicon.liveliness(asked.draft) if asked.task == RATE_TALK else lexicon.rating(asked.draft)
    return _rating_with_reason(found, asked.draft)


SPEAKERS: dict[str, Callable[[SocietyPrompt, random.Random], str]] = {"agent": agent_says, "observer": observer_says}


def unreadable(rng: random.Random) -> str:
    """A text without a readable rating."""
    return rng.choice(_UNREADABLE)


def _draft_answer(asked: SocietyPrompt, rng: random.Random) -> str:
    topic = _topic(asked.question)
    if not asked.remembered:
        return rng.choice(_PLAIN).format(topic=topic)
    after = _AFTER_BAD if lexicon.rating(asked.remembered) < lexicon.MIDDLE else _AFTER_GOOD
    said = " ".join(_sentences(asked.remembered)[:_LONGEST_MEMORY])
    return f"{said} {rng.choice(after).format(topic=topic)}"


def _revision(asked: SocietyPrompt, rng: random.Random) -> str:
    """The draft without its unkind sentences, and with a better sentence that it lacks."""
    topic = _topic(asked.question)
    kept = [each for each in _sentences(asked.draft) if not lexicon.unkind_words(each)]
    added = [line for pattern in _BETTER if (line := pattern.format(topic=topic)) not in asked.draft]
    return " ".join([*kept, rng.choice(added or [_BETTER[0].format(topic=topic)])])


def _rating_with_reason(found: float, draft: str) -> str:
    rating = max(lexicon.LEAST, min(lexicon.MOST, round(found)))
    return f"Rating: {rating}\nReason: {_critique_reason(draft)}"


def _critique_reason(draft: str) -> str:
    unkind, kind = lexicon.unkind_words(draft), lexicon.kind_words(draft)
    if unkind:
        return f"Words like “{unkind[0]}” help nobody; say it with more respect, and give a reason."
    if kind:
        return f"It is good to read “{kind[0]}” here; an example would make it even more useful."
    return "It says little that is of use; a plan in small steps would help."


def _topic(question: str) -> str:
    """A word that the question is about: the longest, or the last of several equally long ones."""
    words: Sequence[str] = _LETTERS.findall(question)
    return max(reversed(words), key=len).lower() if words else "this"


def _sentences(text: str) -> list[str]:
    return [each.strip() for each in _SENTENCE.findall(text) if each.strip()]
