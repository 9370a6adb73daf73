"""Creating alignments. Nothing here commits; `app/alignments/steps.py` is what becomes of one later."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.alignments.job import ALIGNMENT
from app.alignments.spec import ALIGN, SFT, AlignmentSpec
from app.assessments.lifecycle import check_sampling
from app.assessments.spec import AnswerSampling, AssessmentSpec
from app.core.errors import Conflict, Invalid, Phrase, shown
from app.datasets.store import check_usable, find_dataset
from app.finetuning.backends import find_backend
from app.finetuning.config import LOCAL, check_model_name, read_config
from app.jobs import states
from app.jobs.kind import Requester
from app.models import Alignment, LanguageModel
from app.registry import CHAT_USE, check_not_archived, get_model
from app.registry.named import named_models
from app.society import lifecycle as societies
from app.society.config import read_config as read_society
from app.society.estimate import SocietyEstimate
from app.society.lifecycle import SocietySpec
from app.society.material import PriorMemories, QuestionList


def create(
    session: Session,
    spec: AlignmentSpec,
    name: str | None,
    questions: QuestionList,
    priors: PriorMemories,
    held_out: QuestionList,
    *,
    queued: bool,
    requester: Requester | None = None,
) -> Alignment:
    """Create a waiting alignment, for workers if it is `queued`.

    Its models will be called NAME-sft and NAME-aligned; without a name it gets one. Raises NotFound for what does not
    exist, Conflict for a taken name or an archived model, and Invalid for all else that cannot be run.
    """
    base = get_model(session, spec.base)
    check_not_archived(base)
    find_backend(LOCAL).check_base(base)
    if CHAT_USE not in base.uses:
        raise Invalid("base", expected=Phrase("a model that answers chats"), got=spec.base)
    if spec.demonstrations is not None:
        dataset = find_dataset(session, spec.demonstrations, "demonstrations")
        check_usable(dataset, "demonstrations")
        spec = replace(spec, demonstrations=str(dataset.id))
    _check_trainings(spec)
    config = read_society({"seed": spec.seed, **spec.society}, spec.society_preset)
    spec = replace(spec, society=config.model_dump(mode="json"), society_preset=None)
    societies.check(session, society_of(spec, spec.base, questions, priors, ""))
    _check_assessment(session, spec, base, held_out)
    if both := sorted(set(questions.questions).intersection(held_out.questions)):
        raise Invalid(
            "held_out", expected=Phrase("questions that the societies are not asked"), got=both[0],
            remedy=Phrase("take it out of either"),
        )  # fmt: skip
    name = name or _default_name(session, spec)
    _refuse_taken(session, name)
    row = ALIGNMENT.new_row(
        queued=queued,
        requester=requester,
        name=name,
        base_id=base.id,
        spec=spec.to_json(),
        material={
            "questions": [questions.source, list(questions.questions)],
            "priors": [priors.source, {label: [list(each) for each in pairs] for label, pairs in priors.pairs.items()}],
            "held_out": [held_out.source, list(held_out.questions)],
        },
    )
    session.add(row)
    session.flush()
    return row


def estimated(session: Session, spec: AlignmentSpec, questions: QuestionList, priors: PriorMemories) -> SocietyEstimate:
    """What the two societies of an alignment will take; trainings and the assessment come on top.

    Raises as `create` does where their models or their config cannot be.
    """
    one = societies.estimated(session, society_of(spec, spec.base, questions, priors, ""))
    return replace(
        one,
        interactions=2 * one.interactions,
        calls=2 * one.calls,
        prompt_tokens=2 * one.prompt_tokens,
        completion_tokens=2 * one.completion_tokens,
        cost=None if one.cost is None else 2 * one.cost,
        seconds=2 * one.seconds,
    )


def society_of(
    spec: AlignmentSpec, learner: str, questions: QuestionList, priors: PriorMemories, name: str
) -> SocietySpec:
    """A society of an alignment, in which the model that learns lives."""
    return SocietySpec(
        agents=[(learner, spec.share), *spec.agents],
        observers=spec.observers,
        questions=questions,
        priors=priors,
        embedder=spec.embedder,
        config=spec.society,
        preset=spec.society_preset,
        name=name,
    )


def assessment_of(spec: AlignmentSpec, model: str, base: str) -> AssessmentSpec:
    """The assessment of an alignment."""
    sampling = AnswerSampling.read(spec.sampling._asdict())
    return AssessmentSpec(model=model, base=base, raters=tuple(spec.raters), sampling=sampling, seed=spec.seed)


def _check_assessment(session: Session, spec: AlignmentSpec, base: LanguageModel, held_out: QuestionList) -> None:
    sampling = AnswerSampling.read(spec.sampling._asdict())
    wanted = AssessmentSpec.model_construct(raters=tuple(spec.raters), sampling=sampling)
    named_models(session, wanted)
    check_sampling(sampling, [base])
    societies.check_questions(held_out)


def model_names(name: str) -> Sequence[str]:
    """What the models of an alignment are called: that of the demonstrations, and that of the society."""
    return f"{name}-sft", f"{name}-aligned"


def _check_trainings(spec: AlignmentSpec) -> None:
    read_config(ALIGN, spec.fields)
    try:
        read_config(SFT, spec.sft)
    except Invalid as error:
        raise error.at("sft") from None


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
        got = Phrase("%(name)s, whose model %(model)s is there already", name=shown(name), model=taken)
    elif duplicate is not None:
        got = Phrase("%(name)s, which alignment %(number)s has, and it is not over", name=shown(name), number=duplicate)
    else:
        return
    raise Conflict("name", expected=Phrase("one that is not taken"), got=got)
