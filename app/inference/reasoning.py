"""Reasoning in the tokens of answers: how many tokens remain, where it ends, and what the next prompt keeps."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from app.inference.requests import GenerationRequest
from training.reasoning import (
    CHANNEL_TOKENS,
    CLOSING,
    MARK,
    MESSAGE_END,
    MOST_REASONING,
    OPENING,
    left_open,
    split_reasoning,
    without_block_at_end,
)

HALF_CHARACTER = "\ufffd"  # decoded from tokens with only the first bytes of a character
_REACH = 24  # tokens at a sequence's end that are searched for marks


class PartedAnswer(NamedTuple):
    """An answer's text, its reasoning (None without its marks), and the number of tokens of reasoning and marks."""

    text: str
    reasoning: str | None
    reasoning_tokens: int


class ReasoningTokens:
    """Finds reasoning in one tokenizer's tokens; the tokenizer may have special tokens for the marks."""

    def __init__(self, tokenizer: Any) -> None:
        added = tokenizer.get_added_vocab()
        special = {*tokenizer.all_special_ids}
        self._openings = frozenset(token for text, token in added.items() if OPENING.fullmatch(text))
        self._closings = frozenset(token for text, token in added.items() if CLOSING.fullmatch(text))
        has_channels = {*CHANNEL_TOKENS} <= {*added}
        channels = {text: added[text] for text in CHANNEL_TOKENS} if has_channels else {}
        self._last_of_head: int | None = None  # the last token of the head of a channel message
        self.message_ends: frozenset[int] = frozenset()  # tokens that end the answer where they end its move
        if has_channels:
            self._openings |= {channels["<|channel|>"]}
            self._last_of_head, self.message_ends = channels["<|message|>"], frozenset({channels[MESSAGE_END]})
        self.special = (self._openings | self._closings | {*channels.values()}) & special
        self._tokenizer = tokenizer

    def prepare(self, request: GenerationRequest) -> None:
        """Record what the end of a prompt says about reasoning."""
        tail = request.prompt[-_REACH:]
        text = self._text_of_tokens(tail)
        request.opening, request.lasting = left_open(text), len(request.prompt)
        kept = without_block_at_end(text)
        if kept != text:
            fits = (at for at in range(len(tail), -1, -1) if kept.startswith(self._text_of_tokens(tail[:at])))
            request.lasting -= len(tail) - next(fits, 0)

    def follow(self, request: GenerationRequest) -> None:
        """Update an answer's limit after a token was sampled: the move has the same room however long it thinks.

        Opened reasoning extends the limit, and closing it starts the room of the move. The end of a message in a
        channel ends the answer, unless the message was reasoning; so does one of the request's stop texts in a move.
        """
        if request.stop and self._completes_stop(request):
            request.has_stopped, request.limit = True, len(request.sampled)
            return
        if request.sampled[-1] in self.message_ends and self.part(request, request.sampled[:-1]).text:
            request.limit = len(request.sampled)
            return
        if request.most == request.most_of_move or request.has_closed:
            return
        if self._ends_in(request.sampled, self._closings, CLOSING):
            request.has_closed = True
            request.limit = min(request.most, len(request.sampled) + request.most_of_move)
        elif request.limit < request.most and self._ends_in(request.sampled, self._openings, OPENING):
            request.limit = request.most

    def _completes_stop(self, request: GenerationRequest) -> bool:
        """Whether the last token completes a stop text in the move: leading white space does not count."""
        tail = request.sampled[-_REACH - max(len(stop.encode()) for stop in request.stop) :]
        text, before = self._text_of_tokens(tail), self._text_of_tokens(tail[:-1]).rstrip(HALF_CHARACTER)
        if all(text.find(stop, max(0, len(before) - len(stop) + 1)) < 0 for stop in request.stop):
            return False
        move = self.part(request, request.sampled).text
        spaces = text[len(text.rstrip()) :]
        return bool(move) and any(stop in move + spaces for stop in request.stop)

    def lasting(self, request: GenerationRequest) -> int:
        """The number of an ended answer's computed tokens with which its next prompt can begin.

        All but the last one; or, since reasoning is never sent back, only those of the prompt.
        """
        if request.lasting < len(request.prompt) or MARK.search(self._text_of_tokens(request.sampled)):
            return request.lasting
        return len(request.prompt) + len(request.sampled) - 1

    def part(self, request: GenerationRequest, words: Sequence[int]) -> PartedAnswer:
        """The text of the sampled tokens without the one that ended them, split from the reasoning before it."""
        said = self._text_of_tokens(words)
        if not request.opening and not MARK.search(said):
            return PartedAnswer(said.strip(), None, 0)
        text, reasoning = split_reasoning(f"{request.opening}{said}")
        return PartedAnswer(text, reasoning[:MOST_REASONING], self._reasoning_tokens(words, said))

    def _reasoning_tokens(self, words: Sequence[int], said: str) -> int:
        """The number of tokens up to the last closing mark; all if there is none."""
        marks = len(CLOSING.findall(said))
        if not marks:
            return len(words)
        low, high = 1, len(words)  # the fewest that contain all these marks
        while low < high:
            middle = (low + high) // 2
            if len(CLOSING.findall(self._text_of_tokens(words[:middle]))) < marks:
                low = middle + 1
            else:
                high = middle
        return low

    def _ends_in(self, sampled: Sequence[int], tokens: frozenset[int], mark: Any) -> bool:
        if tokens:
            return sampled[-1] in tokens
        if self._last_of_head not in (None, sampled[-1]):
            return False
        return mark.search(self._text_of_tokens(sampled[-_REACH:])) is not None

    def _text_of_tokens(self, tokens: Sequence[int]) -> str:
        """The text of tokens, with control tokens only if they mark reasoning: no others are ever sampled or looked
        for.
        """
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=not self.special)
        return text


def before_stop(text: str, stop: Sequence[str]) -> str:
    """The text before the first stop text; all of it if none occurs."""
    return text[: min((at for each in stop if (at := text.find(each)) >= 0), default=len(text))]
