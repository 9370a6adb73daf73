"""Creating alignments. Nothing here commits; `app/alignments/steps.py` takes their steps."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.alignments.job import ALIGNMENT
from app.alignments.recipe import model_names
from app.alignments.spec import ALIGN, HELD_OUT_SHARE, SFT, AlignmentSpec, part
from app.assessments.lifecycle import check_sampling
from app.core.errors import Conflict, Invalid, Phrase, shown
from app.datasets.store import check_usable, find_dataset
from app.finetuning.backends import find_backend
from app.finetuning.config import LOCAL, check_model_name, read_config
from app.jobs import states
from app.jobs.holding import hold
from app.jobs.kind import Requester
from app.models import Alignment, LanguageModel
from app.registry import CHAT_USE
from app.registry.named import named_models
from app.registry.prices import check_budget
from app.society import lifecycle as societies
from app.society.estimate import SocietyEstimate
from app.society.material import PriorMemories, QuestionList
from app.society.spec import SocietySpec


def create(
    session: Session,
    spec: AlignmentSpec,
    questions: QuestionList,
    priors: PriorMemories,
    held_out: QuestionList | None = None,
    *,
    queued: bool,
    requester: Requester | None = None,
) -> Alignment:
    """Create a waiting alignment, for workers if `queued`.

    Without `held_out`, a share of the questions is held out. Its models will be called NAME-sft and NAME-aligned;
    without a name it is given one. Raises NotFound for what does not exist, Conflict for a taken name or an archived
    model, and Invalid for anything else that cannot be run.
    """
    sources = {"questions": questions.source, "priors": priors.source}
    if held_out is not None:
        sources["held_out"] = held_out.source
    questions, held_out = split_questions(spec, questions, held_out)
    base = _base(session, spec)
    if spec.demonstrations is not None:
        dataset = find_dataset(session, spec.demonstrations, "demonstrations")
        check_usable(dataset, "demonstrations")
        hold(session, [dataset])
        spec = spec.model_copy(update={"demonstrations": str(dataset.id)})
    _check_training(SFT, spec.sft, "sft")
    _check_training(ALIGN, spec.fields, "train")
    check_budget(spec.budget, [model for named in named_models(session, spec).values() for model in named])
    societies.check(session, society_of(spec), questions, priors)
    check_sampling(spec.sampling, [base])
    _check_held_out(questions, held_out)
    name = spec.name or _default_name(session, spec)
    _refuse_taken(session, name)
    hold(session, (base, *(model for named in named_models(session, spec).values() for model in named)))
    row = ALIGNMENT.new_row(
        queued=queued,
        requester=requester,
        name=name,
        base_id=base.id,
        **spec.budget.columns,
        spec=spec.to_json() | sources,
        material={
            "questions": [questions.source, list(questions.questions)],
            "priors": [priors.source, {label: [list(each) for each in pairs] for label, pairs in priors.pairs.items()}],
            "held_out": [held_out.source, list(held_out.questions)],
        },
    )
    session.add(row)
    session.flush()
    return row


def split_questions(
    spec: AlignmentSpec, questions: QuestionList, held_out: QuestionList | None
) -> tuple[QuestionList, QuestionList]:
    """The questions of the societies and of the assessment; split from the same ones without `held_out`."""
    if held_out is not None:
        return questions, held_out
    kept, drawn = part(questions.questions, HELD_OUT_SHARE, spec.seed)
    source = questions.source
    return QuestionList(source, kept), QuestionList(f"{HELD_OUT_SHARE:.0%} of {source}", drawn)


def estimated(session: Session, spec: AlignmentSpec, questions: QuestionList, priors: PriorMemories) -> SocietyEstimate:
    """The estimate for the two societies of an alignment, without its trainings and assessment.

    Raises as `create` does for models or settings that cannot be used.
    """
    _base(session, spec)
    named_models(session, spec)
    one = societies.estimated(session, society_of(spec), questions, priors)
    return replace(
        one,
        interactions=2 * one.interactions,
        calls=2 * one.calls,
        prompt_tokens=2 * one.prompt_tokens,
        completion_tokens=2 * one.completion_tokens,
        cost=None if one.cost is None else 2 * one.cost,
        seconds=2 * one.seconds,
    )


def society_of(spec: AlignmentSpec) -> SocietySpec:
    """The first society of an alignment, if the base enters it unchanged."""
    return SocietySpec(
        agents={spec.base: spec.share, **spec.agents},
        observers=spec.observers,
        embedder=spec.embedder,
        config=spec.society,
        seed=spec.seed,
    )


def _base(session: Session, spec: AlignmentSpec) -> LanguageModel:
    """The model to train. Raises NotFound, Conflict and Invalid, naming the field."""
    [base] = named_models(session, spec, fields=("base",))["base"]
    find_backend(LOCAL).check_base(base)
    if CHAT_USE not in base.uses:
        raise Invalid("base", expected=Phrase("a model that answers chats"), got=spec.base)
    if base.name in spec.agents:
        raise Invalid("agents", expected=Phrase("each model once"), got=base.name)
    return base


def _check_training(method: str, fields: Mapping[str, Any], at: str) -> None:
    try:
        read_config(method, fields)
    except Invalid as error:
        raise Invalid(f"{at}.{error.field}", **error.parts) from None


def _check_held_out(questions: QuestionList, held_out: QuestionList) -> None:
    societies.check_questions(held_out, "held_out")
    if both := sorted(set(questions.questions).intersection(held_out.questions)):
        raise Invalid(
            "held_out", expected=Phrase("questions that the societies are not asked"), got=both[0],
            remedy=Phrase("take it out of either"),
        )  # fmt: skip


def _default_name(session: Session, spec: AlignmentSpec) -> str:
    number = (session.scalar(select(func.max(Alignment.id))) or 0) + 1
    return f"{spec.base[:60]}-a{number}"


def _refuse_taken(session: Session, name: str) -> None:
    names = model_names(name)
    for each in names:
        check_model_name(each)
    taken = session.scalar(select(LanguageModel.name).where(LanguageModel.name.in_(names)).limit(1))
    duplicate = session.scalar(
        select(Alignment.id).where(Alignment.name == name, Alignment.status.in_(states.LIVE)).limit(1)
    )
    if taken is not None:
        got = Phrase("%(name)s, whose model %(model)s already exists", name=shown(name), model=taken)
    elif duplicate is not None:
        got = Phrase("%(name)s, used by unfinished alignment %(number)s", name=shown(name), number=duplicate)
    else:
        return
    raise Conflict("name", expected=Phrase("one that is not taken"), got=got)
