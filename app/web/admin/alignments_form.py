"""The launch form of alignments: its fields, as they are at first or like an earlier one, and what they ask for."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flask import Request
from sqlalchemy.orm import Session

from app.alignments.job import ALIGNMENT
from app.alignments.spec import ALIGN, HELD_OUT_SHARE, PUBLISHED, SFT, AlignmentSpec, part, read_preset
from app.core.errors import AppError, Invalid
from app.core.validation import real_number, whole_number
from app.finetuning.backends import find_backend
from app.finetuning.config import LOCAL, read_config
from app.games.base import JSON
from app.jobs.kind import LARGEST
from app.matches.lobby import new_seed
from app.models import Alignment, LanguageModel
from app.registry import SCRIPTED_CHATS, check_not_archived, get_model
from app.society.config import LARGEST_SEED, PRESETS, SocietyConfig
from app.society.config import read_config as read_society
from app.society.embedders import TFIDF
from app.society.material import PriorMemories, QuestionList
from app.society.priors import parse_priors, read_priors
from app.society.questions import parse_questions, read_questions
from app.web.admin import answer_sampling, societies_form
from app.web.admin.societies_form import SCHEMAS, TICKS
from app.web.admin.training_fields import read_lines
from app.web.admin.uploaded_texts import AGAIN, SHIPPED, UPLOAD, read_uploads, uploaded_text
from app.web.forms import RefusedField, one_of

FILES = ("questions", "held_out", "priors")
PART = SHIPPED  # of the held-out questions: a share of the others, as nothing ships for them
WORLD = tuple(name for name in SCHEMAS if name != "seed")  # the settings of the societies
_TYPED = tuple(name for name in WORLD if name not in TICKS)
_TEXTS = (
    "base", "demonstrations", "share", "embedder", "preset", "train", "sft", "name", "seed", "like", "agreed",
    *FILES, *(f"{name}_{part}" for name in FILES for part in ("text", "name")), *answer_sampling.FIELDS,
)  # fmt: skip


class AlignmentForm(NamedTuple):
    """What a form asks for; an empty name is to be made up."""

    spec: AlignmentSpec
    name: str
    questions: QuestionList
    priors: PriorMemories
    held_out: QuestionList


def bases(models: Sequence[LanguageModel]) -> list[str]:
    """Those of the models that answer chats which can be trained."""
    return [row.name for row in models if row.kind == LOCAL]


# ---- Filling in --------------------------------------------------------------------


def defaults(models: Sequence[LanguageModel], world: str, base: str = "", dataset: str = "") -> JSON:
    """The form as it is first shown: the scripted observer rates, which costs nothing, where it is registered."""
    names = [row.name for row in models]
    scripted = [name for name, who in SCRIPTED_CHATS.items() if who == "observer" and name in names]
    return {
        **dict.fromkeys(_TEXTS, ""),
        **_world_fields(SocietyConfig.model_validate(PRESETS[world]).model_dump(mode="json")),
        **answer_sampling.filled_in({}),
        **dict.fromkeys(FILES, SHIPPED),
        "base": base or next(iter(bases(models)), ""),
        "demonstrations": dataset,
        "share": "1",
        "embedder": TFIDF,
        "preset": PUBLISHED,
        "shares": {},
        "observers": scripted,
        "raters": [],
    }


def like(models: Sequence[LanguageModel], row: Alignment) -> JSON:
    """The form filled in as it was for an alignment, but for its name, which is taken."""
    spec = row.spec
    return {
        **defaults(models, next(iter(PRESETS))),
        **_world_fields(spec["society"]),
        **answer_sampling.filled_in(spec["sampling"]),
        **dict.fromkeys(FILES, AGAIN),
        "base": spec["base"],
        "demonstrations": spec["demonstrations"] or "",
        "share": f"{spec['share']:g}",
        "embedder": spec["embedder"],
        "preset": spec["preset"],
        "train": _lines(spec["training"]),
        "sft": _lines(spec["sft"]),
        "seed": str(spec["seed"]),
        "like": str(row.id),
        "shares": {name: f"{share:g}" for name, share in spec["agents"]},
        "observers": spec["observers"],
        "raters": [] if spec["raters"] == spec["observers"] else spec["raters"],
    }


def typed(request: Request) -> JSON:
    """The form as it was sent. The share of a further agent model is in the field "share " and its name."""
    form = request.form
    found: JSON = {name: form.get(name, "").strip() for name in (*WORLD, *_TEXTS)}
    shares = {name.removeprefix("share "): text.strip() for name, text in form.items() if name.startswith("share ")}
    found |= {"shares": shares, "observers": form.getlist("observers"), "raters": form.getlist("raters")}
    return {**found, **read_uploads(request, FILES)}


def _world_fields(config: Mapping[str, Any]) -> JSON:
    texts = {name: "" if config[name] is None else _text(config[name]) for name in _TYPED}
    return {**texts, **{name: "1" if config[name] else "" for name in TICKS}}


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _lines(fields: Mapping[str, Any]) -> str:
    return "\n".join(f"{name} = {value}" for name, value in sorted(fields.items()))


# ---- Reading -----------------------------------------------------------------------


def read(session: Session, form: Mapping[str, Any]) -> AlignmentForm:
    """What a form asks for. Raises RefusedField."""
    try:
        return _read(session, form)
    except AppError as error:
        raise refusal(error) from None


def refusal(error: AppError) -> RefusedField:
    """An error of a layer below at the field of the form that it is about."""
    if error.field in answer_sampling.NAMES and error.field not in SCHEMAS:
        return answer_sampling.refusal(error)
    return societies_form.refusal(error)


def _read(session: Session, form: Mapping[str, Any]) -> AlignmentForm:
    _check_base(session, form["base"])
    again = _again(session, form) if AGAIN in (form[name] for name in FILES) else None
    seed = whole_number(form["seed"] or new_seed() % (LARGEST_SEED + 1), "seed", 0, LARGEST_SEED)
    world = {name: form[name] for name in _TYPED if form[name]} | {name: bool(form[name]) for name in TICKS}
    read_society(world)
    spec = AlignmentSpec(
        base=form["base"],
        observers=form["observers"],
        raters=form["raters"] or form["observers"],
        demonstrations=form["demonstrations"] or None,
        agents=[(name, real_number(share, "agents", 0, 1e6)) for name, share in form["shares"].items() if share],
        share=real_number(form["share"], "share", 0, 1e6),
        society=world,
        embedder=form["embedder"] or TFIDF,
        sft=_training(SFT, "sft", form),
        preset=form["preset"],
        training=_training(ALIGN, "train", form),
        sampling=answer_sampling.read(form),
        seed=seed,
    )
    read_preset(spec.preset)
    questions, held_out = _questions(form, again, seed)
    return AlignmentForm(spec, form["name"], questions, _priors(form, again), held_out)


def _check_base(session: Session, name: str) -> None:
    """Raises RefusedField for a base that nothing can begin with: errors below name only that it is a model."""
    try:
        row = get_model(session, name)
        check_not_archived(row)
        find_backend(LOCAL).check_base(row)
    except AppError as error:
        raise RefusedField("base", error) from None


def _training(method: str, field: str, form: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a training that were typed, a line each. Raises RefusedField for those that cannot be."""
    fields = read_lines(form[field], field, ())
    try:
        read_config(method, fields)
    except Invalid as error:
        raise RefusedField(field, error) from None
    return fields


def _questions(form: Mapping[str, Any], again: Alignment | None, seed: int) -> tuple[QuestionList, QuestionList]:
    """The questions of the societies and those of the assessment."""
    chosen, held = _chosen("questions", form, again), _chosen("held_out", form, again)
    if again is not None and chosen == AGAIN:
        asked = QuestionList(*again.material["questions"])
    elif chosen == UPLOAD:
        raw, source = uploaded_text("questions", form)
        asked = QuestionList(source, parse_questions(raw, source))
    else:
        asked = QuestionList(SHIPPED, read_questions())
    if again is not None and held == AGAIN:
        return asked, QuestionList(*again.material["held_out"])
    if held == UPLOAD:
        raw, source = uploaded_text("held_out", form)
        try:
            return asked, QuestionList(source, parse_questions(raw, source))
        except Invalid as error:
            raise RefusedField("held_out", error) from None
    kept, drawn = part(asked.questions, HELD_OUT_SHARE, seed)
    return QuestionList(asked.source, kept), QuestionList(f"{HELD_OUT_SHARE:.0%} of {asked.source}", drawn)


def _priors(form: Mapping[str, Any], again: Alignment | None) -> PriorMemories:
    chosen = _chosen("priors", form, again)
    if again is not None and chosen == AGAIN:
        source, pairs = again.material["priors"]
        return PriorMemories(source, {label: [(each[0], each[1]) for each in found] for label, found in pairs.items()})
    if chosen == UPLOAD:
        raw, source = uploaded_text("priors", form)
        return PriorMemories(source, parse_priors(raw, source))
    return PriorMemories(SHIPPED, read_priors())


def _chosen(name: str, form: Mapping[str, Any], again: Alignment | None) -> str:
    return one_of(name, form, (SHIPPED, UPLOAD) if again is None else (SHIPPED, UPLOAD, AGAIN))


def _again(session: Session, form: Mapping[str, Any]) -> Alignment:
    return ALIGNMENT.get(session, whole_number(form["like"], "like", 1, LARGEST))
