"""The contract between a game and the sources of the material that its matches are played on.

Material comes in pieces, such as the context of a negotiation or a target word. A piece is JSON: it is stored with
rounds and campaigns, and represents a part of a match's config.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar


class MaterialKind(ABC):
    """The material of a game's matches, each of which gets one piece of a list."""

    name: ClassVar[str]  # of the field in forms, and of the option on the command line
    piece: ClassVar[str]  # one piece; a match's own is drawn by its seed and this word
    fields: ClassVar[tuple[str, ...]]  # of the config that a piece stands for; errors name the first
    title: ClassVar[str]  # what forms call the list
    file: ClassVar[str]  # what a file holds, for the help of the command line
    file_hint: ClassVar[str]  # the same as a sentence, for forms
    text_label: ClassVar[str]  # of the field for pieces that are typed, in place of a file
    text_hint: ClassVar[str]
    setting: ClassVar[str | None] = None  # the server's setting that may name a file
    in_order: ClassVar[bool] = False  # whether a round plays a list in its order unless it is asked otherwise
    each_once: ClassVar[bool] = False  # whether the command line plays each piece of a file once if not asked otherwise

    @abstractmethod
    def read(self, lines: Iterable[str], source: str) -> list[Any]:
        """The pieces of a file in order. Raises Invalid with `source` and the number of the faulty line."""

    def lines_of(self, pieces: Iterable[Any]) -> Iterable[str]:
        """The lines of a file with these pieces, as `read` reads them; kinds whose pieces are not text override
        this.
        """
        return map(str, pieces)

    @abstractmethod
    def config_of(self, piece: Any) -> dict[str, Any]:
        """The part of a config that a piece represents."""

    def piece_of(self, config: Mapping[str, Any]) -> Any:
        """The piece in a match's config; None if it has none.

        Kinds of several fields override this to combine them into a piece.
        """
        return config.get(self.fields[0]) if len(self.fields) == 1 else None

    def draw_all(self, rng: random.Random) -> Sequence[Any]:  # noqa: ARG002  a list needs none
        """As many different pieces as exist without a file, or nearly so."""
        return self.listed()

    def listed(self) -> Sequence[Any]:
        """The list that comes with the game; empty if each match draws its own piece."""
        return ()

    def held_out_key(self, piece: Any) -> Any:
        """JSON that is equal for pieces that must be held out of training together."""
        return piece
