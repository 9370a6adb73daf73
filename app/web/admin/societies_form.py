"""The launch form of societies: its fields, filled in by a preset or like a society that was, and what they ask for."""

from collections.abc import Mapping, Sequence
from typing import Any

from flask import Request
from sqlalchemy.orm import Session

from app.core.errors import AppError, FieldError, Invalid, Phrase
from app.core.validation import Schema, whole_number
from app.games.base import JSON
from app.matches.lobby import new_seed
from app.models import LanguageModel, Society
from app.registry import CHAT_USE, SCRIPTED_CHATS, list_models
from app.society.config import LARGEST_SEED, PRESETS, SocietyConfig
from app.society.embedders import TFIDF
from app.society.job import SOCIETY
from app.society.lifecycle import SocietySpec
from app.society.material import PriorMemories, QuestionList
from app.society.priors import parse_priors, read_priors
from app.society.questions import parse_questions, read_questions
from app.web.admin.uploaded_texts import AGAIN, SHIPPED, UPLOAD, read_uploads, uploaded_text
from app.web.forms import RefusedField, one_of

FILES = ("questions", "priors")
SCHEMAS: Mapping[str, Schema] = SocietyConfig.model_json_schema()["properties"]
TICKS = tuple(name for name, schema in SCHEMAS.items() if schema.get("type") == "boolean")
TYPED = tuple(name for name in SCHEMAS if name not in TICKS)
_TEXTS = (
    "embedder",
    "name",
    "like",
    "agreed",
    *FILES,
    *(f"{name}_{part}" for name in FILES for part in ("text", "name")),
)


def chat_models(session: Session) -> list[LanguageModel]:
    """The models that can be agents and observers."""
    return [row for row in list_models(session, archived=False) if CHAT_USE in row.uses]


# ---- Filling in --------------------------------------------------------------------


def defaults(models: Sequence[LanguageModel], preset: str) -> JSON:
    """The form as it is first shown: the scripted agent and observer, which cost nothing, where they are registered.

    Every value is text, as a browser sends it back.
    """
    names = [row.name for row in models]
    scripted = {who: name for name, who in SCRIPTED_CHATS.items() if name in names}
    config = SocietyConfig.model_validate(PRESETS[preset])
    return {
        **_config_fields(config.model_dump(mode="json")),
        **dict.fromkeys(_TEXTS, ""),
        **dict.fromkeys(FILES, SHIPPED),
        "seed": "",
        "embedder": TFIDF,
        "shares": {scripted["agent"]: "1"} if "agent" in scripted else dict.fromkeys(names[:1], "1"),
        "systems": [],
        "observers": [scripted["observer"]] if "observer" in scripted else names[:1],
    }


def like(models: Sequence[LanguageModel], row: Society) -> JSON:
    """The form filled in as it was for a society."""
    return {
        **defaults(models, next(iter(PRESETS))),
        **_config_fields(row.config),
        **dict.fromkeys(FILES, AGAIN),
        "embedder": row.embedder,
        "name": row.name,
        "like": str(row.id),
        "shares": {each["model"]: f"{each['share']:g}" for each in row.agents},
        "systems": [each["model"] for each in row.agents if each["system"]],
        "observers": [each["model"] for each in row.observers],
    }


def typed(request: Request) -> JSON:
    """The form as it was sent; what came as a file stands in its text field, and so comes back with the page.

    The share of an agent model is in the field "share " and its name; empty where it is none.
    """
    form = request.form
    found: JSON = {name: form.get(name, "").strip() for name in (*TYPED, *TICKS, *_TEXTS)}
    shares = {name.removeprefix("share "): text.strip() for name, text in form.items() if name.startswith("share ")}
    found |= {"shares": shares, "systems": form.getlist("systems"), "observers": form.getlist("observers")}
    return found | read_uploads(request, FILES)


def _config_fields(config: Mapping[str, Any]) -> JSON:
    texts = {name: "" if config[name] is None else _text(config[name]) for name in TYPED}
    return {**texts, **{name: "1" if config[name] else "" for name in TICKS}}


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# ---- Reading -----------------------------------------------------------------------


def read(session: Session, form: Mapping[str, Any]) -> SocietySpec:
    """What a form asks for. Raises RefusedField."""
    try:
        return _read(session, form)
    except AppError as error:
        raise refusal(error) from None


def refusal(error: AppError) -> RefusedField:
    """An error of a layer below at the field of the form that it is about; one of the settings with its title."""
    name = error.field or ""
    if isinstance(error, FieldError) and name in SCHEMAS and error.parts["subject"] is None:
        title = SCHEMAS[name]["title"]  # a Phrase with a text in it would be taken for that text
        error = type(error)(name, **{**error.parts, "subject": Phrase(title)})
    return RefusedField({"system": "agents", "model": "agents", "priors": "priors"}.get(name, name), error)


def _read(session: Session, form: Mapping[str, Any]) -> SocietySpec:
    config = {name: form[name] for name in TYPED if form[name]}
    config |= {name: bool(form[name]) for name in TICKS}
    config.setdefault("seed", new_seed() % (LARGEST_SEED + 1))
    shares = {name: share for name, share in form["shares"].items() if share}
    again = _again(session, form) if AGAIN in (form["questions"], form["priors"]) else None
    return SocietySpec(
        agents=list(shares.items()),
        observers=form["observers"],
        questions=_questions(form, again),
        priors=_priors(form, again),
        embedder=form["embedder"] or TFIDF,
        config=config,
        systems=[name for name in form["systems"] if name in shares],
        name=form["name"],
    )


def _questions(form: Mapping[str, Any], again: Society | None) -> QuestionList:
    chosen = _chosen("questions", form, again)
    if again is not None and chosen == AGAIN:
        return QuestionList(again.question_source, again.questions)
    if chosen == UPLOAD:
        raw, source = uploaded_text("questions", form)
        return QuestionList(source, parse_questions(raw, source))
    return QuestionList(SHIPPED, read_questions())


def _priors(form: Mapping[str, Any], again: Society | None) -> PriorMemories:
    chosen = _chosen("priors", form, again)
    if again is not None and chosen == AGAIN:
        pairs = {label: [(each[0], each[1]) for each in found] for label, found in again.priors.items()}
        return PriorMemories(again.prior_source, pairs)  # type: ignore[arg-type]  # its keys are labels
    if chosen == UPLOAD:
        raw, source = uploaded_text("priors", form)
        return PriorMemories(source, parse_priors(raw, source))
    return PriorMemories(SHIPPED, read_priors())


def _chosen(name: str, form: Mapping[str, Any], again: Society | None) -> str:
    return one_of(name, form, (SHIPPED, UPLOAD) if again is None else (SHIPPED, UPLOAD, AGAIN))


def _again(session: Session, form: Mapping[str, Any]) -> Society:
    """The society that the form is filled in like. Raises Invalid and NotFound."""
    row = SOCIETY.get(session, whole_number(form["like"], "like", 1, 2**31 - 1))
    if row.imported:
        raise Invalid(
            "like",
            expected=Phrase("a society that was run here"),
            got=Phrase("one that was imported"),
            subject=SOCIETY.subject(row.id),
        )
    return row
