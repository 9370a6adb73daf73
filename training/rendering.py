"""Conversations → token sequences in which the moves to be learnt are marked.

A conversation is rendered turn by turn with the tokenizer's chat template, as it was played: the prompt up to a turn,
then the turn with its end marker. As long as each prompt begins with the tokens rendered so far, all turns share one
sequence. Where one does not (the template rewrites history, or the oldest turns were dropped to fit the longest
sequence), the turn starts a new sequence. What is learnt is the same either way.

Play renders its prompts here too (`Renderer.prompt`), so that a model is prompted with the tokens it learnt from.

Only the template puts control tokens and roles into a sequence: in message content, whoever wrote it, all marks are
broken (`training.marks`). Where a tokenizer has no template, a conversation begins as the tokenizer begins a text.

Older matches and checkpoints keep the renderer version that they started with: version 1 breaks only special tokens,
and up to version 2 nothing precedes a conversation without a template.
"""

import hashlib
import json
import re
import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from jinja2 import TemplateError

from training.errors import TrainingRefused
from training.marks import BEGINNING_RENDERER, FIRST_RENDERER, RENDERER, ROLE_LABELS, Marks, OwnMarks
from training.methods.base import REFUSE, SKIP
from training.reasoning import (
    ANALYSIS,
    CLOSING,
    CLOSING_OF,
    MARK,
    OPENING,
    as_block,
    left_open,
    without_block_at_end,
)

Message = Mapping[str, Any]

# The template for tokenizers without one, in training and at play.
PLAIN = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
# What was done with rows that were too long: old turns dropped, a move or response cut, one left out.
SHORTENED, CUT, SKIPPED = TOO_LONG = "shortened", "cut", "skipped"
_EXAMPLE = "Qzx"  # content of the chats that probe a template
_LABEL = re.compile(rf"(?P<begins>(?:\A|(?<=\n))[^\S\n]*)?(?P<name>(?:#{{1,6}} ?)?\b\w{{2,30}}):\s*(?={_EXAMPLE}|\Z)")
_KEPT = ("aA", "Á", "＜", "a\u200bb", "a\u2060b")  # samples that change if tokens are matched in normalized text
_ASKED_OTHERWISE = (
    "the chat template asks for a turn in other tokens than it renders it in; name another with chat_template"
)
_ROOM = 8  # a prompt leaves 1/_ROOM of the model's length for the answer


@dataclass(frozen=True, slots=True)
class TargetSpan:
    """The tokens `begin` to `end` (exclusive) of a sequence, one move to be learnt.

    `weight` applies to each token. `role` (the player's in the game) and `reward` are for methods that need them.
    `log_probs` are the tokens' log-probabilities in play, present only if exactly the same tokens preceded them there.
    """

    begin: int
    end: int
    role: str | None = None
    reward: float | None = None
    weight: float = 1.0
    log_probs: tuple[float, ...] | None = None


@dataclass(slots=True)
class MarkedTokens:
    """A token sequence: `ids`, the spans to be learnt, and positions in them that are not. The first token is never
    learnt.
    """

    ids: list[int] = field(default_factory=list)
    spans: list[TargetSpan] = field(default_factory=list)
    left_out: frozenset[int] = frozenset()

    def extend(self, prompt: Sequence[int], target: Sequence[int], move: Message, sampled: bool = False) -> None:
        """Append a turn: what was said to the model since its last turn, and the tokens of its move.

        With `sampled`, these are the tokens that the move's log-probabilities, if any, belong to.
        """
        self.ids += prompt
        begin = len(self.ids)
        known = sampled and "log_probs" in move and move.get("prompt_sha256") == ids_hash(self.ids)
        self.ids += target
        self.spans.append(
            TargetSpan(
                begin, len(self.ids), move.get("player_role"), move.get("reward"), float(move.get("weight", 1)),
                tuple(move["log_probs"]) if known else None,
            )
        )  # fmt: skip

    @property
    def weights(self) -> list[float]:
        """The weight of each token; 0 for one that is not to be learnt."""
        found = [0.0] * len(self.ids)
        for span in self.spans:
            found[span.begin : span.end] = [span.weight] * (span.end - span.begin)
        for at in self.left_out:
            found[at] = 0.0
        return found

    @property
    def learnt(self) -> list[bool]:
        """Whether each token is to be learnt."""
        return [weight > 0 for weight in self.weights]


class _Turn(NamedTuple):
    """A move in tokens: the prompt, the part between the prompt and the target, and the target to be learnt."""

    prompt: list[int]
    lead: list[int]
    target: list[int]

    @property
    def ids(self) -> list[int]:
        """All tokens of the turn, including its prompt."""
        return self.prompt + self.lead + self.target


class Renderer:
    """Renders conversations for one tokenizer and the length (in tokens) that its model accepts.

    A tokenizer without a chat template gets `PLAIN`. `version` is the renderer version that a match or checkpoint
    started with. `max_length` is a shorter length for training, and `too_long` says what happens to a longer move:
    TRUNCATE, SKIP or REFUSE. `template_arguments` are further variables of the chat template, such as
    `enable_thinking`.
    """

    def __init__(
        self,
        tokenizer: Any,
        longest: int,
        version: int = RENDERER,
        *,
        max_length: int | None = None,
        too_long: str = REFUSE,
        template_arguments: Mapping[str, Any] | None = None,
    ) -> None:
        tokenizer.chat_template = tokenizer.chat_template or PLAIN
        self.version = version
        self.longest = min(longest, max_length or longest)
        self._of_model = longest
        self._too_long = too_long
        self.tokenizer_hash = tokenizer_hash(tokenizer)
        self._tokenizer = tokenizer
        self._template_arguments = dict(template_arguments or {})
        self._control = control_tokens(tokenizer)
        self._marks = None if version == FIRST_RENDERER else Marks(*marks_of(tokenizer))
        self._ends = frozenset(tokenizer.convert_tokens_to_ids(list(self._control)))
        unknown = tokenizer.unk_token_id
        self._unknown = None if unknown == tokenizer.eos_token_id else unknown
        begins = version >= BEGINNING_RENDERER and tokenizer.chat_template == PLAIN
        self._begin = begin_of_text(tokenizer) if begins else []
        self._opening = next((each for each in CLOSING_OF if each in str(tokenizer.chat_template)), "<think>")

    @cached_property
    def lets_reason(self) -> bool:
        """Whether the template makes or lets the model reason before it answers."""
        if not OPENING.search(str(self._tokenizer.chat_template)):
            return False
        try:
            [prompt] = self._rendered_texts([[{"role": "user", "content": _EXAMPLE}]], ask=True)
        except TrainingRefused:
            return True  # it does not accept this chat
        return _lets_reason(prompt)

    def end_tokens(self, named: int | Sequence[int] | None) -> frozenset[int]:
        """The tokens that end an answer: those `named` by the model's config, the tokenizer's and the template's."""
        ends = {*(named if isinstance(named, Sequence) else [named]), self._tokenizer.eos_token_id}
        try:
            [example], _ = self.render([{"role": "user", "content": "a"}, {"role": "assistant", "content": "a"}])
            ends.add(example.ids[-1])
        except (TrainingRefused, ValueError):
            pass  # a template that cannot take so short a chat, or a model that knows no "a"
        return frozenset(end for end in ends if end is not None)

    def render(
        self, messages: Sequence[Message], sampled: Sequence[Sequence[int]] | None = None
    ) -> tuple[list[MarkedTokens], Counter[str]]:
        """The sequences of one conversation, and which of TOO_LONG was done to it, each counted once.

        `sampled` are the tokens, each including its end token, that a model with this tokenizer sampled for the
        assistant's messages: they are learnt as sampled. Reasoning is learnt where a message has it
        (`reasoning`), and is never in the prompts of later turns; where a template expects some and there is
        none, it is empty and not learnt.
        Raises Refused where the template cannot take the conversation, or a single turn that does not fit is to
        be refused.
        """
        messages = [{**each, "content": self._without_control_tokens(each["content"])} for each in messages]
        known = len(self._tokenizer)
        if any(not 0 <= token < known for ids in sampled or () for token in ids):
            raise TrainingRefused(f"expected ids from 0 to {known - 1}, got others; leave the row's tokenizer out")
        own = [at for at, each in enumerate(messages) if each["role"] == "assistant"]
        turns = [at for at in own if messages[at].get("weight", 1)]
        said = dict(zip(own, sampled, strict=True)) if sampled is not None else {}
        sequences: list[MarkedTokens] = []
        rendered: list[int] = []  # the last sequence, with turns as the template has them
        done: Counter[str] = Counter()
        for at, turn in zip(turns, self._turns_with_prompts(messages, turns), strict=True):
            what = frozenset[str]()
            if len(turn.ids) > self.longest:
                turn, what = self._fit_last_turn(messages[: at + 1], turn)
                done |= Counter(what)
            if SKIPPED in what:
                continue
            if not sequences or turn.prompt[: len(rendered)] != rendered:
                sequences.append(MarkedTokens())
                rendered = []
            ids = list(said.get(at, ()))
            sampled_so = CUT not in what and ids[-1:] == turn.target[-1:]
            before = turn.prompt[len(rendered) :]
            if sampled_so:
                sequences[-1].extend(before, ids, messages[at], sampled=True)
            else:
                sequences[-1].extend(before + turn.lead, turn.target, messages[at])
            rendered = turn.ids
        if said and any(len(each.ids) > self.longest for each in sequences):
            return self.render(messages)
        for each in sequences:
            each.left_out = frozenset(at for at, token in enumerate(each.ids) if token == self._unknown)
        return [each for each in sequences if any(each.learnt)], done

    def prompt(self, messages: Sequence[Message], most: int) -> list[int]:
        """The tokens that ask a model for the assistant's next message of at most `most` tokens.

        Raises Refused where the template cannot take the conversation, or not even the rules and the last turn fit.
        """
        messages = [{**each, "content": self._without_control_tokens(each["content"])} for each in messages]
        longest = self.longest - min(most, max(1, self.longest // _ROOM))
        [ids] = self._encode([messages], ask=True)
        asked = {"role": "assistant", "content": ""}
        shorter = self.shorter([*messages, asked])
        if messages[0]["role"] == "user":  # if nothing else fits, the rules alone are answered
            shorter = chain(shorter, [[messages[0], asked]])
        fewest = len(ids)
        while len(ids) > longest:
            kept = next(shorter, None)
            if kept is None:
                raise TrainingRefused(
                    f"expected rules and last turn in {longest} of the {self.longest} tokens that the model can take,"
                    f" got {fewest} in the shortest form; prompt it in fewer words, or take one that can take more"
                )
            [ids] = self._encode([kept[:-1]], ask=True)
            fewest = len(ids)
        return ids

    def _without_control_tokens(self, text: str) -> str:
        """A text in which nothing can be read as a control token."""
        return without_control(text, self._control) if self._marks is None else self._marks.broken(text)

    def _turns_with_prompts(self, messages: Sequence[Message], turns: Sequence[int]) -> list[_Turn]:
        """The assistant's turns at these indices, each with the prompt that asks for it."""
        prompts = self._rendered_texts([messages[:at] for at in turns], ask=True)
        # A prompt that ends in a closed block asks for no reasoning.
        thoughts = [
            self._without_control_tokens(messages[at].get("reasoning") or "").strip() if _lets_reason(prompt) else ""
            for at, prompt in zip(turns, prompts, strict=True)
        ]
        answers = [
            {**messages[at], "reasoning_content": thought} if thought else messages[at]
            for at, thought in zip(turns, thoughts, strict=True)
        ]
        wholes = self._rendered_texts(
            [[*messages[:at], each] for at, each in zip(turns, answers, strict=True)], ask=False
        )
        parts = zip(
            prompts,
            wholes,
            thoughts,
            self._ids_of_rendered_texts(prompts),
            self._ids_of_rendered_texts(wholes),
            strict=True,
        )
        return [self._turn(*each) for each in parts]

    def _turn(self, asked: str, answered: str, thought: str, prompt: list[int], whole: list[int]) -> _Turn:
        """A turn, from its prompt and its whole (as texts and as tokens) and the reasoning before the move."""
        begin, opening = without_block_at_end(asked), left_open(asked)
        if answered.startswith(asked):
            lead, move = _block_and_move(answered[len(asked) :], is_open=bool(opening))
        elif answered.startswith(begin):  # the turn is rendered without the block that the prompt has
            block = asked[len(begin) :]
            gap = block[: len(block) - len(block.lstrip())]
            lead, move = _block_and_move(answered[len(begin) :].removeprefix(gap), is_open=False)
            lead = OPENING.sub("", lead, count=1).lstrip() if opening else ""
        else:
            raise TrainingRefused(_ASKED_OTHERWISE)
        if begin == asked and not lead and not thought:
            return _Turn(prompt, [], self._tokens_after_prompt(prompt, whole))
        mark = opening or self._opening
        if thought and thought not in lead:
            lead = as_block(thought, mark, is_open=bool(opening))
        elif opening and lead in ("", CLOSING_OF[ANALYSIS]):
            lead = as_block("", mark, is_open=True)
        ids, end = self._ids_of_pieces([lead, move])
        if thought:
            return _Turn(prompt, [], ids + self._up_to_end(end))
        return _Turn(prompt, ids, self._up_to_end(end))

    def _encode(self, conversations: Sequence[Sequence[Message]], ask: bool) -> list[list[int]]:
        return self._ids_of_rendered_texts(self._rendered_texts(conversations, ask))

    def _rendered_texts(self, conversations: Sequence[Sequence[Message]], ask: bool) -> list[str]:
        """Conversations rendered by the template. Reasoning is included only as `reasoning_content`."""
        if not conversations:
            return []
        sent = [[{name: each[name] for name in each if name != "reasoning"} for each in chat] for chat in conversations]
        try:
            texts: list[str] = self._tokenizer.apply_chat_template(
                sent, tokenize=False, add_generation_prompt=ask, **self._template_arguments
            )
        except (TemplateError, TypeError) as error:
            raise TrainingRefused(f"the chat template cannot take it: {' '.join(str(error).split())}") from None
        return texts

    def _ids_of_rendered_texts(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of conversations that the template has rendered."""
        return [[*self._begin, *ids] for ids in self._ids_of_pieces(texts)]

    def _ids_of_pieces(self, texts: Sequence[str]) -> list[list[int]]:
        found: list[list[int]] = self._tokenizer(list(texts), add_special_tokens=False)["input_ids"] if texts else []
        return found

    def _tokens_after_prompt(self, prompt: list[int], whole: list[int]) -> list[int]:
        """The tokens after the prompt, up to the end of the turn."""
        if whole[: len(prompt)] != prompt:
            raise TrainingRefused(_ASKED_OTHERWISE)
        return self._up_to_end(whole[len(prompt) :])

    def _up_to_end(self, ids: list[int]) -> list[int]:
        """The tokens up to the last control token, which ends the turn."""
        ends = [at for at, token in enumerate(ids) if token in self._ends]
        if not ends:
            raise TrainingRefused(
                "expected a chat template that ends the assistant's turn with a control token, got one that does not;"
                " name another with chat_template"
            )
        return ids[: ends[-1] + 1]

    def _fit_last_turn(self, messages: Sequence[Message], turn: _Turn) -> tuple[_Turn, frozenset[str]]:
        """The last turn, which is too long, with as many old turns dropped as necessary, and which of TOO_LONG was
        done.

        If that is not enough, the target is cut at its end, or the turn is SKIPPED or refused, as `too_long` says. A
        turn whose prompt leaves no room is SKIPPED instead of cut.
        """

        def last_turn(kept: Sequence[Message]) -> _Turn:
            [found] = self._turns_with_prompts(kept, [len(kept) - 1])
            return found

        done = frozenset[str]()
        if shorter := [*self.shorter(messages)]:
            # Binary search: a conversation of hundreds of turns has too many forms to render each.
            first = bisect_left(shorter, True, key=lambda kept: len(last_turn(kept).ids) <= self.longest)
            turn, done = last_turn(shorter[min(first, len(shorter) - 1)]), frozenset({SHORTENED})
            if len(turn.ids) <= self.longest:
                return turn, done
        if self._too_long == REFUSE:
            raise TrainingRefused(self._reason_turn_is_refused(len(turn.ids)))
        room = self.longest - len(turn.prompt) - len(turn.lead)
        if self._too_long == SKIP or room < 1:
            return turn, frozenset({SKIPPED})
        return turn._replace(target=turn.target[:room]), done | {CUT}

    def _reason_turn_is_refused(self, fewest: int) -> str:
        """Why a turn with `fewest` tokens in its shortest form does not fit, and what would help."""
        if self.longest < self._of_model:
            limit, more = "max_length", f"raise max_length (the model can take {self._of_model})"
        else:
            limit, more = "what the model can take", "train a model that can take more (tiny: a larger length)"
        return (
            f"expected rules and a turn in {self.longest} tokens, which is {limit}, got {fewest} in the shortest form;"
            f" {more}, or set too_long to truncate or skip; rows of matches played here have shorter prompts with"
            " `flask dataset build --style compact`"
        )

    def shorter(self, messages: Sequence[Message]) -> Iterator[list[Message]]:
        """The conversation without its one, two, … oldest turns; the first message, with the rules, stays.

        If the first message has the user's role, like the message that a move answers, the two are merged: most
        templates require alternating turns, and a move without the message it answers would be learnt, or requested, as
        an answer to the rules.
        """
        head, rest = messages[0], messages[1:]
        for at in range(1, len(rest)):
            if rest[at]["role"] != rest[0]["role"]:
                continue
            answered = rest[at - 1]
            if self.version >= BEGINNING_RENDERER and answered["role"] == head["role"]:
                yield [{**head, "content": f"{head['content']}\n\n{answered['content']}"}, *rest[at:]]
            else:
                yield [head, *rest[at:]]


def _lets_reason(prompt: str) -> bool:
    """Whether a prompt does not end with a closed block of reasoning."""
    return bool(left_open(prompt)) or without_block_at_end(prompt) == prompt


def _block_and_move(answer: str, is_open: bool) -> tuple[str, str]:
    """The reasoning that a template puts before a move, with the blanks after it, and the rest of the turn."""
    begins = is_open or MARK.match(answer.lstrip())
    closed = CLOSING.search(answer) if begins else None
    if closed is None:
        return "", answer
    move = answer[closed.end() :].lstrip()
    return answer.removesuffix(move), move


def ids_hash(ids: Sequence[int]) -> str:
    """The sha256 of tokens, each as four little-endian bytes: equal hashes mean equal prompts."""
    return hashlib.sha256(struct.pack(f"<{len(ids)}I", *ids)).hexdigest()


def tokenizer_hash(tokenizer: Any) -> str | None:
    """The sha256 of a tokenizer's rules for turning text into tokens and back; None if they are not in one object."""
    inner = getattr(tokenizer, "backend_tokenizer", None)
    if inner is None:
        return None
    parts = json.loads(inner.to_str())
    parts = {name: part for name, part in parts.items() if name not in ("padding", "truncation")}  # from the last call
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def begin_of_text(tokenizer: Any) -> list[int]:
    """The token that a tokenizer puts before a text by default; empty if it puts none.

    Determined by trying it, as `add_bos_token` is unreliable: a saved tokenizer has this in its processor.
    """
    bare, whole = (tokenizer("a", add_special_tokens=each)["input_ids"] for each in (False, True))
    begin = tokenizer.bos_token_id
    return [begin] if begin is not None and whole[:1] == [begin] != bare[:1] else []


def control_tokens(tokenizer: Any) -> tuple[str, ...]:
    """The texts that a tokenizer reads as control tokens: ends of turns, roles, padding."""
    added = [each.content for each in tokenizer.added_tokens_decoder.values() if each.special]
    return tuple(sorted(text for text in {*added, *tokenizer.all_special_tokens} if text.strip()))


def without_control(text: str, control: Sequence[str]) -> str:
    """A text in which nothing can be read as a control token: a space breaks each possible one after its first
    character.
    """
    for token in control:
        while token in text:
            text = text.replace(token, f"{token[0]} {token[1:]}" if len(token) > 1 else "")
    return text


def marks_of(tokenizer: Any) -> OwnMarks:
    """The marks of a tokenizer: its added tokens, special or not, and the roles of its template."""
    added = {each.content: each.special for each in tokenizer.added_tokens_decoder.values()}
    special = {*tokenizer.all_special_tokens, *(text for text, is_special in added.items() if is_special)}
    labels, inline = _role_labels(tokenizer)
    return OwnMarks(
        tokens=tuple(sorted({*added, *special})),
        labels=tuple(labels),
        inline=tuple(inline),
        normalized=_is_normalized(tokenizer),
        removed=tuple(sorted(each for each in special if each.strip() and len(each) == 1)),
    )


def _is_normalized(tokenizer: Any) -> bool:
    """Whether a tokenizer ignores case, accents or invisible characters when it looks for its tokens in a text."""
    normalizer = getattr(getattr(tokenizer, "backend_tokenizer", None), "normalizer", None)
    return normalizer is not None and any(each not in normalizer.normalize_str(each) for each in _KEPT)


def _role_labels(tokenizer: Any) -> tuple[Sequence[str], Sequence[str]]:
    """The names with a colon that a template gives speakers: those at the beginning of a line, and those within one."""
    if tokenizer.chat_template == PLAIN:
        return ROLE_LABELS, ()
    roles = ("user", "assistant", "user")
    try:
        text = tokenizer.apply_chat_template(
            [{"role": role, "content": _EXAMPLE} for role in roles], tokenize=False, add_generation_prompt=True
        )
    except (TemplateError, TypeError, ValueError):
        return (), ()  # it does not accept this chat, and probably has its own roles
    found = {match["name"]: match["begins"] is not None for match in _LABEL.finditer(text)}
    return tuple(found), tuple(name for name, begins in found.items() if not begins)


def marked_text(sequence: MarkedTokens, tokenizer: Any) -> str:
    """A readable form of a sequence: the text of each run of tokens, with the text to be learnt in [brackets]."""
    runs: list[tuple[bool, list[int]]] = []
    for token, learnt in zip(sequence.ids, sequence.learnt, strict=True):
        if not runs or runs[-1][0] != learnt:
            runs.append((learnt, []))
        runs[-1][1].append(token)
    texts = ((learnt, tokenizer.decode(ids, skip_special_tokens=False)) for learnt, ids in runs)
    return "".join(f"[{text}]" if learnt else text for learnt, text in texts)
