"""Detects claims of the writer to be human, for marking what models say to people. Pure.

No prompt asks a model to claim so, and none can prevent it. A mark is meant for readers of the data: patterns in
English and German find the plain forms, and a text may say it in other ways.
"""

import re

_HUMAN = r"(?:human(?:\sbeing)?|person|man|woman|guy|girl|boy|lady)(?![\w-]|\slanguage)"
_MACHINE = r"(?:ro)?bot|ai|a\.i\.|computer|machine|program|(?:language\s)?model|algorithm|chatbot|artificial"
_SURELY = r"(?:(?:really|actually|just|only|also|definitely|indeed|absolutely|of\scourse|a|an|most|certainly)\s)*"
_OF_FLESH = r"(?:(?:real|actual|true|living|normal|regular|ordinary|genuine|fellow|young|old)(?:,?\s(?:live\s)?))*"
_MENSCH = r"(?:mensch|mann|frau|(?:echte|reale|wirkliche|richtige)\sperson|menschlich)\b"
_MASCHINE = r"(?:ro)?bot|roboter|ki|computer|maschine|programm|sprachmodell|chatbot|algorithmus|k(?:ü|ue)nstliche"
_GEWISS = r"(?:(?:wirklich|echt|tats(?:ä|ae)chlich|doch|auch|nur|nat(?:ü|ue)rlich|ja|ein|eine|ganz|sicher|einfach)\s)*"
_ECHT = r"(?:(?:echter|echte|realer|wirklicher|richtiger|normaler|lebendiger|ganz)\s)*"
_CLAIMS = re.compile(
    "|".join(
        (
            rf"\bi(?:'m|\sam|m)\s{_SURELY}{_OF_FLESH}{_HUMAN}",
            rf"\bi(?:'m|\sam|m)\s(?:really\s|actually\s|definitely\s|certainly\s)?(?:not|no)\s(?:an?\s|some\s)?(?:{_MACHINE})\b",
            r"\b(?:we|us)\shumans\b",
            rf"\b(?:as|being)\san?\s{_OF_FLESH}(?:human(?:\sbeing)?|person)(?:\smyself)?,?\si\b",
            r"\b(?:real\s|actual\s)?(?:human|person)\shere\b",
            rf"\bich\sbin\s{_GEWISS}{_ECHT}{_MENSCH}",
            rf"\bich\sbin\s(?:wirklich\s|doch\s|echt\s|ganz\ssicher\s)?keine?\s(?:{_MASCHINE})\b",
            r"\bwir\smenschen\b",
            r"\bals\s(?:echter\s)?mensch\s\w+\sich\b",
        )
    )
)


def claims_to_be_human(text: str) -> bool:
    """Whether the text says in plain words that its writer is human or not a machine."""
    plain = " ".join(text.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split())
    return _CLAIMS.search(plain) is not None
