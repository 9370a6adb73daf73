"""The one place where a view becomes chat messages, for play and for training rows alike.

Prompts are append-only: a first user message with rules, role and what is private to the seat, then the moves as they
were made, the seat's own as the assistant's. Nothing is rendered again, so the messages of one turn are a prefix of
those of the seat's next turn, and whatever a server or a trainer has computed for them stays valid.

The texts are in data/prompts/GAME/STYLE-NUMBER.txt, or STYLE-NUMBER.ROLE.txt if roles need their own. Such a file has
sections under `=== name ===` lines and `$placeholders` of `string.Template`: every fact and secret of the view by its
name (`$limit`, `$counts_book`). Once a match was played with a file, the file never changes: the log names it.

A template may have wordings, TEMPLATE-NUMBER.txt from 2 on, which state the same in other words. They are never used in
play: they are for dataset rows that are rephrased.

If moves are asked for as JSON, a prompt has `answer`, the name of a text beside the templates, `json-NUMBER.txt`, which
says so after the rules and may reword other sections. In the chat, moves still appear as their text.

Prompts contain other people's words: those of partners, of the writers of contexts, of the model itself. The marks by
which models recognise turns and roles are broken in all of them (`training.marks`); events keep what was written. A
prompt names the version of the renderer that does so; one from before the second version names none and is rendered as
it was then.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from string import Template
from types import MappingProxyType

from app.core.config import ROOT
from app.core.errors import Invalid, NotFound, Verbatim, either
from app.games import find_game
from app.games.base import JSON, TranscriptEntry, View
from app.players.base import Refused
from training.marks import FIRST_RENDERER, OTHERS, RENDERER, broken_chat

FOLDER = ROOT / "data" / "prompts"
Message = dict[str, str]
USUAL_STYLE = "full"  # the prompt style of players without a style of their own

_ANSWER, _SYSTEM = "answer", "system"  # parts of a prompt
_JSON = "json"  # the name of the texts that ask for moves as JSON

_FILE = re.compile(r"(?P<template>(?P<style>[a-z]+)-(?P<number>[0-9]+))(\.[a-z]+)?\.txt")
_HEADING = re.compile(r"^=== (.+) ===\n", re.MULTILINE)


def templates(game: str) -> Mapping[str, tuple[str, ...]]:
    """The templates of a game by their style, `full` first and the oldest first. Raises NotFound for a game without."""
    return {style: names for style, names in _templates(game).items() if style != _JSON}


def styles(games: Iterable[str]) -> list[str]:
    """The styles that at least one of the games has, without duplicates."""
    return list(dict.fromkeys(style for game in games for style in templates(game)))


def default_prompt(game: str, style: str = USUAL_STYLE) -> JSON:
    """The newest template of a style, in the form of a match's `started` event. Raises NotFound."""
    styles = templates(game)
    if style not in styles:
        raise NotFound(None, expected=either(styles), got=style, subject=f"prompt style of {game}")
    return {"style": style, "template": styles[style][-1], "renderer": RENDERER}


def has_json_form(game: str) -> bool:
    """Whether a game's moves can be asked for as JSON."""
    return _JSON in _templates(game)


def asking_for_json(game: str, prompt: JSON) -> JSON:
    """The prompt, changed to ask for each move as JSON in the newest wording; its game has to have one
    (`has_json_form`).
    """
    return {**prompt, _ANSWER: _templates(game)[_JSON][-1]}


def asks_for_json(prompt: JSON | None) -> bool:
    """Whether a seat is asked for its moves as JSON; None is the prompt of a seat that is not prompted."""
    return prompt is not None and _ANSWER in prompt


def asking_for_text(prompt: JSON) -> JSON:
    """The prompt, changed to ask for moves as text, with the same template."""
    return {name: value for name, value in prompt.items() if name != _ANSWER}


def told_before(prompt: JSON, system: JSON, *, as_system: bool) -> JSON:
    """The prompt with a named text before the rules: as a system message, or in the first message.

    Templates of checkpoints often accept no system message.
    """
    return {**prompt, _SYSTEM: {**system, "as_system": as_system}}


def renderer_of(prompt: JSON) -> int:
    """The version of the renderer that a prompt names."""
    return int(prompt.get("renderer", FIRST_RENDERER))


def rendered_as(prompt: JSON, other: JSON) -> JSON:
    """A prompt with the version of the renderer that another one names."""
    version = {"renderer": other["renderer"]} if "renderer" in other else {}
    return {name: value for name, value in prompt.items() if name != "renderer"} | version


def wordings(game: str, prompt: JSON) -> list[JSON]:
    """The prompts that state the same as a game's prompt: itself, then the other wordings of its template."""
    return [{**prompt, "template": name} for name in _wordings(game, _template_of(game, prompt))]


def messages(view: View, prompt: JSON, refused: Sequence[Refused] = ()) -> list[Message]:
    """The chat of the seat that sees `view`, up to its next move; roles alternate from a user message on.

    A prompt with a text of its own has it before the chat, as a system message, or at the beginning of the chat.

    `refused` are the bad attempts of this turn. They are at the end of this prompt only: the turn after an accepted
    move continues from the messages without them. Raises Invalid for a prompt that the game does not have.
    """
    words = _template_sections(view, prompt)
    opening = rules(view, prompt)
    if asks_for_json(prompt):
        opening = f"{opening}\n\n{words['answer']}"
    system = prompt.get(_SYSTEM)
    if system is not None and not system["as_system"]:
        opening = f"{system['text']}\n\n{opening}"
    moves = list(view.transcript)
    if moves and moves[0].by == "partner":
        chat = [_user(f"{opening}\n\n{words['partner moved first']}\n\n{_partner_move_text(moves.pop(0), words)}")]
    else:
        chat = [_user(f"{opening}\n\n{words['you begin']}")]
    for move in moves:
        chat.append(_assistant(move.text or "") if move.by == "you" else _user(_partner_move_text(move, words)))
    for text, reason in refused:
        # Some servers refuse an assistant message without content, which would tell the model nothing anyway.
        chat.append(_assistant(text if text.strip() else words["empty reply"]))
        chat.append(_user(Template(words["correction"]).substitute(reason=reason)))
    if system is not None and system["as_system"]:
        chat.insert(0, {"role": "system", "content": system["text"]})
    return chat if renderer_of(prompt) == FIRST_RENDERER else broken_chat(chat, OTHERS)


def rules(view: View, prompt: JSON) -> str:
    """The beginning of the first message: rules, role, and what is private to the seat. Raises Invalid as `messages`
    does.
    """
    words = _template_sections(view, prompt)
    return Template(words["rules"]).substitute(_template_values(view, words))


def instead_of(view: View, prompt: JSON, kind: str) -> str:
    """The text that a seat reads in place of a partner's move of a hidden kind. Raises Invalid as `messages` does."""
    return _template_sections(view, prompt)[f"partner {kind}"]


def _user(content: str) -> Message:
    return {"role": "user", "content": content}


def _assistant(content: str) -> Message:
    return {"role": "assistant", "content": content}


def _partner_move_text(move: TranscriptEntry, words: Mapping[str, str]) -> str:
    """A partner's move as it was first seen: a kind with a section of its own was hidden, and stays hidden."""
    return words.get(f"partner {move.kind}") or move.text or ""


def _template_sections(view: View, prompt: JSON) -> Mapping[str, str]:
    words = _sections(view.game, _template_of(view.game, prompt), view.role)
    return {**words, **_sections(view.game, prompt[_ANSWER], view.role)} if asks_for_json(prompt) else words


def _template_values(view: View, words: Mapping[str, str]) -> dict[str, str]:
    values = {}
    for name, value in {**view.facts, **view.secret}.items():
        if isinstance(value, Mapping):
            values.update({f"{name}_{part}": str(inner) for part, inner in value.items()})
        else:
            values[name] = str(value)
    return {**values, **find_game(view.game).prompt_words(view.facts, words)}


def _template_of(game: str, prompt: JSON) -> str:
    style, template = prompt.get("style"), prompt.get("template")
    known_ones = templates(game).get(str(style), ())
    if template not in known_ones and not any(template in _wordings(game, name) for name in known_ones):
        known = ", ".join(name for names in templates(game).values() for name in names)
        raise Invalid(
            None,
            expected=f"one of the templates {known}",
            got=Verbatim(f"{style!r} with {template!r}"),
            subject=f"prompt of {game}",
        )
    return str(template)


@lru_cache
def _templates(game: str) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, dict[str, int]] = {}
    for path in sorted(FOLDER.glob("*/*.txt"), key=lambda path: (not path.name.startswith("full-"), path.name)):
        if path.parent.name == game and (file := _FILE.fullmatch(path.name)):
            found.setdefault(file["style"], {})[file["template"]] = int(file["number"])
    if not found:
        raise NotFound(
            None,
            expected=f"files such as {FOLDER / game / 'full-1.txt'}",
            got=Verbatim("none"),
            subject=f"prompts of {game}",
        )
    return MappingProxyType({style: tuple(sorted(names, key=names.__getitem__)) for style, names in found.items()})


@lru_cache
def _wordings(game: str, template: str) -> tuple[str, ...]:
    """A template and the names of its other wordings, in order of number. The files of all roles have the same ones."""
    name = re.compile(rf"{re.escape(template)}-(?P<number>[0-9]+)(\.[a-z]+)?\.txt")
    found = {int(file["number"]) for path in (FOLDER / game).iterdir() if (file := name.fullmatch(path.name))}
    return template, *(f"{template}-{number}" for number in sorted(found))


@lru_cache
def _sections(game: str, template: str, role: str) -> Mapping[str, str]:
    for path in (FOLDER / game / f"{template}.{role}.txt", FOLDER / game / f"{template}.txt"):
        if path.exists():
            return read_sections(path)
    raise NotFound(
        None, expected=f"a file for the role {role!r}", got=Verbatim("none"), subject=f"prompt {template} of {game}"
    )


def read_sections(path: Path) -> Mapping[str, str]:
    """The texts of a file by the names of their sections."""
    _, *parts = _HEADING.split(path.read_text(encoding="utf-8"))
    return MappingProxyType({name: text.strip() for name, text in zip(parts[0::2], parts[1::2], strict=True)})
