"""Finds the word that a text declares: "I know the word! It is `cat`!" and what people write for it.

A declaration is an announcement ("I know the word") and, right after it, a guess ("it is cat"). "The word is cat"
without an announcement is none: "the word is very short" could not be told from it. A doubt in the announcement's
clause ("I don't know the word", "if I know the word"), a negated guess ("it is not cat") and a phrase that names
nothing ("it is so hard") make it none, too. The guess is the first word named; what follows is not weighed.
"""

import re

from app.games.spelling import SPELLED_OUT

_ADVERBS = (
    "absolutely|actually|already|also|believe|certainly|definitely|do|finally|guess|have|i|just|now|really|"
    "surely|that|then|think|totally"
)
_THE_WORD = r"(?:the|your|this|that) (?:(?:secret|target|hidden|taboo|mystery) )?word"
_ANNOUNCEMENT = re.compile(
    rf"\bi(?:'ve)?,?(?: (?:{_ADVERBS}),?){{0,4}} (?:know|got|guessed|figured out|worked out) "
    rf"(?:what {_THE_WORD} is|{_THE_WORD})\b"
)
_CLAUSE_END = re.compile(r"[.!?;:,]")
_DOUBT = re.compile(
    r"\b(?:not|never|[a-z]+n't|cannot|hardly|nor|neither|if|unless|until|till|when|whenever|once|before|whether|"
    r"should|could|would|can|must|doubt|wish|how|suppose|pretend|imagine|do|did)\b"
)
_CLAUSE = 120  # characters before an announcement in which a doubt is looked for
_REACH = 160  # characters after it in which the guess must lie

_CONNECTOR = (
    "all right|already|and|at last|because|but|definitely|finally|for sure|i am sure|i believe|i guess|i think|"
    "i'm certain|i'm sure|now|obviously|of course|ok|okay|so|surely|then|well|yeah|yes"
)
_BE = r"(?:'s|'ll be| is| was| are| (?:will|would|must|has to|'s got to|got to|should|might|could|may|can only) be)"
_LINK = re.compile(
    rf"\W{{0,8}}(?:(?:{_CONNECTOR})\b\W{{1,4}}){{0,3}}"
    rf"(?:(?:it|that|this|they|the (?:[a-z]+ )?word|the answer|your word|my guess){_BE}"
    r"|(?:is|could|might|must) it(?: be)?)\b[ :.,…*_~-]{0,8}"
)
# After these only a word at the end of its sentence is a guess: "I know the word: cat", "I know the word, its cat".
_SHORT_LINK = re.compile(
    r" is | ?[:-]{1,3} ?|\W{1,4}(?:and |so )?(?:its|it s|itis) |"
    r"[,!.]{0,3} ?(?=[\"'`“”«»‹›„「」『』*_]{1,3}\w)"
)
_HEDGE = re.compile(
    r"[^\w\s]{0,4}(?:a|actually|almost certainly|an|called|certainly|clearly|definitely|either|exactly|i believe|"
    r"i guess|i think|indeed|just|likely|maybe|most likely|most probably|my|named|none other than|obviously|of course|"
    r"only|perhaps|probably|really|simply|some|surely|the word|the|your)[ ,:]{1,3}"
)
_OPENING = re.compile(r"(?:[^\w\s@$¢]|_){0,6}")
_WORD = re.compile(r"[\w@$¢](?:[^\s,.;:?/\"`“”«»‹›„「」『』()\[\]{}<>…=+]*[^\W_])?")
_SENTENCE_END = re.compile(r"(?:[^\w\s]|_)*$|(?:[^\w\s.!?,;:…]|_)*[.!?,;:…]")
_NAMES_NOTHING = re.compile(
    r"a|about|an|and|anything|at|because|but|clear|difficult|easy|everything|for|from|going|hard|hardly|how|i|if|"
    r"in|it|like|me|my|neither|never|no|nor|not|nothing|obvious|of|on|or|out|quite|rather|related|so|something|"
    r"that|the|there|to|too|tricky|up|very|what|when|where|which|who|why|with|you|your"
)


def declared_word(folded: str) -> str | None:
    """The word that a folded text declares, as it is spelled there, or None when it declares none."""
    if " word" not in folded:
        return None
    text = " ".join(folded.split()).replace("« ", "«")
    for announcement in _ANNOUNCEMENT.finditer(text):
        before = text[max(0, announcement.start() - _CLAUSE) : announcement.start()]
        if _DOUBT.search(_CLAUSE_END.split(before)[-1]):
            continue
        guess = _guess(text[announcement.end() : announcement.end() + _REACH])
        if guess is not None:
            return guess
    return None


def _guess(tail: str) -> str | None:
    link = _LINK.match(tail)
    if link:
        return _word_at(tail, link.end())
    link = _SHORT_LINK.match(tail)
    return _word_at(tail, link.end(), alone=True) if link else None


def _word_at(tail: str, at: int, *, alone: bool = False) -> str | None:
    """The word named at a place, after hedges and articles; `alone`: only when it closes its sentence."""
    while True:
        start = _end(_OPENING, tail, at)
        spelled = SPELLED_OUT.match(tail, start)
        hedge = _HEDGE.match(tail, at)
        if spelled or not hedge:
            break
        at = hedge.end()
    word = spelled or _WORD.match(tail, start)
    if word is None or _NAMES_NOTHING.fullmatch(word[0]) or (alone and not _SENTENCE_END.match(tail, word.end())):
        return None
    return word[0]


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
