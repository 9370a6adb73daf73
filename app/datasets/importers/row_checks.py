"""Checks of rows in the format of trainings, which refuse, by field, what a training would refuse. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.core.errors import Invalid, Phrase, Verbatim, either
from app.games.base import JSON
from training.json_rows import plain_message, tool_use
from training.methods.base import LARGEST, SAMPLED, SUPERVISED

ROLES = ("system", "user", "assistant")
TYPES = (SAMPLED, SUPERVISED)  # for moves with rewards, where the type may be omitted, and for moves without
_LARGEST = 1e300  # for numbers other than rewards and weights
_LONGEST_LABEL = 200  # characters of the name of a match, a game, a role or a checkpoint
_TEXT = Phrase("a text that is not empty")
PREFERRED, REJECTED = 1, 0  # scores of a pair of which only the preference is known


def read_text(name: str, raw: Any) -> str:
    """A non-empty text. Raises Invalid."""
    if not isinstance(raw, str) or not raw.strip():
        raise Invalid(name, expected=_TEXT, got=raw)
    return raw


def is_number(raw: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(raw, int | float) and not isinstance(raw, bool) and abs(raw) <= _LARGEST


def read_messages(raw: Any, name: str = "messages") -> list[JSON]:
    """A list of messages, each with a role and a content, in the format of trainings. Raises Invalid."""
    if not isinstance(raw, list) or not raw:
        raise Invalid(name, expected=Phrase("a list of messages"), got=raw)
    messages = [plain_message(each) for each in raw]
    for at, message in enumerate(messages):
        if not isinstance(message, dict):
            raise Invalid(f"{name}[{at}]", expected=Phrase("an object with role and content"), got=message)
        if used := tool_use(message):
            raise tool_error(f"{name}[{at}].{used[0]}", used[1])
        if message.get("role") not in ROLES:
            raise Invalid(f"{name}[{at}].role", expected=either(ROLES), got=message.get("role"))
        if not isinstance(message.get("content"), str):
            raise Invalid(f"{name}[{at}].content", expected=Phrase("a text"), got=message.get("content"))
    return messages


def tool_error(field: str, got: str) -> Invalid:
    """The refusal of a chat with tool calls or tool results."""
    return Invalid(field, expected=Phrase("a chat without tool calls, which no row here can hold"), got=Verbatim(got))


def is_learnt(message: Mapping[str, Any]) -> bool:
    """Whether a message of a conversation is a move to train on."""
    return message["role"] == "assistant" and bool(message.get("weight", 1))


def read_conversation(row: JSON) -> JSON:
    """The row as a conversation of ours; all of its moves may have weight 0. Raises Invalid."""
    messages = read_messages(row.get("messages"))
    for name in ("group", "game", "policy"):
        _check_label(name, row.get(name))
    for at, message in enumerate(messages):
        _check_label(f"messages[{at}].player_role", message.get("player_role"))
        weight, reward = message.get("weight", 1), message.get("reward", 0)
        for name, value, least in (("weight", weight, 0), ("reward", reward, -int(LARGEST))):
            if not is_number(value) or not least <= value <= LARGEST:
                expected = Phrase("a number from %(least)s to %(most)s", least=least, most=int(LARGEST))
                raise Invalid(f"messages[{at}].{name}", expected=expected, got=value)
    if messages[0]["role"] == "assistant":
        raise Invalid("messages[0].role", expected=either(("system", "user")), got="assistant")
    if not any(message["role"] == "assistant" for message in messages):
        raise Invalid("messages", expected=Phrase("a message of the assistant"), got=Phrase("none"))
    if row.get("type") not in (None, *TYPES):
        raise Invalid("type", expected=Phrase("%(types)s, or none", types=either(TYPES)), got=row["type"])
    if row.get("tokenizer") is not None:
        _check_ids(messages)
    return {**row, "messages": messages}


def _check_label(name: str, value: Any) -> None:
    """Raises Invalid for a value that is neither None nor a short name, which figures and every database can hold."""
    if value is not None and not (isinstance(value, str) and value.isprintable() and len(value) <= _LONGEST_LABEL):
        expected = Phrase("at most %(most)s characters that can be printed", most=_LONGEST_LABEL)
        raise Invalid(name, expected=expected, got=value)


def check_learnt(row: JSON) -> None:
    """Raises Invalid for a conversation without a move to train on."""
    if not any(map(is_learnt, row["messages"])):
        expected = Phrase("a message of the assistant to learn, with a weight above 0")
        raise Invalid("messages", expected=expected, got=Phrase("none"))


def _check_ids(messages: Iterable[JSON]) -> None:
    for at, message in enumerate(messages):
        ids = message.get("ids")
        if message["role"] == "assistant" and not (isinstance(ids, list) and all(type(id_) is int for id_ in ids)):
            raise Invalid(f"messages[{at}].ids", expected=Phrase("the tokens of the message"), got=ids)


def read_comparison(row: JSON, highest: float | None = None) -> JSON:
    """The row as a comparison. Raises Invalid if it has nothing to train on, or a score above `highest`."""
    _check_label("group", row.get("group"))
    read_text("query", row.get("query"))
    responses, scores = row.get("responses"), row.get("scores")
    if not isinstance(responses, list) or not responses:
        raise Invalid("responses", expected=Phrase("a list of texts"), got=responses)
    for at, response in enumerate(responses):
        read_text(f"responses[{at}]", response)
    if not isinstance(scores, list) or len(scores) != len(responses):
        raise Invalid("scores", expected=Phrase("%(number)s numbers", number=len(responses)), got=scores)
    for at, score in enumerate(scores):
        if not is_number(score) or score < 0 or (highest is not None and score > highest):
            most = Phrase("a number from 0 to %(most)s", most=highest)
            expected = Phrase("a number from 0 on") if highest is None else most
            raise Invalid(f"scores[{at}]", expected=expected, got=score)
    if row.get("history") is None:
        return row
    history = read_messages(row["history"], "history")
    if history[0]["role"] == "assistant":
        raise Invalid("history[0].role", expected=either(("system", "user")), got="assistant")
    return {**row, "history": history}


def read_pair(chosen: Sequence[JSON], rejected: Sequence[JSON], names: tuple[str, str], of_row: JSON) -> JSON:
    """A comparison of two chats that differ in their last answer; the messages before the query are its history.

    `names` are the row's fields for the two, and `of_row` has the other fields of the comparison. Raises Invalid.
    """
    for name, chat in zip(names, (chosen, rejected), strict=True):
        if [each["role"] for each in chat[-2:]] != ["user", "assistant"]:
            got = Verbatim(", ".join(each["role"] for each in chat[-2:]))
            raise Invalid(name, expected=Phrase("the assistant’s answer to the user at the end"), got=got)
        read_text(name, chat[-1]["content"])
    if chosen[:-1] != rejected[:-1]:
        expected = Phrase("the turns of “%(chosen)s” up to the last", chosen=Verbatim(names[0]))
        raise Invalid(names[1], expected=expected, got=Phrase("others"))
    *history, query, answer = chosen
    responses = [answer["content"], rejected[-1]["content"]]
    if responses[0] == responses[1]:
        expected = Phrase("a different answer from “%(chosen)s”", chosen=Verbatim(names[0]))
        raise Invalid(names[1], expected=expected, got=Phrase("the same"))
    found = {"query": query["content"], "responses": responses, "scores": [PREFERRED, REJECTED]}
    return read_comparison({**of_row, **found, **({"history": history} if history else {})})
