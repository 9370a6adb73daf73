"""Creating assessments, and their answers as rows. Nothing here commits."""

from collections.abc import Mapping, Sequence

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app.assessments.job import ASSESSMENT
from app.assessments.spec import AnswerSampling, AssessmentSpec
from app.assessments.training_overlap import HeldOutQuestions
from app.core.errors import Conflict, Invalid, Phrase
from app.jobs.holding import hold
from app.jobs.kind import Requester
from app.models import AssessedAnswer, Assessment, GenerationRow, LanguageModel
from app.players.base import ChatSampling
from app.registry.named import named_models
from app.registry.prices import check_budget
from app.society.lifecycle import check_questions
from app.society.material import QuestionList
from app.society.prompts import TEMPLATE

OPEN, DONE, FAILED = "open", "done", "failed"  # statuses of an answer
MOST_QUESTIONS = 20_000


def create(
    session: Session,
    spec: AssessmentSpec,
    asked: QuestionList,
    found: HeldOutQuestions,
    *,
    queued: bool,
    requester: Requester | None = None,
    goes_on: bool = False,
) -> Assessment:
    """Create a waiting assessment, for workers if `queued`.

    `found` is the result of `training_overlap.held_out` for the two models and the questions `asked`; as that reads all
    their training data, it is computed before a transaction. An assessment that is part of something already started
    `goes_on` with models archived since. Raises NotFound for an unknown model, Conflict for an archived one, and
    Invalid for anything else that cannot be run.
    """
    models = check(session, spec, asked, goes_on=goes_on)
    unknown, known, datasets = found
    if len(unknown) > MOST_QUESTIONS:
        raise Invalid("questions", expected=Phrase("at most %(most)s", most=MOST_QUESTIONS), got=len(unknown))
    if not unknown:
        raise Invalid(
            "questions",
            expected=Phrase("a question that neither model was trained on"),
            got=Phrase("none in %(source)s, all %(count)s of which are in their training data",
                       source=asked.source, count=len(known)),
            remedy=Phrase("ask others"),
        )  # fmt: skip
    hold(session, (model for named in models.values() for model in named))
    row = ASSESSMENT.new_row(
        queued=queued,
        requester=requester,
        spec=spec.to_json() | {"questions": asked.source},
        model_id=models["model"][0].id,
        base_id=models["base"][0].id,
        raters=[{"model_id": each.id, "model": each.name} for each in models["raters"]],
        sampling=spec.sampling.model_dump(exclude_none=True),
        seed=spec.seed,
        template=TEMPLATE,
        question_source=asked.source[-300:],
        questions=list(unknown),
        asked=len(unknown),
        left_out=len(known),
        learnt_from=list(datasets),
        lease_count=0,
        **spec.budget.columns,
    )
    session.add(row)
    session.flush()
    answers = [
        {"assessment_id": row.id, "question": place, "of_base": of_base, "status": OPEN}
        for place in range(len(unknown))
        for of_base in (False, True)
    ]
    session.execute(insert(AssessedAnswer), answers)
    return row


def check(
    session: Session, spec: AssessmentSpec, asked: QuestionList, *, goes_on: bool = False
) -> Mapping[str, Sequence[LanguageModel]]:
    """The models by the field that names them. Raises as `create` does for what cannot be run, and writes nothing."""
    models = named_models(session, spec, goes_on=goes_on)
    check_budget(spec.budget, (*models["model"], *models["base"], *models["raters"]))
    check_sampling(spec.sampling, (*models["model"], *models["base"]))
    check_questions(asked)
    return models


def check_sampling(sampling: AnswerSampling, models: Sequence[LanguageModel]) -> None:
    """Raises Conflict for a setting that one of the models lacks, because both answer in the same way."""
    for name in ("top_k", "no_repeat_ngram"):
        distant = next((each.name for each in models if each.kind != "local"), None)
        if getattr(sampling, name) is not None and distant is not None:
            expected = Phrase("none, as %(model)s is not local", model=distant)
            raise Conflict(f"sampling.{name}", expected=expected, got=getattr(sampling, name))


# ---- Reading ----------------------------------------------------------------------


def answers_of(session: Session, number: int, *, status: str | None = None) -> list[AssessedAnswer]:
    """The answers of an assessment by question, the model's before the base's; if given, only with `status`."""
    found = select(AssessedAnswer).where(AssessedAnswer.assessment_id == number)
    if status is not None:
        found = found.where(AssessedAnswer.status == status)
    return [*session.scalars(found.order_by(AssessedAnswer.question, AssessedAnswer.of_base))]


def answered_calls(session: Session, number: int) -> Mapping[int, Mapping[str, str]]:
    """The texts of answered calls for open answers, by answer and call."""
    answered = (
        select(GenerationRow.answer_id, GenerationRow.call, GenerationRow.text)
        .join(AssessedAnswer, AssessedAnswer.id == GenerationRow.answer_id)
        .where(AssessedAnswer.assessment_id == number, AssessedAnswer.status == OPEN, GenerationRow.error.is_(None))
    )
    found: dict[int, dict[str, str]] = {}
    for answer, call, text in session.execute(answered):
        if answer is not None and call is not None and text:  # empty texts from earlier versions are requested again
            found.setdefault(answer, {})[call] = text
    return found


def sampling_of(row: Assessment) -> ChatSampling:
    """How the answers of an assessment are sampled."""
    return AnswerSampling.read(row.sampling).chat
