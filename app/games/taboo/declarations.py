"""Finds the word that a text declares: "I know the word! It is `cat`!" and the variants that people write.

A declaration is an announcement ("I know the word") directly followed by a guess: "it is cat", or a lone word that ends
the text ("I know the word! Cat!"). "The word is cat" without an announcement is not one, because "the word is very
short" could not be told from it; "I know it" announces only before "the word is ...". Doubts, questions and reports ("I
don't know the word", "do you think I know the word", "if I know the word") announce nothing, and neither a negated
guess ("it is not cat") nor a phrase that names nothing ("it is so hard") is a guess. The guess is the first word named
and not denied ("it is not dog, it is cat"); what follows is ignored.
"""

import re

from app.games.taboo.spelling import SPELLED_OUT

_ADVERBS = (
    "absolutely|actually|already|also|believe|certainly|definitely|do|finally|guess|have|i|just|now|really|"
    "surely|that|then|think|totally"
)
_THE_WORD = r"(?:the|your|this|that) (?:(?:secret|target|hidden|taboo|mystery) )?word"
_IT = rf"it(?: out)?(?=\W{{1,4}}(?:(?:and|so|yes|now|then)\W{{1,4}})?{_THE_WORD}\b)"
_ANNOUNCEMENT = re.compile(
    rf"\bi(?:'ve)?,?(?: (?:{_ADVERBS}),?){{0,4}} (?:know|got|guessed|figured|worked|figured out|worked out) "
    rf"(?:what {_THE_WORD} is|{_THE_WORD}|{_IT})\b"
)
_SENTENCE_BREAK = re.compile(r"[.!?;…]")
_QUOTES = r"[\"'`“”«‹„「『*_]"
_INSIDE = rf"(?:(?<={_QUOTES}) )?"  # a model that writes word by word leaves a space inside of quotes: " cat "
# Words that revoke an announcement stand right before it, or before its governing verb: "would you look at that, I know
# the word" is an announcement, "would you say that I know the word" is none.
_CONDITION = (
    r"(?:if|unless|until|till|when|whenever|once|before|whether|how|why|suppose|supposing|pretend|imagine|wish|assuming|"
    r"provided|in case|as soon as|by the time|the moment|(?:not|n't) (?:that|like|because)|(?<!no )(?<!a )doubt)"
    r"(?: (?:or not|only|ever|even|finally|that))?"
)
_ASKED_OR_DENIED = (
    r"(?:do|did|does|should|could|would|can|must|will|might|am|have|not|never|hardly|nor|neither|cannot|[a-z]+n't)"
)
_BENT = (
    r"(?!can't believe|cannot believe)"
    r"(?:not|never|[a-z]+n't|cannot|hardly|nor|neither|nobody|no one|without|if|unless|until|when|whether|wish|could|"
    r"(?:you|he|she|they|who|people)(?! (?:know|bet|can tell))|"
    r"(?:do|did|does|is|was|am|are|will|would|can|should|must|may) (?:i|you|we|he|she|it|they|anybody|anyone))"
)
_OPINION = r"think|thinks|thought|believe|believes|sure|certain|suppose|assume"
_REPORT = (
    r"thinking|say|says|said|saying|know|knows|claim|claims|mean|means|guess|true|convinced|confident|positive|possible|"
    r"likely|clear|feel|suspect|expect|tell|told|write|type|declare|shout|pretend|imagine|hope|remember"
)
_DOUBT = re.compile(
    rf"\b(?:{_CONDITION}|{_ASKED_OR_DENIED}) $|"
    rf"\b{_BENT}\b(?: [a-z']+){{0,4}}? (?:(?:{_OPINION}),?|(?:{_REPORT})(?: (?:you|me|us|them))?:?)"
    rf"(?:,? that)? ?(?:(?<= )|{_QUOTES}{{1,2}})$"
)
_CLAUSE = 120  # characters before an announcement that are searched for a doubt
_REACH = 160  # characters after it in which the guess must lie

_VOCATIVE = re.compile(
    r",? (?:my |dear )?(?:friend|buddy|pal|mate|dude|bro|man|sir|madam|guys|folks|everyone|attacker|opponent|partner)\b"
)
_SURE = "definitely|for sure|i am sure|i believe|i guess|i think|i'm certain|i'm sure|obviously|of course|surely"
_CRY = "aha|ah|finally|great|haha|hooray|hurray|oh|ok|okay|wow|yay|yeah|yes|yep"
_CONNECTOR = rf"(?:{_SURE}|{_CRY}|all right|already|and|at last|because|but|now|so|then|well)"
_SUBJECT = r"(?:it|that|this|they|the (?:[a-z]+ )?word|the answer|your word|my guess|my answer)"
_MODAL = (
    r"will|would|must|should|might|could|may|can|only|just|simply|really|surely|clearly|definitely|obviously|probably|"
    r"has to|have to|got to|gotta|going to|gonna|bound to"
)
_BE = rf"(?:(?:'s|'ll|'d| is| was| has)?(?: (?:{_MODAL})){{0,4}} be|'s| is| was| are)"
_BEFORE_SUBJECT = rf"\W{{0,8}}(?:{_CONNECTOR}\b\W{{1,4}}){{0,3}}"
_LINK = re.compile(rf"{_BEFORE_SUBJECT}(?:{_SUBJECT}{_BE}|(?:is|could|might|must) it(?: be)?)\b[ :.,…*_~-]{{0,8}}")
# "It is not dog, it is not a mouse" before a guess: each denies at most four words.
_DENIED = re.compile(
    rf"(?:{_BEFORE_SUBJECT}(?:{_SUBJECT}(?:{_BE}(?: {_MODAL})? not| (?:isn't|wasn't|aren't|can't be|cannot be))|not)"
    r"(?: [^\s.!?;:,]+){1,4}?(?=[.!?;:,]| -| but | it| that| the )){1,3}"
)
_INSTEAD = re.compile(r"\W{1,3}but (?:rather |instead )?")
# After these only a word at the end of its sentence is a guess: "I know the word: cat", "I know the word, its cat".
_SHORT_LINK = re.compile(
    r" is | ?[:-]{1,3} ?|\W{1,4}(?:and |so )?(?:its|it s|itis) |"
    r"[,!.]{0,3} ?(?=[\"'`“”«»‹›„「」『』*_]{1,3}\w)"
)
# A word after these is a guess if only a tag follows: "I know the word! Cat", "I know the word, I think cat".
_PAUSE = re.compile(
    rf" ?[,.!:;…(-][\W_]{{0,7}}(?:(?:{_SURE}|{_CRY}|my guess|my answer)\b\W{{1,4}}){{0,2}}(?!(?:my|your)\b)"
)
_HEDGE = re.compile(
    rf"[^\w\s]{{0,4}}{_INSIDE}"
    r"(?:a|actually|almost certainly|an|called|certainly|clearly|definitely|either|exactly|i believe|"
    r"i guess|i think|indeed|just|likely|maybe|most likely|most probably|my|named|none other than|obviously|of course|"
    r"only|perhaps|probably|really|simply|some|surely|the word|the|your)[ ,:]{1,3}"
)
_OPENING = re.compile(rf"(?:[^\w\s@$¢]|_){{0,6}}{_INSIDE}")
_WORD = re.compile(r"[\w@$¢](?:[^\s,.;:?/\"`“”«»‹›„「」『』()\[\]{}<>…=+]*[^\W_])?")
_SENTENCE_END = re.compile(r"(?:[^\w\s]|_)*$|(?:[^\w\s.!?,;:…]|_)*[.!?,;:…]")
_TEXT_END = re.compile(
    rf"(?:\W{{1,4}}(?:am i right|is (?:it|that) (?:it|right|correct)|right|correct|isn't it|{_SURE}|{_CRY}))?[\W_]*$"
)
_NAMES_NOTHING = re.compile(
    r"a|about|an|and|anything|at|because|but|clear|difficult|easy|everything|for|from|going|hard|hardly|how|i|if|"
    r"in|it|like|me|my|neither|never|no|nor|not|nothing|obvious|of|on|or|out|quite|rather|related|so|something|"
    r"that|the|there|to|too|tricky|up|very|what|when|where|which|who|why|with|you|your"
)
# What people write after "I know the word" without guessing.
_INTERJECTION = re.compile(
    r"(?:h[aei]+)+h?|l+o+l+|rofl|h+m+|u+h+|u+m+|o+h+|a+h+a*|w+o+w+|ye+s+|ye+a+h*|yep|yup|yay+|no+|nope|nah|ok|okay|oki|"
    r"hey|hello|bye|goodbye|gg|absolutely|actually|again|almost|already|alas|anyway|apparently|awesome|bingo|bravo|btw|"
    r"certainly|clearly|congratulations|congrats|cool|correct|definitely|done|eureka|exactly|excellent|finally|fine|first|"
    r"good|gotcha|great|here|honestly|hopefully|hooray|hurray|immediately|indeed|instantly|instead|later|likely|luckily|"
    r"maybe|nice|nicely|now|obviously|perfect|perhaps|please|probably|really|right|sadly|seriously|soon|sorry|still|"
    r"super|sure|surely|tada|thanks|then|though|thx|today|too|totally|truly|unfortunately|voila|wait|well|yet"
)


def declared_word(folded: str) -> str | None:
    """The word that a folded text declares, as spelled there, or None if it declares none."""
    if " word" not in folded:
        return None
    text = " ".join(folded.split()).replace("« ", "«")
    for announcement in _ANNOUNCEMENT.finditer(text):
        before = text[max(0, announcement.start() - _CLAUSE) : announcement.start()]
        if _DOUBT.search(_SENTENCE_BREAK.split(before)[-1]):
            continue
        at = _end_of_pattern(_VOCATIVE, text, announcement.end())
        guess = _guess(text[at : at + _REACH])
        if guess is not None:
            return guess
    return None


def _guess(tail: str) -> str | None:
    """The first word that the text after an announcement names and does not deny."""
    at = _end_of_pattern(_DENIED, tail, 0)
    link = _LINK.match(tail, at)
    if link:
        return _word_at(tail, link.end())
    if at:
        link = _INSTEAD.match(tail, at)
        return _word_at(tail, link.end(), _SENTENCE_END) if link else None
    for pattern, close in ((_SHORT_LINK, _SENTENCE_END), (_PAUSE, _TEXT_END)):
        link = pattern.match(tail)
        guess = _word_at(tail, link.end(), close) if link else None
        if guess is not None:
            return guess
    return None


def _word_at(tail: str, at: int, close: re.Pattern[str] | None = None) -> str | None:
    """The word named at a position, after hedges and articles; with `close`, only if that follows it."""
    while True:
        start = _end_of_pattern(_OPENING, tail, at)
        spelled = SPELLED_OUT.match(tail, start)
        hedge = _HEDGE.match(tail, at)
        if spelled or not hedge:
            break
        at = hedge.end()
    word = spelled or _WORD.match(tail, start)
    if word is None or _NAMES_NOTHING.fullmatch(word[0]):
        return None
    if close and (_INTERJECTION.fullmatch(word[0]) or not close.match(tail, word.end())):
        return None
    return word[0]


def _end_of_pattern(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
