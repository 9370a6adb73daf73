"""Rows of a dataset file → batches of tokens.

A file holds one JSON object per line, or one JSON array of them: `{"messages": [{"role", "content"}, …], "group": …}`.
`group` names the seat of the match that a row was cut from, as `match:seat`. If a model with the tokenizer of the hash
`tokenizer` made the assistant's moves, each of them has the `ids` that it sampled, and possibly their `log_probs` after
the prompt with the hash `prompt_sha256`. A move may have `reasoning`, which is learnt with it. A published row of one
move, `{"query", "target"}`, is read as a conversation of two messages.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch.utils.data import Sampler

from training.errors import TrainingRefused, shown
from training.json_rows import RepeatedField, parse_json, plain_message, tool_use
from training.losses.base import IGNORED
from training.methods.base import LARGEST, Config
from training.packing import pack
from training.rendering import MarkedTokens, Renderer

ROLES = ("system", "user", "assistant")
_ROUNDED_UP = 1e-3  # how far rounding may lift a log-probability above 0
_BUCKET = 50  # batches whose rows are sorted by length together
_OF_MOVE = {"reward": "reward", "weight": "weight", "role": "player_role"}  # what a published row says of its move


class Grouped(Protocol):
    """A row with the name of its group."""

    @property
    def group(self) -> str: ...


G = TypeVar("G", bound=Grouped)


@dataclass(frozen=True, slots=True)
class Conversation:
    """One row of a file: its place there, the match's seat that it belongs to, its messages, and the tokenizer in whose
    tokens they were said.

    `type` is "sft" for a supervised row among rows with rewards, for which it is "sample" or none; `game` is the name
    of the game, `policy` the hash of the checkpoint that played, `dtype` the number format in which it computed, and
    `engine` the server that ran it, none for a worker.
    """

    place: str
    group: str
    messages: tuple[Mapping[str, Any], ...]
    tokenizer: str | None = None
    type: Any = None
    game: Any = None
    policy: Any = None
    dtype: Any = None
    engine: Any = None

    @property
    def names_group(self) -> bool:
        """Whether the row names its group, instead of getting it from its place."""
        return self.group != _line_of(self.place)

    @property
    def is_learnt(self) -> bool:
        """Whether any move has a weight other than 0."""
        return any(each["role"] == "assistant" and each.get("weight", 1) for each in self.messages)


class Rows(Protocol):
    """The training data of a trainer: items by number, which come in batches, and facts about them."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The group of each item."""

    @property
    def lengths(self) -> Sequence[int]:
        """The number of tokens of each item, when it is padded."""

    @property
    def sequences(self) -> tuple[MarkedTokens, ...]:
        """All token sequences."""

    @property
    def too_long(self) -> Counter[str]:
        """How many rows were too long, by what was done with them: the names in `rendering.TOO_LONG`."""

    @property
    def targets(self) -> int:
        """How many tokens are to be learnt."""

    def __len__(self) -> int: ...

    def __getitem__(self, at: int, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class TokenRows:
    """The training data: token sequences and the group of each, and what was done with rows that were too long.

    `rows` has the number of the conversation that each sequence belongs to.
    """

    sequences: tuple[MarkedTokens, ...]
    groups: tuple[str, ...]
    too_long: Counter[str]
    rows: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.sequences)

    def __getitem__(self, at: int) -> tuple[int, MarkedTokens]:
        return at, self.sequences[at]

    @property
    def lengths(self) -> Sequence[int]:
        """The number of tokens of each sequence."""
        return [len(each.ids) for each in self.sequences]

    @property
    def targets(self) -> int:
        """How many tokens are to be learnt."""
        return sum(sum(each.learnt) for each in self.sequences)


def read_conversations(path: Path) -> list[Conversation]:
    """The conversations of a JSONL or JSON file, except those whose moves all have weight 0.

    Raises Refused, naming the row, and if no conversation is left.
    """
    found = [each for place, raw in read_objects(path) if (each := _read_conversation(place, raw)).is_learnt]
    if not found:
        raise TrainingRefused(f"{path}: expected a row with a move to learn from, got moves of weight 0 alone")
    return found


def read_objects(path: Path) -> list[tuple[str, Any]]:
    """The objects in a JSONL or JSON file, each with its place. Raises Refused, also if there are none."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # some programs begin UTF-8 with a mark
    except OSError as error:
        raise TrainingRefused(f"{path}: expected a dataset file, got none: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TrainingRefused(f"{path}: expected UTF-8 text, got something else") from None
    objects = [(f"{path}, {place}", raw) for place, raw in _objects(path, text)]
    if not objects:
        raise TrainingRefused(f"{path}: expected rows, got none")
    return objects


def _objects(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    if text.lstrip().startswith("["):
        yield from ((f"row {number}", raw) for number, raw in enumerate(_parse_json_at(str(path), text), 1))
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"line {number}", _parse_json_at(f"{path}, line {number}", line)


def _parse_json_at(place: str, text: str) -> Any:
    try:
        return parse_json(text)
    except RepeatedField as error:
        raise TrainingRefused(f"{place}: expected each field of an object once, got {error}") from None
    except (ValueError, RecursionError) as error:
        raise TrainingRefused(f"{place}: expected JSON, got {shown(text)}: {error}") from None


def _read_conversation(place: str, raw: Any) -> Conversation:
    raw = _of_one_move(raw) if isinstance(raw, dict) and "messages" not in raw and "target" in raw else raw
    messages = raw.get("messages") if isinstance(raw, dict) else None
    if not isinstance(messages, list) or not messages:
        raise TrainingRefused(f'{place}: expected {{"messages": […]}}, got {shown(raw)}')
    messages = [plain_message(each) for each in messages]
    for number, each in enumerate(messages, 1):
        _check_message(f"{place}, message {number}", each)
    if messages[0]["role"] == "assistant":
        raise TrainingRefused(f"{place}: expected a first message of the user or the system, got the assistant's")
    if not any(each["role"] == "assistant" for each in messages):
        raise TrainingRefused(f"{place}: expected a move of the assistant to learn from, got none")
    tokenizer = raw.get("tokenizer")
    own = (each.get("ids") for each in messages if each["role"] == "assistant")
    if tokenizer is not None and not all(isinstance(ids, list) and all(type(id_) is int for id_ in ids) for ids in own):
        raise TrainingRefused(
            f"{place}: expected the ids of each of the assistant's moves beside a tokenizer, got none for one"
        )
    for number, each in enumerate(messages, 1):
        if tokenizer is not None and "log_probs" in each and not _are_log_probs(each["log_probs"], each.get("ids")):
            raise TrainingRefused(
                f"{place}, message {number}: log_probs: expected a number up to 0 for each of its ids,"
                f" got {shown(each['log_probs'])}; leave them out to have them computed"
            )
    facts = (raw.get(name) for name in ("type", "game", "policy", "dtype", "engine"))
    return Conversation(place, group_of(place, raw), tuple(messages), tokenizer, *facts)


def _check_message(place: str, raw: Any) -> None:
    if isinstance(raw, dict) and (used := tool_use(raw)):
        field, got = used
        raise TrainingRefused(f"{place}: {field}: expected a chat without tool calls, got {got}; leave the row out")
    if not isinstance(raw, dict) or raw.get("role") not in ROLES or not isinstance(raw.get("content"), str):
        raise TrainingRefused(f"{place}: expected a role ({', '.join(ROLES)}) and a content, got {shown(raw)}")
    if not isinstance(raw.get("reasoning", ""), str | None):
        raise TrainingRefused(f"{place}: reasoning: expected a text, got {shown(raw['reasoning'])}")
    weight = raw.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= LARGEST:
        raise TrainingRefused(
            f"{place}: weight: expected a number from 0 to {LARGEST:.0f}, got {shown(weight)}; 0 is not learnt"
        )


def _are_log_probs(values: Any, ids: Any) -> bool:
    return (
        isinstance(values, list)
        and isinstance(ids, list)
        and len(values) == len(ids)
        and all(type(each) in (int, float) and -LARGEST <= each <= _ROUNDED_UP for each in values)
    )


def group_of(place: str, raw: Mapping[str, Any]) -> str:
    """The group that a row names, or its line."""
    return str(raw.get("group", _line_of(place)))


def _line_of(place: str) -> str:
    return place.rpartition(", ")[2]


def _of_one_move(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A published row of one move as a conversation."""
    move = {name: raw[key] for key, name in _OF_MOVE.items() if key in raw}
    query = {"role": "user", "content": raw.get("query")}
    return {**raw, "messages": [query, {"role": "assistant", "content": raw["target"], **move}]}


def render_rows(conversations: Sequence[Conversation], renderer: Renderer) -> TokenRows:
    """All conversations as token sequences, in their order. Raises Refused, naming the row that cannot be one."""
    sequences: list[MarkedTokens] = []
    groups: list[str] = []
    rows: list[int] = []
    too_long: Counter[str] = Counter()
    for number, each in enumerate(conversations):
        sampled = None
        if each.tokenizer is not None and each.tokenizer == renderer.tokenizer_hash:
            sampled = [message["ids"] for message in each.messages if message["role"] == "assistant"]
        try:
            marked, done = renderer.render(each.messages, sampled)
        except TrainingRefused as error:
            raise TrainingRefused(f"{each.place} ({each.group}): {error}") from None
        sequences += marked
        groups += [each.group] * len(marked)
        rows += [number] * len(marked)
        too_long += done
    return TokenRows(tuple(sequences), tuple(groups), too_long, tuple(rows))


def split(conversations: Sequence[G], share: float, seed: int) -> tuple[list[G], list[G]]:
    """Rows to train on and rows to evaluate on. Both seats of a match are on the same side: they contain the same
    words.

    Raises Refused if a side would be empty.
    """
    if share == 0:
        return list(conversations), []
    matches = sorted({_match_of(each.group) for each in conversations})
    random.Random(seed).shuffle(matches)
    aside = set(matches[: max(1, round(share * len(matches)))])
    if len(aside) == len(matches):
        raise TrainingRefused(
            f"eval_share: expected rows of more matches, got {len(matches)} in all; lower it or leave it out"
        )
    kept = [each for each in conversations if _match_of(each.group) not in aside]
    return kept, [each for each in conversations if _match_of(each.group) in aside]


def read_rows(config: Config) -> tuple[list[Conversation], list[Conversation]]:
    """The conversations to train on and those to evaluate on. Raises Refused."""
    return read_sides(config, read_conversations)


def read_sides(config: Config, read: Callable[[Path], list[G]]) -> tuple[list[G], list[G]]:
    """What `read` finds to train on, and to evaluate on. Raises Refused."""
    rows = read(config.data)
    if config.eval_data is not None:
        return rows, read(config.eval_data)
    return split(rows, config.eval_share, config.seed)


def without_matches_of(rows: Sequence[Conversation], aside: Sequence[Grouped]) -> list[Conversation]:
    """The rows without those that name a group of a match that is set aside: they contain the same words."""
    matches = {_match_of(each.group) for each in aside}
    return [each for each in rows if not (each.names_group and _match_of(each.group) in matches)]


def _match_of(group: str) -> str:
    return group.rpartition(":")[0] or group


class Collator:
    """Pads sequences on the right, which causal attention never looks at: no mask is needed.

    With `packed`, all sequences are in one row without padding, and logits are asked for only where they are used.
    """

    def __init__(self, padding: int, packed: bool = False) -> None:
        self._padding = padding
        self._packed = packed

    def __call__(self, rows: Sequence[tuple[int, MarkedTokens]]) -> dict[str, Any]:
        """`input_ids`, `labels` and `weights` (B, T), and `rows` (B,), the rows' numbers.

        Packed: `input_ids` and `position_ids` (1, T), `segments` as in Packed, and `logits_to_keep` (P + 1,), the
        positions before the P tokens to learn and one more; `labels` and `weights` (1, P + 1) belong to these.
        """
        numbers = torch.tensor([number for number, _ in rows])
        return {**(self._in_one_row if self._packed else self._padded)(rows), "rows": numbers}

    def _in_one_row(self, rows: Sequence[tuple[int, MarkedTokens]]) -> dict[str, Any]:
        packed = pack([each.ids for _, each in rows], [0] * len(rows))
        ids = torch.tensor([packed.ids])
        weights = torch.tensor([[weight for _, each in rows for weight in each.weights]])
        learnt = weights[0].nonzero()[:, 0]
        # A loss compares each label with the logits one place before it; the first label and the last logits go unused.
        first = torch.zeros(1, dtype=learnt.dtype)
        return {
            "input_ids": ids,
            "position_ids": torch.tensor([packed.position_ids]),
            "segments": packed.segments,
            "logits_to_keep": torch.cat([learnt - 1, first]),
            "labels": torch.cat([first + IGNORED, ids[0, learnt]])[None],
            "weights": torch.cat([torch.zeros(1), weights[0, learnt]])[None],
        }

    def _padded(self, rows: Sequence[tuple[int, MarkedTokens]]) -> dict[str, Any]:
        longest = max(len(each.ids) for _, each in rows)
        ids = torch.full((len(rows), longest), self._padding)
        labels = torch.full((len(rows), longest), IGNORED)
        weights = torch.zeros((len(rows), longest))
        for at, (_, each) in enumerate(rows):
            tokens = torch.tensor(each.ids)
            ids[at, : len(tokens)] = tokens
            weights[at, : len(tokens)] = torch.tensor(each.weights)
            labels[at, : len(tokens)] = torch.where(weights[at, : len(tokens)] > 0, tokens, IGNORED)
        return {"input_ids": ids, "labels": labels, "weights": weights}


class EpochOrder(Sampler[int]):
    """The order of the rows in an epoch: a function of only seed and epoch, whatever was drawn or killed before.

    Rows of similar length are together in a batch, to keep padding low, and batches come in a random order. `batch` is
    the number of rows of one optimizer step: the order does not depend on how a step is accumulated.

    If several processes share a step, each needs the same number of batches: numbers below 0 extend an epoch to a
    multiple of `multiple` rows. A row with such a number must be computed but not counted.
    """

    def __init__(self, rows: Rows, batch: int, seed: int, multiple: int = 1) -> None:
        self._lengths = rows.lengths
        self._missing = -len(rows.lengths) % multiple
        self._batch = batch
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the next epoch; the Trainer calls this."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._lengths) + self._missing

    def __iter__(self) -> Iterator[int]:
        rng = random.Random(f"{self._seed}:{self._epoch}")
        order = list(range(len(self._lengths)))
        rng.shuffle(order)
        size = self._batch * _BUCKET
        order = [
            at for begin in range(0, len(order), size) for at in sorted(order[begin : begin + size], key=self._length)
        ]
        batches = [order[begin : begin + self._batch] for begin in range(0, len(order), self._batch)]
        short = [batches.pop()] if len(batches[-1]) < self._batch else []
        rng.shuffle(batches)
        return (at for batch in [*batches, *short, [-1] * self._missing] for at in batch)

    def _length(self, at: int) -> int:
        return self._lengths[at]
