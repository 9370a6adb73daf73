"""The registry of language models: player specs for rows, and rows for the names and labels people use."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, selectinload

from app import training_part
from app.core.config import ROOT, Settings
from app.core.errors import Conflict, FieldName, Invalid, NotFound, Phrase, check_name, shown
from app.games import GAMES, find_game
from app.jobs import states
from app.jobs.holding import hold
from app.jobs.kind import LARGEST
from app.models import LanguageModel
from app.players import make_player
from app.players.api import options as api_options
from app.players.api.addresses import check_host, check_key_variable, host_of
from app.players.base import PlayerSpec
from app.players.local import options as local_options
from app.players.local.serving import SERVER, WORKER
from app.players.prompts import USUAL_STYLE, styles, templates
from app.players.scripted import SCRIPTED
from app.players.scripted.chat.player import CHAT
from app.registry.adapters import engine_of, find_base

BASELINE = "scripted"
SCRIPTED_CHATS = {"scripted-agent": "agent", "scripted-observer": "observer"}  # name, and its role in chats
MODELS = ROOT / "data" / "models"
SHIPPED = {"tiny": "House partner 2", "tiny-base": "House partner 3"}  # name and label; scripts/make_tiny.py
_SHIPPED_STYLE = "compact"  # the style of prompts that they were trained with
SHIPPED_PARTNERS = ("tiny",)  # those offered to people from the start; tiny-base is weak on purpose
# At 0.5 `tiny` closes more matches with itself than at 1 (docs/results.md). Campaigns start from `tiny-base`, and need
# what only 1 yields: matches that differ.
_SAMPLING: dict[str, dict[str, Any]] = {"tiny": {"temperature": 0.5}}
GAMES_USE, CHAT_USE = "games", "chat"  # a row's uses: to play games, and to answer any chat
PERSON = "person"  # the name of a seat's player who is no model


def ensure_baselines(session: Session, *, small_models: bool = True) -> None:
    """Register the models that Parlor ships, so that everything can be tried at once: the scripted baseline, the
    scripted members of societies, and the small models.
    """
    names = set(session.scalars(select(LanguageModel.name)))
    if BASELINE not in names:
        session.add(_new_row(BASELINE, "House partner", "scripted", list(SCRIPTED), {}, None, offered=True))
    else:
        baseline = get_model(session, BASELINE)
        baseline.games = list(dict.fromkeys([*baseline.games, *SCRIPTED]))  # a game may have been added since
    for name, speaker in SCRIPTED_CHATS.items():
        if name not in names:
            label = name.replace("-", " ").capitalize()
            session.add(_new_row(name, label, "scripted", [], {CHAT: speaker}, None))
    for name, label in SHIPPED.items():
        folder = MODELS / name
        if small_models and name not in names and folder.is_dir():
            made = json.loads((folder / "parlor.json").read_text(encoding="utf-8"))
            options = {"path": folder.relative_to(ROOT).as_posix(), "sha256": made["checkpoint_sha256"]}
            options |= _SAMPLING.get(name, {})
            offered = name in SHIPPED_PARTNERS
            games = [game for game in GAMES if _SHIPPED_STYLE in styles([game])]
            session.add(_new_row(name, label, "local", games, options, _SHIPPED_STYLE, offered=offered))


def add_api_model(
    session: Session,
    name: str,
    label: str | None,
    games: Sequence[str],
    options: dict[str, Any],
    *,
    prompt_style: str = USUAL_STYLE,
    hosts: Sequence[str] = (),
    key_variables: Sequence[str] = ("*",),
) -> LanguageModel:
    """Register a model behind an OpenAI-compatible server, usable in rounds and not yet offered to people.

    Raises Invalid for bad options, Conflict for a taken name. The label is what participants may see; by default it is
    a neutral one that says nothing about the model. Every game must have the prompt style. The model may only be at one
    of `hosts`; none: at any. `key_variables` are patterns of the variables that may hold its key, which is bound to the
    model's host from now on.
    """
    read = _check_options(options, hosts, key_variables)
    _check_binding(session, read)
    if host := key_host(options):
        options = {**options, "key_host": host}
    return _register_model(session, "api", name, label, games, options, prompt_style)


def key_host(options: dict[str, Any]) -> str | None:
    """The only host to which the key of a model with these options may be sent.

    None: there is no key, or it is the OPENAI_ one of the workers' environment, which also says where it goes.
    """
    read = api_options.read_options(options)
    if not read.key_env or (read.key_env.startswith("OPENAI_") and not options.get("base_url")):
        return None
    return host_of(read.base_url)


def add_local_model(
    session: Session,
    name: str,
    label: str | None,
    games: Sequence[str],
    options: dict[str, Any],
    *,
    prompt_style: str = USUAL_STYLE,
    adapter_of: str | None = None,
    trained_from: LanguageModel | None = None,
) -> LanguageModel:
    """Register a checkpoint folder without inspecting it. Raises, and chooses a label, as `add_api_model` does.

    `adapter_of` is the hash of the checkpoint for which it holds adapters, `trained_from` the model that they were
    trained from.
    """
    local_options.read_options(options)
    row = _register_model(session, "local", name, label, games, options, prompt_style)
    base = None if adapter_of is None else find_base(session, adapter_of, trained_from)
    if base is not None:
        hold(session, [base])
        row.adapter_base_id = base.id
        session.flush()
        session.expire(row, ["adapter_base"])
    return row


def add_scripted_model(session: Session, name: str, label: str | None, options: dict[str, Any]) -> LanguageModel:
    """Register a scripted player with its own manner, or one that answers chats.

    Raises, and chooses a label, as `add_api_model` does.
    """
    make_player(PlayerSpec("scripted", name, options))
    return _register_model(session, "scripted", name, label, list(SCRIPTED), options, None)


def list_models(session: Session, game: str | None = None, *, archived: bool = True) -> list[LanguageModel]:
    """Registered models in order of registration; only those of `game` if it is given."""
    every = select(LanguageModel).options(selectinload(LanguageModel.test_request)).order_by(LanguageModel.id)
    rows = session.scalars(every if archived else every.where(LanguageModel.archived_at.is_(None)))
    return [row for row in rows if game is None or game in row.games]


def round_models(session: Session, game: str) -> list[LanguageModel]:
    """The models of a game that are usable in rounds, in the order of their registration."""
    return [row for row in list_models(session, game) if row.usable_in_rounds]


def partners(session: Session, game: str | None = None) -> list[LanguageModel]:
    """The models offered to people: the scripted baseline first, then in order of registration.

    Local models that workers play are included only if the training part, which they need, is installed.
    """
    no_local = training_part.lacking() is not None
    rows = [
        row
        for row in list_models(session, game)
        if row.offered_to_people and not (no_local and row.kind == "local" and row.play_with == WORKER)
    ]
    return sorted(rows, key=lambda row: row.name != BASELINE)


def get_model(session: Session, name: str) -> LanguageModel:
    """The registry row with that name, regardless of its switches. Raises NotFound, which names all of them."""
    row = session.scalar(select(LanguageModel).where(LanguageModel.name == name))
    if row is None:
        known = ", ".join(each.name for each in list_models(session))
        raise NotFound("model", expected=Phrase("one of %(known)s", known=known), got=name)
    return row


def get_model_by_number(session: Session, number: int) -> LanguageModel:
    """The registry row with that number. Raises NotFound."""
    row = session.get(LanguageModel, number) if 0 < number <= LARGEST else None
    if row is None:
        raise NotFound("model", expected=Phrase("the number of one that is registered"), got=number)
    return row


def find_model(session: Session, game: str, name: str, field: str = "model") -> LanguageModel:
    """The model with that name, regardless of its switches. Raises NotFound, of the field that names it, if it does not
    play the game.
    """
    rows = list_models(session, game)
    return _find_named(rows, name, Phrase("one that plays %(game)s", game=game), field)


def find_round_model(session: Session, game: str, name: str, field: str = "model") -> LanguageModel:
    """The model of that name. Raises NotFound, of the field that names it, if it does not play the game or is not
    usable in rounds.
    """
    rows = round_models(session, game)
    return _find_named(rows, name, Phrase("one that plays %(game)s and is usable in rounds", game=game), field)


def find_partner(session: Session, game: str, label: str | None = None) -> LanguageModel:
    """The model with that public label, or without one the first, of those offered to people.

    Raises NotFound, which names only labels, as participants see it.
    """
    rows = partners(session, game)
    for row in rows:
        if label is None or row.label == label:
            return row
    known = ", ".join(row.label for row in rows) or Phrase("nobody yet")
    raise NotFound("opponent", expected=Phrase("one who plays %(game)s (%(known)s)", game=game, known=known), got=label)


def _find_named(rows: Sequence[LanguageModel], name: str, expected: Phrase, field: str) -> LanguageModel:
    for row in rows:
        if row.name == name:
            return row
    known = ", ".join(row.name for row in rows) or Phrase("none yet")
    raise NotFound(field, expected=Phrase("%(expected)s (%(known)s)", expected=expected, known=known), got=name)


# ---- What a model is used for ------------------------------------------------


def set_usable_in_rounds(session: Session, name: str, on: bool) -> None:
    """Let new rounds and campaigns use a model, or not; those already begun continue. Raises NotFound."""
    row = get_model(session, name)
    if on:
        check_not_archived(row)
        _check_plays(row)
    row.usable_in_rounds = on


def set_offered_to_people(session: Session, name: str, on: bool) -> None:
    """Offer a model to people, or not; matches in progress go on.

    Raises NotFound, and Conflict for a model that plays no game or cannot be offered before a test call has passed.
    """
    row = get_model(session, name)
    if on:
        hold(session, [row])
        check_not_archived(row)
        _check_plays(row)
    if on and not row.offered_to_people and not may_be_offered(row):
        failed = row.test_request is not None and row.test_request.status == states.FAILED
        came = (
            Phrase("%(name)s, whose test call has failed", name=shown(name))
            if failed
            else Phrase("%(name)s, whose test call has not passed yet", name=shown(name))
        )
        raise Conflict(
            "model",
            expected=Phrase("one whose test call has passed"),
            got=came,
            remedy=Phrase("`flask model test %(name)s` or its page makes one", name=name),
        )
    row.offered_to_people = on


def check_not_archived(row: LanguageModel) -> None:
    """Raises Conflict for an archived model, which nothing new may use."""
    if row.archived_at is not None:
        raise Conflict(
            "model",
            expected=Phrase("one that is not archived"),
            got=Phrase("%(name)s, which is", name=shown(row.name)),
            remedy=Phrase("`flask model restore %(name)s` or its page takes it out of the archive", name=row.name),
        )


def _check_plays(row: LanguageModel) -> None:
    """Raises Conflict for a model that answers chats and plays no game."""
    if not row.games:
        raise Conflict(
            "model",
            expected=Phrase("one that plays a game"),
            got=Phrase("%(name)s, which answers chats alone", name=shown(row.name)),
        )


def may_be_offered(row: LanguageModel) -> bool:
    """Whether only the switch can keep a model from people: its latest test call has passed, or it needs none."""
    return row.archived_at is None and (not needs_test(row) or has_passed_test(row))


def needs_test(row: LanguageModel) -> bool:
    """Whether a model must be tested before people are offered it; scripted and shipped ones are known to work."""
    return row.kind != "scripted" and not is_shipped(row)


def is_shipped(row: LanguageModel) -> bool:
    """Whether the model is shipped with Parlor."""
    path = Path(str(row.options.get("path", "")))
    if row.name in SCRIPTED_CHATS and row.kind == "scripted":
        return True
    return row.name == BASELINE or (row.name in SHIPPED and ROOT / path == MODELS / row.name)


def has_passed_test(row: LanguageModel) -> bool:
    """Whether the model gave an answer in its latest test call."""
    return row.test_request is not None and row.test_request.status == states.DONE


def player_spec(row: LanguageModel) -> PlayerSpec:
    """The spec that `make_player` needs for a registry row."""
    if row.play_with != SERVER:
        return PlayerSpec(row.kind, row.name, row.options, row.prompt_style)
    engine = engine_of(row)
    served = engine.model_dump(mode="json") if engine is not None and engine.is_adapter else row.served or {}
    return PlayerSpec(row.kind, row.name, row.options, row.prompt_style, served=served)


def read_options(spec: PlayerSpec) -> api_options.ApiOptions | local_options.LocalOptions | None:
    """The options with which a model is called; None for one that is not called. Raises Invalid."""
    if spec.kind == "scripted":
        return None
    return local_options.read_options(spec.options) if spec.kind == "local" else api_options.read_options(spec.options)


def _check_options(
    options: dict[str, Any], hosts: Sequence[str], key_variables: Sequence[str]
) -> api_options.ApiOptions:
    """Refuse options with which the model could not, or must not, be called."""
    read = api_options.read_options(options)
    if "key_host" in options:
        raise Invalid(
            "key_host",
            expected=Phrase("nothing, as a key is bound to the host of %(field)s", field=FieldName("base_url")),
            got=Phrase("one"),
        )
    if read.key_env in Settings.model_fields:
        raise Invalid(
            "key_env",
            expected=Phrase("the variable of a key"),
            got=Phrase("%(key_env)s, which is a setting of Parlor", key_env=read.key_env),
        )
    check_key_variable(read.key_env, key_variables)
    check_host(read.base_url, hosts)
    return read


def _check_binding(session: Session, new: api_options.ApiOptions) -> None:
    """Refuse another host for a key variable that a model already uses, as a key goes to one host only."""
    if not new.key_env:
        return
    host = host_of(new.base_url)
    for row in session.scalars(select(LanguageModel).where(LanguageModel.kind == "api").order_by(LanguageModel.id)):
        try:
            known = api_options.read_options(row.options)
        except Invalid:
            continue
        bound = known.key_host or host_of(known.base_url)
        if known.key_env == new.key_env and bound != host:
            raise Conflict(
                "key_env",
                expected=Phrase("a variable whose key belongs to %(host)s", host=host),
                got=Phrase(
                    "%(key_env)s, which is bound to %(bound)s by %(name)s",
                    key_env=new.key_env,
                    bound=bound,
                    name=row.name,
                ),
                remedy=Phrase('put the key into a variable of its own, or "" for a server without keys'),
            )


def _register_model(
    session: Session,
    kind: str,
    name: str,
    label: str | None,
    games: Sequence[str],
    options: dict[str, Any],
    prompt_style: str | None,
) -> LanguageModel:
    """Register a model whose options have been checked."""
    games = [] if _answers_chats_alone(kind, options) else list(games) or list(GAMES)
    for game in games:
        find_game(game)
        if prompt_style is not None and prompt_style not in (known := templates(game)):
            raise Invalid(
                "prompt_style",
                expected=Phrase("one of %(game)s (%(names)s)", game=game, names=", ".join(known)),
                got=prompt_style,
            )
    for field, value in (("name", name), ("label", label)):
        if value is not None:
            check_name(field, value)
    if name == PERSON:
        raise Invalid(
            "name",
            expected=Phrase("any other"),
            got=Phrase("%(name)s, which stands for people in the exports", name=shown(name)),
        )
    rows = session.scalars(select(LanguageModel)).all()
    if any(row.name == name for row in rows):
        raise Conflict(
            "name",
            expected=Phrase("one that is not taken"),
            got=name,
            remedy=Phrase("`flask model list` shows them all"),
        )
    taken = {row.label for row in rows}
    if label in taken:
        raise Conflict(
            "label",
            expected=Phrase("one that is not taken"),
            got=label,
            remedy=Phrase("`flask model list` shows them all"),
        )
    neutral = (f"Partner {number}" for number in range(1, len(rows) + 2))
    label = label or next(candidate for candidate in neutral if candidate not in taken)
    row = _new_row(name, label, kind, games, options, prompt_style)
    session.add(row)
    session.flush()
    return row


def _new_row(
    name: str,
    label: str,
    kind: str,
    games: list[str],
    options: dict[str, Any],
    style: str | None,
    *,
    offered: bool = False,
) -> LanguageModel:
    """A new row, usable in rounds, and offered to people only if `offered`."""
    return LanguageModel(
        name=name,
        label=label,
        kind=kind,
        games=games,
        uses=_uses(kind, options),
        options=options,
        prompt_style=style,
        usable_in_rounds=bool(games),
        offered_to_people=offered,
        created_at=datetime.now(UTC),
    )


def _uses(kind: str, options: dict[str, Any]) -> list[str]:
    if kind != "scripted":
        return [GAMES_USE, CHAT_USE]
    return [CHAT_USE] if _answers_chats_alone(kind, options) else [GAMES_USE]


def _answers_chats_alone(kind: str, options: dict[str, Any]) -> bool:
    return kind == "scripted" and CHAT in options
