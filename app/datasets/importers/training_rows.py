"""Training rows in published formats, converted to the format that trainings read (docs/training.md). Pure.

Sources: Cheng et al. 2024, arXiv 2404.10642 (rows of one move); Liu et al. 2023, arXiv 2305.16960 (rated responses);
Bai et al. 2022, arXiv 2204.05862 (chosen and rejected dialogues); Taori et al. 2023, Stanford Alpaca (instructions).
Those of chats are in `chat_rows`.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from app.core.errors import Invalid, Phrase, Verbatim, either
from app.datasets.importers import chat_rows
from app.datasets.importers.row_checks import is_number, read_comparison, read_conversation, read_pair, read_text
from app.datasets.json_list import fields_of
from app.games.base import JSON
from training.methods.base import COMPARISONS, CONVERSATIONS

SEPARATOR = "<sep>"  # between query and response in a `text` of the published rows of one move
HIGHEST_RATING = 7  # of the society that rated responses
_TURN = re.compile(r"(?:^|\n\n)(Human|Assistant):[ \t]?")
_SPEAKERS = {"Human": "user", "Assistant": "assistant"}


@dataclass(frozen=True, slots=True)
class ImportFormat:
    """A format of rows. `kind` is the kind of its datasets; None if each row determines it.

    `fields` are alternative sets of fields, one of which each row has. `reader` converts such a row to ours.
    """

    name: str
    title: Phrase
    kind: str | None
    example: str
    fields: tuple[tuple[str, ...], ...]
    reader: Callable[[JSON], JSON]

    def fits(self, row: JSON) -> bool:
        """Whether a row has the fields of this format."""
        return any(row.keys() >= {*way} for way in self.fields)

    def read(self, raw: Any) -> JSON:
        """Our form of one of their rows. Raises Invalid, which names the field that is wrong or what was found
        instead.
        """
        if isinstance(raw, dict) and self.fits(raw):
            return self.reader(raw)
        others = [each.name for each in FORMATS.values() if each.fits(raw)] if isinstance(raw, dict) else []
        wanted = either(f"{{{', '.join(way)}}}" for way in self.fields)
        raise Invalid(
            None,
            expected=Phrase("an object with %(fields)s", fields=wanted),
            got=fields_of(raw),
            remedy=Phrase("choose the format %(formats)s", formats=either(others)) if others else None,
        )


def kind_of(row: Mapping[str, Any]) -> str:
    """The kind of datasets that a row of ours belongs to."""
    return COMPARISONS if "responses" in row else CONVERSATIONS


def line_of(row: JSON) -> bytes:
    """The bytes of a row in a dataset's file. Raises Invalid for values that no file of rows can hold."""
    try:
        text = json.dumps(row, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return f"{text}\n".encode()
    except UnicodeEncodeError:
        raise Invalid(None, expected=Phrase("Unicode text"), got=Phrase("half of a surrogate pair")) from None
    except ValueError:
        raise Invalid(None, expected=Phrase("finite numbers"), got=Phrase("NaN or Infinity")) from None


# ---- Formats ----------------------------------------------------------------------


def read_own(row: JSON) -> JSON:
    """A row as `flask dataset export` writes it, with all of its fields."""
    return read_comparison(row) if "responses" in row else read_conversation(row)


def read_move(row: JSON) -> JSON:
    """A published row of one move as a conversation: query, target, and its reward, weight, type and role."""
    query, target = _query_and_target(row)
    said = {"role": "user", "content": query}
    return chat_rows.read_moves(row, [said], [{"role": "assistant", "content": target}])


def read_rated(row: JSON) -> JSON:
    """A published row of rated responses as a comparison."""
    names = ("query", "responses", "scores", "models", "group")
    found = {name: row[name] for name in names if row.get(name) is not None}
    return read_comparison(found, HIGHEST_RATING)


def read_preference(row: JSON) -> JSON:
    """Two dialogues that differ in their last answer, as a comparison; the turns before the query are its history."""
    names = ("chosen", "rejected")
    chosen, rejected = (_turns_of_dialogue(name, row[name]) for name in names)
    return read_pair(chosen, rejected, names, {})


def read_instruction(row: JSON) -> JSON:
    """An instruction, its optional input, and the output as a conversation, after the system message if there is one.

    Raises Invalid, also for a `history` field, which some programs add.
    """
    if row.get("history"):
        raise Invalid("history", expected=Phrase("none beside an instruction"), got=row["history"])
    asked = read_text("instruction", row["instruction"])
    if more := row.get("input"):
        asked = f"{asked}\n\n{read_text('input', more)}"
    answer = read_text("output", row["output"])
    rules = row.get("system")
    before = [{"role": "system", "content": read_text("system", rules)}] if rules else []
    return {"messages": [*before, {"role": "user", "content": asked}, {"role": "assistant", "content": answer}]}


def _example(row: JSON) -> str:
    return json.dumps(row, ensure_ascii=False)


_ASKED, _ANSWER = ([{"role": role, "content": "…"}] for role in ("user", "assistant"))
FORMATS: Mapping[str, ImportFormat] = {
    each.name: each
    for each in (
        ImportFormat(
            "parlor",
            Phrase("Rows of Parlor: what a dataset’s page or `flask dataset export` writes"),
            None,
            _example({"messages": _ASKED + _ANSWER}),
            (("messages",), ("query", "responses", "scores")),
            read_own,
        ),
        ImportFormat(
            "spag-rows",
            Phrase("Moves with rewards, one a row, as SPAG has published them"),
            CONVERSATIONS,
            _example({"query": "…", "target": "…", "reward": 0.4, "weight": 1.2, "role": "attacker"}),
            (*product(("query", "prompt"), ("target", "answer")), ("text",)),
            read_move,
        ),
        ImportFormat(
            "stable-alignment",
            Phrase("Rated responses of Stable Alignment"),
            COMPARISONS,
            _example({"query": "…", "responses": ["…", "…"], "scores": [7, 2]}),
            (("query", "responses", "scores"),),
            read_rated,
        ),
        ImportFormat(
            "hh",
            Phrase("Chosen and rejected dialogues, as in HH-RLHF"),
            COMPARISONS,
            _example({"chosen": "\n\nHuman: …\n\nAssistant: …", "rejected": "\n\nHuman: …\n\nAssistant: …"}),
            (("chosen", "rejected"),),
            read_preference,
        ),
        ImportFormat(
            "alpaca",
            Phrase("Instructions with outputs, as in Alpaca"),
            CONVERSATIONS,
            _example({"instruction": "…", "input": "", "output": "…"}),
            (("instruction", "output"),),
            read_instruction,
        ),
        ImportFormat(
            "openai",
            Phrase("Chats for OpenAI’s fine-tuning"),
            CONVERSATIONS,
            _example({"messages": [*_ASKED, {**_ANSWER[0], "weight": 1}]}),
            (("messages",),),
            chat_rows.read_openai,
        ),
        ImportFormat(
            "openai-preference",
            Phrase("Preferences for OpenAI’s fine-tuning"),
            COMPARISONS,
            _example({"input": {"messages": _ASKED}, "preferred_output": _ANSWER, "non_preferred_output": _ANSWER}),
            (("input", "preferred_output", "non_preferred_output"),),
            chat_rows.read_openai_preference,
        ),
        ImportFormat(
            "sharegpt",
            Phrase("Conversations as in ShareGPT"),
            CONVERSATIONS,
            _example({"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}]}),
            (("conversations",), ("items",)),
            chat_rows.read_sharegpt,
        ),
        ImportFormat(
            "trl-prompt-completion",
            Phrase("Prompts and completions for TRL"),
            CONVERSATIONS,
            _example({"prompt": _ASKED, "completion": _ANSWER}),
            (("prompt", "completion"),),
            chat_rows.read_prompt_completion,
        ),
        ImportFormat(
            "trl-preference",
            Phrase("Chosen and rejected answers for TRL"),
            COMPARISONS,
            _example({"prompt": _ASKED, "chosen": _ANSWER, "rejected": _ANSWER}),
            (("chosen", "rejected"),),
            chat_rows.read_trl_preference,
        ),
    )
}


# ---- Parts of rows ----------------------------------------------------------------


def _query_and_target(row: JSON) -> tuple[str, str]:
    """Query and target by any of their names; of several rated texts, the first of the best."""
    texts, scores = row.get("text"), row.get("scores")
    if texts is None:
        query, target = (_first_text(row, names) for names in (("query", "prompt"), ("target", "answer")))
        return query, target
    texts = [texts] if isinstance(texts, str) else texts
    scores = [0] * len(texts) if scores is None and isinstance(texts, list) else scores
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) for each in texts):
        raise Invalid("text", expected=Phrase("a list of texts"), got=row["text"])
    if not isinstance(scores, list) or len(scores) != len(texts) or not all(map(is_number, scores)):
        raise Invalid("scores", expected=Phrase("%(number)s numbers", number=len(texts)), got=row.get("scores"))
    best = texts[scores.index(max(scores))]
    query, mark, target = best.partition(SEPARATOR)
    if not mark:
        raise Invalid("text", expected=Phrase("%(mark)s between query and response", mark=SEPARATOR), got=best)
    query = _first_text(row, ("query", "prompt")) if "query" in row or "prompt" in row else query
    return read_text("text", query), read_text("text", target)


def _first_text(row: JSON, names: Sequence[str]) -> str:
    name = next((name for name in names if row.get(name) is not None), names[0])
    return read_text(name, row.get(name))


def _turns_of_dialogue(name: str, raw: Any) -> list[JSON]:
    """The turns of a dialogue text, with consecutive ones of a speaker joined; the last two are query and answer."""
    if isinstance(raw, list):
        remedy = Phrase("choose the format %(formats)s", formats=Verbatim("trl-preference"))
        raise Invalid(name, expected=Phrase("a text of turns"), got=Phrase("a list of messages"), remedy=remedy)
    text = read_text(name, raw)
    parts = _TURN.split(text)
    turns: list[JSON] = []
    for speaker, said in zip(parts[1::2], parts[2::2], strict=True):
        role = _SPEAKERS[speaker]
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{said.strip()}"
        else:
            turns.append({"role": role, "content": said.strip()})
    if parts[0].strip() or [turn["role"] for turn in turns[:1] + turns[-1:]] != ["user", "assistant"]:
        expected = Phrase("turns after “Human:” and “Assistant:”, from a human’s to an assistant’s")
        raise Invalid(name, expected=expected, got=text)
    return turns
