"""Creating assessments, and their answers as rows. Nothing here commits."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app.assessments.job import ASSESSMENT
from app.assessments.learnt import HeldOutQuestions
from app.core.errors import Conflict, FieldError, Invalid, Phrase, shown
from app.core.validation import whole_number
from app.jobs.kind import Requester
from app.models import AssessedAnswer, Assessment, GenerationRow, LanguageModel
from app.players.base import ChatSampling
from app.registry import CHAT_USE, check_not_archived, get_model, player_spec
from app.society.config import LARGEST_SEED
from app.society.lifecycle import QuestionList, answers_chats, check_questions

OPEN, DONE, FAILED = "open", "done", "failed"  # what the status of an answer may be
MOST_RATERS = 20
MOST_QUESTIONS = 20_000


@dataclass(frozen=True, slots=True)
class AssessmentSpec:
    """What to run: an assessment, with names of the registry, and how the answers are sampled.

    `seed` may have come as text. `model` is None where it is checked before the model is there.
    """

    model: str | None
    base: str
    raters: Sequence[str]
    questions: QuestionList
    sampling: ChatSampling = ChatSampling()  # noqa: RUF009 - it cannot change
    seed: int | str = 0


def create(
    session: Session,
    spec: AssessmentSpec,
    found: HeldOutQuestions,
    *,
    queued: bool,
    requester: Requester | None = None,
    goes_on: bool = False,
) -> Assessment:
    """Create a waiting assessment, for workers if it is `queued`.

    `found` is what `learnt.held_out` gives for the two models; it reads all that they were trained on, and so is made
    before a transaction. An assessment that belongs to something begun `goes_on` with models that were archived
    meanwhile. Raises NotFound for an unknown model, Conflict for an archived one, and Invalid for all else that cannot
    be run.
    """
    model, base, raters = _models(session, spec, goes_on)
    unknown, known, datasets = found
    if len(unknown) > MOST_QUESTIONS:
        raise Invalid("questions", expected=Phrase("at most %(most)s", most=MOST_QUESTIONS), got=len(unknown))
    if not unknown:
        raise Invalid(
            "questions",
            expected=Phrase("a question that neither model was trained on"),
            got=Phrase("none in %(source)s, all %(count)s of which are in their training data",
                       source=spec.questions.source, count=len(known)),
            remedy=Phrase("ask others"),
        )  # fmt: skip
    row = ASSESSMENT.new_row(
        queued=queued,
        requester=requester,
        model_id=model.id,
        base_id=base.id,
        raters=[{"model_id": each.id, "model": each.name} for each in raters],
        sampling={name: value for name, value in spec.sampling._asdict().items() if value is not None},
        seed=whole_number(spec.seed, "seed", 0, LARGEST_SEED),
        question_source=spec.questions.source[-300:],
        questions=list(unknown),
        asked=len(unknown),
        left_out=len(known),
        learnt_from=list(datasets),
        lease_count=0,
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


def check(session: Session, spec: AssessmentSpec) -> None:
    """Raises as `create` does for what cannot be run, and writes nothing."""
    _models(session, spec, goes_on=False)
    whole_number(spec.seed, "seed", 0, LARGEST_SEED)


def _models(
    session: Session, spec: AssessmentSpec, goes_on: bool
) -> tuple[LanguageModel, LanguageModel, list[LanguageModel]]:
    """The model, or the base where there is none yet; the base; and the raters."""
    base = _chat_model(session, "base", spec.base, goes_on)
    model = base if spec.model is None else _chat_model(session, "model", spec.model, goes_on)
    if spec.model == spec.base:
        raise Invalid("base", expected=Phrase("another model than the one that is assessed"), got=spec.base)
    raters = _raters(session, spec.raters, goes_on)
    _check_sampling(spec.sampling, (model, base))
    check_questions(spec.questions)
    return model, base, raters


def _raters(session: Session, names: Sequence[str], goes_on: bool) -> list[LanguageModel]:
    if not 1 <= len(names) <= MOST_RATERS:
        raise Invalid("raters", expected=Phrase("1 to %(most)s models", most=MOST_RATERS), got=len(names))
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise Invalid("raters", expected=Phrase("each model once"), got=twice[0])
    return [_chat_model(session, "raters", name, goes_on) for name in names]


def _chat_model(session: Session, field: str, name: str, goes_on: bool) -> LanguageModel:
    try:
        row = get_model(session, name)
        if not goes_on:
            check_not_archived(row)
    except FieldError as error:
        raise type(error)(field, **error.parts) from None
    if CHAT_USE not in row.uses or not answers_chats(player_spec(row)):
        raise Invalid(
            field,
            expected=Phrase("a model that answers chats"),
            got=Phrase("%(name)s, whose uses are %(uses)s", name=shown(name), uses=", ".join(row.uses) or "none"),
            remedy=Phrase("`flask model list` shows what each model is for"),
        )
    return row


def _check_sampling(sampling: ChatSampling, models: Sequence[LanguageModel]) -> None:
    """Both models answer in the same way, so what one of them does not have is refused."""
    for name in ("top_k", "no_repeat_ngram"):
        distant = next((each.name for each in models if each.kind != "local"), None)
        if getattr(sampling, name) is not None and distant is not None:
            raise Conflict(
                name,
                expected=Phrase("none, as %(model)s is not local", model=distant),
                got=getattr(sampling, name),
            )


# ---- Reading ----------------------------------------------------------------------


def answers_of(session: Session, number: int, *, status: str | None = None) -> list[AssessedAnswer]:
    """The answers of an assessment by question, the model's before the base's; `status`: only such ones."""
    found = select(AssessedAnswer).where(AssessedAnswer.assessment_id == number)
    if status is not None:
        found = found.where(AssessedAnswer.status == status)
    return [*session.scalars(found.order_by(AssessedAnswer.question, AssessedAnswer.of_base))]


def answered_calls(session: Session, number: int) -> Mapping[int, Mapping[str, str]]:
    """What was answered so far in answers that are open, by the call, by the answer."""
    answered = (
        select(GenerationRow.answer_id, GenerationRow.call, GenerationRow.text)
        .join(AssessedAnswer, AssessedAnswer.id == GenerationRow.answer_id)
        .where(AssessedAnswer.assessment_id == number, AssessedAnswer.status == OPEN, GenerationRow.error.is_(None))
    )
    found: dict[int, dict[str, str]] = {}
    for answer, call, text in session.execute(answered):
        if answer is not None and call is not None:
            found.setdefault(answer, {})[call] = text or ""
    return found


def sampling_of(row: Assessment) -> ChatSampling:
    """How the answers of an assessment are sampled."""
    given: dict[str, Any] = dict(row.sampling)
    return ChatSampling(**given)
