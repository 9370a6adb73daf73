"""Changes of a registered model.

A row stands for what has played: its label, notes, prices and limits can be edited; another address, checkpoint,
sampling or prompt style makes a new row, a clone. A row that something refers to is archived, never removed. Nothing
here commits.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, exists, or_, select, update
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, Phrase, Verbatim, check_name, shown
from app.jobs import states
from app.jobs.holding import hold
from app.models import (
    Alignment,
    Assessment,
    BenchmarkJob,
    CallSum,
    Campaign,
    GenerationRow,
    LanguageModel,
    ModelRequest,
    Publication,
    RecipeRun,
    ReleasePermission,
    RoundRow,
    SeatRow,
    Society,
    SocietyAgent,
    TrainingJob,
)
from app.registry import (
    BASELINE,
    add_api_model,
    add_local_model,
    add_scripted_model,
    get_model,
    is_shipped,
    player_spec,
    read_options,
)
from app.registry.prices import PRICES

LIMITS = ("in_flight", "tokens_per_minute", "timeout", "retries", "reasoning_room")
EDITABLE = {
    "api": (*PRICES, "price_training", *LIMITS),
    "local": ("in_flight", "reasoning_room"),
    "scripted": (),
}  # options, by kind
MOST_NOTES = 4000  # characters
_FOUND_ANEW = ("key_host", "refused_fields", "sampling_state")  # for each row


def edit_model(
    session: Session,
    name: str,
    *,
    label: str | None = None,
    notes: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> LanguageModel:
    """Change what does not affect how a model plays; None leaves it, an option that is None gets its default.

    Raises NotFound, Conflict for a label that another model has, and Invalid, which names the field.
    """
    row = get_model(session, name)
    if label is not None:
        _set_label(session, row, label)
    if notes is not None:
        if len(notes) > MOST_NOTES:
            raise Invalid("notes", expected=Phrase("at most %(most)s characters", most=MOST_NOTES), got=len(notes))
        row.notes = notes
    if options:
        known = EDITABLE[row.kind]
        for option in options:
            if option not in known:
                raise Invalid(
                    option,
                    expected=Phrase("one that can be changed (%(names)s)", names=", ".join(known) or Phrase("none")),
                    got=Verbatim(option),
                    remedy=Phrase("to change how a model plays, make a new one: `flask model clone`"),
                )
        kept = {option: value for option, value in row.options.items() if option not in options}
        changed = {**kept, **{option: value for option, value in options.items() if value is not None}}
        read_options(replace(player_spec(row), options=changed))
        row.options = changed
    session.flush()
    return row


def clone_model(
    session: Session,
    name: str,
    new_name: str,
    label: str | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    left_out: Collection[str] = (),
    prompt_style: str | None = None,
    adapter_of: str | None = None,
    hosts: tuple[str, ...] = (),
    key_variables: tuple[str, ...] = ("*",),
) -> LanguageModel:
    """Register a copy of a model with other `options`, those `left_out` at defaults, or another prompt style.

    Rounds can use it; people are offered it once it is tested and switched on. `adapter_of` is as in `add_local_model`,
    for another checkpoint. Raises as `add_api_model` does.
    """
    row = get_model(session, name)
    if row.kind == "local" and "path" not in (options or {}):
        hold(session, [row])
    kept = {option: value for option, value in row.options.items() if option not in (*_FOUND_ANEW, *left_out)}
    changed = {**kept, **(options or {})}
    style = prompt_style or row.prompt_style
    if row.kind == "api":
        new = add_api_model(
            session, new_name, label, row.games, changed,
            prompt_style=str(style), hosts=hosts, key_variables=key_variables,
        )  # fmt: skip
    elif row.kind == "local":
        if changed["sha256"] == row.options["sha256"] and row.adapter_base is not None:
            adapter_of = row.adapter_base.options["sha256"]
        new = add_local_model(
            session, new_name, label, row.games, changed, prompt_style=str(style), adapter_of=adapter_of,
            trained_from=row,
        )  # fmt: skip
    else:
        new = add_scripted_model(session, new_name, label, changed)
    new.notes, new.cloned_from_id = row.notes, row.id
    session.flush()
    return new


def archive_model(session: Session, name: str) -> None:
    """Archive a model: nothing new can use it, and what has begun continues. Raises NotFound, Conflict."""
    row = get_model(session, name)
    if row.name == BASELINE:
        raise Conflict(
            "model",
            expected=Phrase("any other"),
            got=Phrase("%(name)s, which Parlor needs as everybody's baseline", name=shown(name)),
        )
    row.usable_in_rounds = row.offered_to_people = False
    row.archived_at = row.archived_at or datetime.now(UTC)


def restore_model(session: Session, name: str) -> None:
    """Take a model out of the archive; its switches stay off until they are switched on again.

    Raises NotFound, and Conflict for one whose checkpoint was removed.
    """
    row = get_model(session, name)
    if row.removed_at is not None:
        raise Conflict(
            "model",
            expected=Phrase("one whose checkpoint exists"),
            got=Phrase("one that was removed on %(day)s", day=f"{row.removed_at:%Y-%m-%d}"),
            remedy=Phrase("`flask storage removed` says how to put it back"),
        )
    row.archived_at = None


def remove_model(session: Session, name: str) -> None:
    """Remove a model that nothing was ever made with or from, and its calls that have not started.

    Raises NotFound, and Conflict for any other, and for one that is answering a test call or a question.
    """
    row = get_model(session, name)
    session.refresh(row, ["removed_at"], with_for_update=True)  # whoever begins something with it holds its row
    if is_shipped(row) or is_in_use(session, row):
        raise Conflict(
            "model",
            expected=Phrase("one that nothing was played with or trained from"),
            got=shown(name),
            remedy=Phrase("`flask model archive %(name)s` or its page takes it out of use", name=row.name),
        )
    # Waiting ones first: if a worker is just beginning one, this waits for the worker and leaves that one out.
    of_it = ModelRequest.language_model_id == row.id
    _part_from_requests(session, row)
    session.execute(delete(ModelRequest).where(of_it, ModelRequest.status == states.WAITING))
    if has_open_calls(session, row):
        raise Conflict(
            "model",
            expected=Phrase("one that is not being called"),
            got=Phrase("%(name)s, which is just answering a test call or a question", name=shown(name)),
            remedy=Phrase("try again once it is done"),
        )
    _part_from_requests(session, row)  # including requests that have ended meanwhile
    session.execute(update(CallSum).where(CallSum.model_id == row.id).values(model_id=None))
    session.execute(delete(ModelRequest).where(of_it))
    calls = update(GenerationRow).where(GenerationRow.language_model_id == row.id)
    session.execute(calls.values(language_model_id=None))
    session.execute(delete(ReleasePermission).where(ReleasePermission.language_model_id == row.id))
    session.delete(row)
    session.flush()


def _part_from_requests(session: Session, row: LanguageModel) -> None:
    """Keep the cost of a model's calls when their requests are deleted.

    Their rows also stay because SQLite would reuse their numbers for later calls, which sums would then take for calls
    already counted.
    """
    texts: dict[str, Any] = {
        "prompt": [],
        "text": None,
        "token_ids": None,
        "log_probs": None,
        "reasoning": None,
        "sampling": {},
    }
    calls = update(GenerationRow).where(GenerationRow.language_model_id == row.id)
    session.execute(calls.values(request_id=None, **texts))


def has_open_calls(session: Session, row: LanguageModel) -> bool:
    """Whether a call of the model outside of matches is waiting or being made."""
    own = ModelRequest.language_model_id == row.id, ModelRequest.status.in_(states.OPEN)
    return bool(session.scalar(select(exists().where(*own))))


def is_in_use(session: Session, row: LanguageModel) -> bool:
    """Whether a match, a clone or a job of any kind refers to the model.

    An unfinished campaign refers to partners and teachers only by name until it begins their rounds; so does an
    alignment to the members of its societies and to its raters, and a recipe run to all models of its steps.
    """
    references = (
        SeatRow.language_model_id,
        RoundRow.model_0_id,
        RoundRow.model_1_id,
        TrainingJob.base_id,
        TrainingJob.model_id,
        Campaign.base_id,
        BenchmarkJob.model_id,
        SocietyAgent.model_id,
        Assessment.model_id,
        Assessment.base_id,
        Alignment.base_id,
        LanguageModel.cloned_from_id,
        LanguageModel.adapter_base_id,
        Publication.language_model_id,
    )
    going_on = session.scalars(select(Campaign.spec).where(Campaign.status != states.DONE))
    if any(row.name in players_of_campaign(spec) for spec in going_on):
        return True
    aligned = session.scalars(select(Alignment.spec).where(Alignment.status != states.DONE))
    if any(row.name in members_of_alignment(spec) for spec in aligned):
        return True
    planned = session.scalars(select(RecipeRun.models).where(RecipeRun.status != states.DONE))
    if any(row.name in names for names in planned):
        return True
    rating = (
        each
        for column in (Society.agents, Society.observers, Assessment.raters)
        for each in session.scalars(select(column))
    )
    if any(each["model_id"] == row.id for models in rating for each in models):
        return True
    embedding = exists().where(GenerationRow.society_id.is_not(None), GenerationRow.language_model_id == row.id)
    if session.scalar(select(or_(embedding, exists().where(Society.embedder == f"model:{row.name}")))):
        return True
    compared_with = exists().where(TrainingJob.config["reference"].as_string() == row.name)
    return session.scalar(select(compared_with)) or any(
        session.scalar(select(exists().where(column == row.id))) for column in references
    )


def members_of_alignment(spec: Mapping[str, Any]) -> set[str]:
    """The further agents, observers and raters in an alignment's spec, written by this or an earlier release."""
    return {*dict(spec.get("agents", ())), *spec.get("observers", ()), *spec.get("raters", ())}


def players_of_campaign(spec: Mapping[str, Any]) -> set[str]:
    """The partners and the teacher in a campaign's spec, written by this or an earlier release."""
    partners = spec.get("partners", [spec.get("partner")])
    found = {spec.get("teacher"), *partners, *dict(spec.get("play_with", ()))}
    return {name for name in found if name}


def _set_label(session: Session, row: LanguageModel, label: str) -> None:
    check_name("label", label)
    other = select(LanguageModel.name).where(LanguageModel.label == label, LanguageModel.id != row.id)
    if (holder := session.scalar(other)) is not None:
        raise Conflict(
            "label",
            expected=Phrase("one that is not taken"),
            got=Phrase("%(label)s, which %(holder)s has", label=shown(label), holder=holder),
        )
    row.label = label
