"""The rows of a dataset in the formats that other programs train on. Pure.

A program that reads them makes prompts from them, so prompt marks in messages are broken.

Sources: the rows of Self-Play of Adversarial Language Game (arXiv 2404.10642, its
`tools/assign_rewards.py`); OpenAI's fine-tuning guide
(https://platform.openai.com/docs/guides/supervised-fine-tuning); TRL's dataset formats
(https://huggingface.co/docs/trl/dataset_formats).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.core.errors import Invalid, Phrase, Verbatim
from app.datasets.exporters.flat import DIALOGUE, flatten, marks_of
from app.games.base import JSON
from training.marks import FAMILIES
from training.methods.base import COMPARISONS, CONVERSATIONS, SAMPLED, SUPERVISED

PARLOR = "parlor"
SPAG_ROWS = "spag-rows"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RowFormat:
    """A format of rows for one kind of datasets. `rows` converts a row, with a template's name, to rows of the format.

    The queries of a `flat` format use a template. An `array` is one JSON array, other formats are JSON lines. A format
    without `any_weight` allows only 0 and 1, one without `any_reward` none below 0.
    """

    name: str
    title: str
    summary: str
    kind: str
    rows: Callable[[Row, str], Iterable[JSON]]
    flat: bool = False
    array: bool = False
    any_weight: bool = True
    any_reward: bool = False

    @property
    def suffix(self) -> str:
        """The suffix of a file name."""
        return "json" if self.array else "jsonl"


def export_rows(lines: Iterable[bytes], form: RowFormat, template: str = DIALOGUE) -> Iterator[bytes]:
    """A dataset's lines in another format, in pieces; the same lines give the same bytes.

    Raises Invalid, naming the row, for a row that does not fit the format, and if no move to train on is left.
    """
    written = 0
    for number, line in enumerate(lines, 1):
        try:
            found = list(form.rows(json.loads(line), template))
        except Invalid as refused:
            raise refused.at(Phrase("row %(number)s", number=number)) from None
        for each in found:
            before = b"" if not form.array else b",\n" if written else b"[\n"
            yield before + json.dumps(each, ensure_ascii=False).encode() + (b"" if form.array else b"\n")
            written += 1
    if not written:
        raise Invalid("dataset", expected=Phrase("a move to learn"), got=Phrase("none"))
    if form.array:
        yield b"\n]\n"


def _learnt_moves(row: Row) -> Iterator[tuple[list[Mapping[str, Any]], Mapping[str, Any]]]:
    """Each move to train on, with the messages before it."""
    messages = row["messages"]
    for number, message in enumerate(messages):
        if _is_learnt(message):
            yield messages[:number], message


def _is_learnt(message: Mapping[str, Any]) -> bool:
    """Whether a message is a move to train on; one without text has nothing for another program to train on."""
    return message["role"] == "assistant" and bool(message.get("weight", 1)) and bool(message["content"].strip())


def _spag_rows(row: Row, template: str) -> Iterator[JSON]:
    """One row per move. A row without rewards is for supervised training."""
    for before, move in _learnt_moves(row):
        supervised = row.get("type") == SUPERVISED or "reward" not in move
        found: JSON = {"query": flatten(template, before), "target": marks_of(template).broken(move["content"])}
        if not supervised:
            found["reward"] = move["reward"]
        found |= {"weight": move.get("weight", 1.0), "type": SUPERVISED if supervised else SAMPLED}
        yield found | ({"role": move["player_role"]} if "player_role" in move else {})


def openai_row(row: Row, vendor: str = "OpenAI") -> JSON | None:
    """A chat in OpenAI's format: role and text of each message, and weights of 0 or 1. None if it has no move to train
    on.

    It ends with the last answer, as OpenAI requires. Raises Invalid for other weights, and for a move with a negative
    reward, because OpenAI has no rewards. `vendor` names the reader in errors.
    """
    messages: list[JSON] = []
    end = max((at for at, each in enumerate(row["messages"], 1) if each["role"] == "assistant"), default=0)
    for message in row["messages"][:end]:
        found = _plain_message(message)
        if message["role"] == "assistant" and message.get("weight") is not None:
            weight = message["weight"]
            if weight not in (0, 1):
                raise Invalid(
                    "dataset",
                    expected=Phrase("0 or 1, the only weights that %(vendor)s accepts", vendor=vendor),
                    got=weight,
                    remedy=Phrase("build the dataset with `--no-role-weights`, or choose another format"),
                    subject=Verbatim("weight"),
                )
            found["weight"] = int(weight)
        if message["role"] == "assistant":
            _refuse_negative(message)
            if not _is_learnt(message):
                found["weight"] = 0
        messages.append(found)
    return {"messages": messages} if any(map(_is_learnt, messages)) else None


def _openai(row: Row, _template: str) -> Iterator[JSON]:
    found = openai_row(row)
    if found is not None:
        yield found


def _prompt_completion(row: Row, _template: str) -> Iterator[JSON]:
    """One row per move. Weight and reward are columns beside it, which TRL's own trainers do not read."""
    for before, move in _learnt_moves(row):
        _refuse_negative(move)
        extra = {name: move[name] for name in ("weight", "reward") if name in move}
        yield {"prompt": [_plain_message(each) for each in before], "completion": [_plain_message(move)], **extra}


def preference_pairs(row: Row) -> Iterator[JSON]:
    """The best response to a query, paired with each lower-rated response that has another text."""
    best = max(range(len(row["scores"])), key=lambda at: (row["scores"][at], -at))
    before = [_plain_message(each) for each in row.get("history") or ()]
    prompt = [*before, _plain_message({"role": "user", "content": row["query"]})]
    answers = [[_plain_message({"role": "assistant", "content": each})] for each in row["responses"]]
    for answer, score in zip(answers, row["scores"], strict=True):
        if score < row["scores"][best] and answer != answers[best]:
            yield {"prompt": prompt, "chosen": answers[best], "rejected": answer}


def _preference(row: Row, _template: str) -> Iterator[JSON]:
    return preference_pairs(row)


def _refuse_negative(move: Mapping[str, Any]) -> None:
    """Raises Invalid for a move that should become less likely, in a format that only supports imitation."""
    weight = move.get("weight")
    if (weight is None or weight) and move.get("reward", 0) < 0:
        raise Invalid(
            "dataset",
            expected=Phrase("none below 0 in a format whose moves all become more likely"),
            got=Verbatim(f"{move['reward']:.4g}"),
            remedy=Phrase("build the dataset with `--positive-only`, or choose another format"),
            subject=Verbatim("reward"),
        )


def _plain_message(message: Mapping[str, Any]) -> JSON:
    return {"role": message["role"], "content": FAMILIES.broken(message["content"])}


FORMATS: Mapping[str, RowFormat] = {
    each.name: each
    for each in (
        RowFormat(
            SPAG_ROWS, "SPAG rows", "one row per move, as the SPAG paper publishes them", CONVERSATIONS, _spag_rows,
            flat=True, array=True, any_reward=True,
        ),
        RowFormat("openai", "OpenAI", "chats for OpenAI’s fine-tuning", CONVERSATIONS, _openai, any_weight=False),
        RowFormat(
            "trl-prompt-completion", "TRL prompt and completion", "one row per move, for TRL", CONVERSATIONS,
            _prompt_completion,
        ),
        RowFormat(
            "trl-preference", "TRL preference", "pairs of a better and a worse response, for TRL", COMPARISONS,
            _preference,
        ),
    )
}  # fmt: skip
