"""The steps of an alignment. Each is small, is stored before the next, and may be done by another process.

Trainings, societies and assessments have jobs of their own; an alignment creates them, waits until they are over, and
goes on from what they left. So whatever is killed, it goes on from its last step.
"""

from collections.abc import Callable, Mapping
from enum import Enum

from sqlalchemy.orm import Session

from app.alignments.demonstrations import best_responses
from app.alignments.job import ALIGNMENT, parts_of
from app.alignments.lifecycle import assessment_of, model_names, society_of
from app.alignments.spec import ALIGN, SFT, AlignmentSpec, read_preset
from app.assessments import lifecycle as assessments
from app.assessments import training_overlap
from app.core.extensions import reading, transact, writing
from app.datasets import register, store
from app.finetuning import lifecycle as trainings
from app.finetuning.spec import TrainingSpec
from app.jobs import states
from app.jobs.chained import AwaitedJob
from app.jobs.context import JobContext
from app.jobs.kind import finish, requester_of
from app.models import Alignment, LanguageModel, TrainingJob
from app.society import dataset as society_data
from app.society import lifecycle as societies
from app.society.material import PriorMemories, QuestionList
from training.methods.base import COMPARISONS


class LongStep(Enum):
    """What takes longer than a transaction may, and is done between two of them."""

    DEMONSTRATE = "make conversations of the best of rated demonstrations"
    CUT = "make datasets of the first society"
    ASSESS = "look for held-out questions in the training data"


def run(context: JobContext, number: int) -> None:
    """Take every step of an alignment that can be taken now. Upkeep calls a worker when the next may be due."""
    take_steps(context, number)


def take_steps(context: JobContext, number: int) -> AwaitedJob | None:
    """Take every step that can be taken at once. Returns what has to be over before the next one, if anything has."""
    return ALIGNMENT.take_steps(context, number, _steps)


def _steps(context: JobContext, number: int) -> AwaitedJob | None:
    while True:
        with writing(context.database) as session:
            row = ALIGNMENT.running(session, number, context.owner)
            due = None if row is None else _next(session, row, context)
        if not isinstance(due, LongStep):
            return due
        _LONG[due](context, number)


def _next(session: Session, row: Alignment, context: JobContext) -> AwaitedJob | LongStep | None:
    """What has to be over, or to be done, before the alignment goes on; None when it is over. Creates its jobs."""
    for part in parts_of(row):
        if getattr(row, part.column) is None:
            begun = _BEGIN[part.column](session, row, context)
            if isinstance(begun, LongStep):
                return begun
            setattr(row, part.column, begun)
        awaited = AwaitedJob(part.kind, getattr(row, part.column))
        if not ALIGNMENT.is_done(session, row, awaited):
            return awaited if row.status == states.RUNNING else None
    finish(row)
    return None


def learner_of(session: Session, row: Alignment) -> LanguageModel:
    """The model that lives in the first society: the base, or what it became by demonstrations."""
    if row.sft_job_id is None:
        return session.get_one(LanguageModel, row.base_id)
    return _made_by(session, row.sft_job_id)


def _made_by(session: Session, job_id: int) -> LanguageModel:
    return session.get_one(LanguageModel, session.get_one(TrainingJob, job_id).model_id)


# ---- The jobs --------------------------------------------------------------------


def _demonstrated(session: Session, row: Alignment, context: JobContext) -> int | LongStep:
    if row.demonstrations_id is None:
        demonstrations = store.find_dataset(session, row.spec["demonstrations"])
        if demonstrations.kind == COMPARISONS:
            return LongStep.DEMONSTRATE
        row.demonstrations_id = demonstrations.id
    spec = AlignmentSpec.of_json(row.spec)
    request = TrainingSpec(
        method=SFT,
        dataset=str(row.demonstrations_id),
        name=model_names(row.name)[0],
        base=session.get_one(LanguageModel, row.base_id).name,
        config={"seed": spec.seed, **spec.sft},
    )
    return _training(session, row, context, request)


def _aligned(session: Session, row: Alignment, context: JobContext) -> int | LongStep:
    if row.dataset_id is None:
        return LongStep.CUT
    request = TrainingSpec(
        method=ALIGN,
        dataset=str(row.dataset_id),
        name=model_names(row.name)[1],
        base=learner_of(session, row).name,
        config=AlignmentSpec.of_json(row.spec).fields,
        sft_data=None if row.realignment_id is None else str(row.realignment_id),
    )
    return _training(session, row, context, request)


def _training(session: Session, row: Alignment, context: JobContext, request: TrainingSpec) -> int:
    home, requester = context.settings.home, requester_of(row)
    return trainings.create(session, request, queued=row.queued, home=home, goes_on=True, requester=requester).id


def _society(session: Session, row: Alignment, learner: LanguageModel) -> int:
    name = f"{row.name}: {learner.name}"[:80]
    wanted = society_of(AlignmentSpec.of_json(row.spec), learner.name, name, ALIGNMENT.budget_left(session, row))
    asked, priors = _questions(row, "questions"), _priors(row)
    return societies.create(session, wanted, asked, priors, queued=row.queued, requester=requester_of(row)).id


def _questions(row: Alignment, which: str) -> QuestionList:
    return QuestionList(*row.material[which])


def _priors(row: Alignment) -> PriorMemories:
    source, pairs = row.material["priors"]
    return PriorMemories(source, {label: [tuple(each) for each in found] for label, found in pairs.items()})


_BEGIN: Mapping[str, Callable[[Session, Alignment, JobContext], int | LongStep]] = {
    "sft_job_id": _demonstrated,
    "society_id": lambda session, row, _context: _society(session, row, learner_of(session, row)),
    "job_id": _aligned,
    "second_society_id": lambda session, row, _context: _society(session, row, _made_by(session, row.job_id or 0)),
    "assessment_id": lambda _session, _row, _context: LongStep.ASSESS,
}


# ---- Long steps ------------------------------------------------------------------


def _demonstrate(context: JobContext, number: int) -> None:
    with reading(context.database) as session:
        row = ALIGNMENT.get(session, number)
        draft = best_responses(context.settings.home, store.find_dataset(session, row.spec["demonstrations"]))
        name = f"{row.name} demonstrations"[:80]
    made = register.add(transact(context.database), draft, name)
    with writing(context.database) as session:
        if (held := ALIGNMENT.running(session, number, context.owner)) is not None:
            held.demonstrations_id = register.publish(session, made).id


def _cut(context: JobContext, number: int) -> None:
    """Make the datasets of the first society. Raises Invalid for one without a rated answer."""
    save = transact(context.database)
    with reading(context.database) as session:
        row = ALIGNMENT.get(session, number)
        spec = AlignmentSpec.of_json(row.spec)
        mixing = read_preset(spec.preset).mixing
        found = society_data.build(session, context.settings.home, row.society_id or 0, mixing, spec.seed)
        name = row.name
    comparisons = register.add(save, found.comparisons, name)
    mixed_in = None
    if found.realignment is not None:
        mixed_in = register.add(save, found.realignment, society_data.realignment_name(name))
    with writing(context.database) as session:
        if (held := ALIGNMENT.running(session, number, context.owner)) is not None:
            held.dataset_id = register.publish(session, comparisons).id
            held.realignment_id = None if mixed_in is None else register.publish(session, mixed_in).id


def _assess(context: JobContext, number: int) -> None:
    """Create the assessment. Raises Invalid where the models have learnt from all of its questions."""
    with reading(context.database) as session:
        row = ALIGNMENT.get(session, number)
        base, model = learner_of(session, row).name, _made_by(session, row.job_id or 0).name
        spec, asked = AlignmentSpec.of_json(row.spec), _questions(row, "held_out")
        wanted = assessment_of(spec, model, base, ALIGNMENT.budget_left(session, row))
        found = training_overlap.held_out(session, context.settings.home, (model, base), asked.questions)
    with writing(context.database) as session:
        if (held := ALIGNMENT.running(session, number, context.owner)) is not None:
            made = assessments.create(
                session, wanted, asked, found, queued=held.queued, requester=requester_of(held), goes_on=True
            )
            held.assessment_id = made.id


_LONG = {LongStep.DEMONSTRATE: _demonstrate, LongStep.CUT: _cut, LongStep.ASSESS: _assess}
