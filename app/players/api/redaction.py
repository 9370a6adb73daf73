"""Keep a model's key out of what is logged, stored and shown."""

import re

_LIKE_A_KEY = re.compile(
    r"[Bb]earer\s+\S+|(?<![A-Za-z0-9])(?:(?:[spr]k-|gsk_|hf_|xai-|nvapi-)[\w*.-]{8,}|AIza[\w*-]{8,})"
)
_WORD = re.compile(r"[^\s\"'`,;:()<>\[\]{}]+")
_PIECE = 8  # this many consecutive characters of the key count as the key


def without_key(text: str, key: str) -> str:
    """The text with everything blacked out that is, or looks like, the key or a part of it."""
    pieces = {key[at : at + _PIECE] for at in range(len(key) - _PIECE + 1)} or {key}

    def blacken(word: re.Match[str]) -> str:
        found = word[0] == key or (len(word[0]) >= _PIECE and any(piece and piece in word[0] for piece in pieces))
        return "[key]" if found else word[0]

    return _WORD.sub(blacken, _LIKE_A_KEY.sub("[key]", text))
