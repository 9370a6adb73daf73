"""Create recipe runs and read their contents. Nothing here commits."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, FieldError, Invalid, Phrase, Verbatim, shown
from app.core.validation import whole_number
from app.datasets.store import check_usable, find_dataset
from app.finetuning.backends import find_backend
from app.finetuning.config import check_rows
from app.finetuning.job import refuse_taken
from app.finetuning.spec import TrainingSpec
from app.jobs.holding import hold
from app.jobs.kind import LARGEST, Requester
from app.jobs.spec import JobSpec, fields_of
from app.models import LanguageModel, RecipeRun
from app.recipes.expressions import Input
from app.recipes.faults import RecipeFault
from app.recipes.inputs import read_inputs
from app.recipes.job import RECIPE
from app.recipes.loaded_recipe import LoadedRecipe
from app.recipes.made import Made
from app.recipes.operations import EvaluateSpec
from app.recipes.plan import PlannedStep, RecipePlan, plan
from app.recipes.recipe_file import RecipeFile
from app.recipes.spec import LONGEST_NAME, RecipeSpec
from app.recipes.step_kinds import DATASETS, MODEL, ROUND, SOCIETY
from app.recipes.sweep import SEEDS, seeds_in_words, swept_inputs, with_sweep
from app.registry import check_not_archived, find_round_model, get_model
from app.registry.named import named_models
from app.registry.prices import check_budget
from app.registry.prompts import NO_PROMPT, find_prompt
from app.rounds.job import ROUND as ROUND_KIND
from app.rounds.spec import RoundSpec
from app.society.job import SOCIETY as SOCIETY_KIND


class NewRun(NamedTuple):
    """A run to be created: its spec with all defaults filled in, its steps, and the models that they name."""

    loaded: LoadedRecipe
    spec: RecipeSpec
    plan: RecipePlan
    models: Sequence[LanguageModel]


def prepare(session: Session, loaded: LoadedRecipe, spec: RecipeSpec) -> NewRun:
    """Look up everything that the steps of a recipe name. Without a name, the run gets one.

    Raises Conflict if another run has the name or models to be made already exist, and FieldError, with the line, if
    something that its steps name does not exist or cannot be used.
    """
    name = spec.name or _default_name(session, loaded.plan.file.recipe)
    _refuse_taken(session, name)
    try:
        found = plan(loaded.plan.file, loaded.plan.inputs, name)
        models = _check_named(session, found)
    except RecipeFault as fault:
        raise loaded.placed(fault) from None
    check_budget(spec.budget, models)
    swept = loaded.plan.file.sweep
    whole = {
        "recipe": loaded.written.document.source,
        "inputs": {each: value for each, value in found.inputs.items() if each not in swept_inputs(found.sweep)},
        "sweep": {field: values for field, values in swept.items() if field != SEEDS},
        "seeds": seeds_in_words(swept.get(SEEDS)),
        "name": name,
    }
    return NewRun(loaded, spec.model_copy(update=whole), found, models)


def create(session: Session, new: NewRun, *, queued: bool, requester: Requester | None = None) -> RecipeRun:
    """Create a waiting run, for workers if it is `queued`. Raises Conflict for a name that was taken meanwhile."""
    _refuse_taken(session, new.spec.name)
    hold(session, (session.get_one(LanguageModel, each.id) for each in new.models))
    row = RECIPE.new_row(
        queued=queued,
        requester=requester,
        name=new.spec.name,
        recipe=new.plan.file.recipe,
        spec=new.spec.to_json(),
        steps=len(new.plan.steps),
        models=sorted({each.name for each in new.models}),
        document=json.dumps(new.loaded.written.document.value, ensure_ascii=False),
        text=new.loaded.written.text,
        files=dict(new.loaded.files),
        **new.spec.budget.columns,
    )
    session.add(row)
    session.flush()
    return row


def plan_of(row: RecipeRun) -> RecipePlan:
    """The plan of a run: all its steps in order."""
    return plan(*written_of(row), row.name)


def written_of(row: RecipeRun) -> tuple[RecipeFile, dict[str, Input]]:
    """The recipe of a run with its sweep, and the inputs."""
    file = RecipeFile.model_validate_json(row.document)
    return with_sweep(file, RecipeSpec.of_json(row.spec).swept), read_inputs(file.inputs, row.spec["inputs"])


def _default_name(session: Session, recipe: str) -> str:
    number = (session.scalar(select(func.max(RecipeRun.id))) or 0) + 1
    ending = f"-{number}"
    return f"{recipe[: LONGEST_NAME - len(ending)]}{ending}"


def _refuse_taken(session: Session, name: str) -> None:
    """Raises Conflict if another run has the name, as a run's results are named after it."""
    other = session.scalar(select(RecipeRun.id).where(RecipeRun.name == name).limit(1))
    if other is not None:
        got = Phrase("%(name)s, which recipe run %(number)s has", name=shown(name), number=other)
        raise Conflict("name", expected=Phrase("one that no other run has"), got=got)


# ---- What steps name ---------------------------------------------------------------


def _check_named(session: Session, found: RecipePlan) -> list[LanguageModel]:
    """The registered models that steps name. Raises RecipeFault for a model or dataset that cannot be used.

    A name that several iterations of a loop share is looked up once.
    """
    known: dict[tuple[int, str, str], Sequence[LanguageModel]] = {}
    _check_prompts(session, found)
    for step in found.steps:
        for field, wanted in step.kind.takes(step.fields).items():
            if (value := step.fields.get(field)) is None or _is_made(value):
                continue
            key = step.index, field, repr(value)
            if key not in known:
                try:
                    known[key] = _check_field_and_find_models(session, step, field, wanted)
                except FieldError as error:
                    raise RecipeFault(("steps", step.index, "with", field), _unnamed(error, field), step.turn) from None
        if isinstance(step.draft, TrainingSpec):
            try:
                refuse_taken(session, step.draft.name)
            except FieldError as error:
                raise RecipeFault(("steps", step.index, "with", "name"), error, step.turn) from None
    return [*{model.id: model for models in known.values() for model in models}.values()]


def _check_prompts(session: Session, found: RecipePlan) -> None:
    """Raises RecipeFault for a prompt that cannot be used."""
    known = set()
    for step in found.steps:
        for field, named in _prompts(step.draft):
            if named not in known:
                try:
                    _check_prompt(session, named)
                except FieldError as error:
                    raise RecipeFault(("steps", step.index, "with", field), error, step.turn) from None
                known.add(named)


def _prompts(draft: JobSpec) -> list[tuple[str, str]]:
    """The prompts that a step names, each with its field."""
    if isinstance(draft, RoundSpec):
        return [("prompts", each) for each in draft.prompts]
    return [("prompt", draft.prompt)] if isinstance(draft, EvaluateSpec) and draft.prompt is not None else []


def _check_prompt(session: Session, named: str) -> None:
    """Raises FieldError if a prompt does not exist or has no fixed version: all steps must use the same text."""
    if named == NO_PROMPT:
        return
    row = find_prompt(session, named, None)
    if "@" not in named:
        raise Invalid(
            None,
            expected=Phrase("a prompt as NAME@VERSION, so that each step has the same words"),
            got=named,
            remedy=Phrase("%(name)s is its newest version", name=Verbatim(row.reference)),
        )


def _unnamed(error: FieldError, field: str) -> FieldError:
    """The error without the subject that the key already gives."""
    subject = error.parts["subject"]
    return error.of(field, subject=None if subject is None else Verbatim(str(subject)))


def _is_made(value: Any) -> bool:
    """Whether a field's value comes, at least in part, from an earlier step."""
    if isinstance(value, Mapping):
        return any(isinstance(each, Made) for each in value)
    return any(isinstance(each, Made) for each in (value if isinstance(value, list) else [value]))


def _check_field_and_find_models(
    session: Session, step: PlannedStep, field: str, wanted: Sequence[str]
) -> Sequence[LanguageModel]:
    """Check what a field names in the database, and return its models. Raises FieldError."""
    named = getattr(step.draft, field)
    names = [named] if isinstance(named, str) else [*named]
    if MODEL in wanted:
        return _suitable_models(session, step.draft, field, names)
    for name in names:
        if set(wanted) & set(DATASETS):
            _check_dataset(session, step.draft, field, name)
        elif ROUND in wanted:
            ROUND_KIND.get(session, whole_number(name, field, 1, LARGEST))
        elif SOCIETY in wanted:
            SOCIETY_KIND.get(session, whole_number(name, field, 1, LARGEST))
    return []


def _suitable_models(session: Session, draft: JobSpec, field: str, names: Sequence[str]) -> Sequence[LanguageModel]:
    """The models that a field names, each checked to be suitable for the field. Raises FieldError."""
    if isinstance(draft, RoundSpec | EvaluateSpec):
        return [find_round_model(session, draft.game, name, field) for name in names]
    if "use" in fields_of(type(draft))[field]:
        return named_models(session, draft, fields=(field,))[field]
    found = [get_model(session, name) for name in names]
    if isinstance(draft, TrainingSpec):
        for model in found:
            check_not_archived(model)
            find_backend(draft.backend).check_base(model, field)
    return found


def _check_dataset(session: Session, draft: JobSpec, field: str, name: str) -> None:
    dataset = find_dataset(session, name, field)
    check_usable(dataset, field)
    if isinstance(draft, TrainingSpec) and field == "dataset":
        check_rows(draft.method, dataset.kind, None, dataset.reference)
