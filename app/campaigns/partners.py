"""The partners that a campaign's models play against and learn with, each in a share of the matches."""

from collections.abc import Mapping

from app.core.errors import Invalid, Phrase, Verbatim

EQUAL = "equal"  # the share of a partner that is played as much as the model itself


def shares_of(given: Mapping[str, float | str]) -> Mapping[str, float]:
    """The share of a round's matches that are played against each partner. Raises Invalid."""
    said = {name: share for name, share in given.items() if not isinstance(share, str)}
    rest = 1 - round(sum(said.values()), 9)  # 0.7 + 0.1 + 0.1 + 0.1 is 1, whatever binary fractions say
    if rest <= 0:
        raise Invalid(
            "play_with",
            expected=Phrase("shares that sum to less than 1, as some matches are self-play"),
            got=Verbatim(f"{1 - rest:g}"),
        )
    equal = rest / (len(given) - len(said) + 1)
    return {name: said.get(name, equal) for name in given}


def matches_against(shares: Mapping[str, float], matches: int) -> Mapping[str, int]:
    """How many of `matches` are played against each partner: an even number, half of them from either seat."""
    return {name: int(matches * share + 1e-9) // 2 * 2 for name, share in shares.items()}
