"""The settings of an assessment."""

from typing import ClassVar, Self

from pydantic import model_validator

from app.core.errors import Invalid, Phrase
from app.jobs.spec import JobBudget, JobSpec, SpecPart, budget_field, spec_field
from app.model_calls.question_templates import SAMPLING_PRESETS
from app.players.base import ChatSampling
from app.society.config import LARGEST_SEED
from app.society.material import QUESTIONS

MOST_RATERS = 20
_OWN = "the preset’s, otherwise the model’s own"


class AnswerSampling(SpecPart):
    """How two models answer held-out questions."""

    presets: ClassVar = {
        name: {field: value for field, value in sampling._asdict().items() if value is not None}
        for name, sampling in SAMPLING_PRESETS.items()
    }

    temperature: float | None = spec_field(
        "Temperature of the answers", "0 to 2.", None, unset=_OWN, metavar="T", ge=0, le=2
    )
    top_p: float | None = spec_field("Top-p of the answers", "0 to 1.", None, unset=_OWN, metavar="P", ge=0, le=1)
    top_k: int | None = spec_field(
        "Top-k of the answers", "Local models only.", None, unset=_OWN, metavar="K", ge=1, le=1_000_000
    )
    max_tokens: int | None = spec_field(
        "Maximum tokens per answer", "Longer output is cut off.", None, unset=_OWN, metavar="N", ge=1, le=1_000_000
    )
    no_repeat_ngram: int | None = spec_field(
        "No-repeat n-gram size",
        "Local models only. 2: no pair of tokens is written twice.",
        None,
        unset=_OWN,
        metavar="N",
        ge=1,
        le=100,
    )

    @property
    def chat(self) -> ChatSampling:
        """The same settings for a player."""
        return ChatSampling(**self.model_dump())


def sampling_field(heading: str) -> AnswerSampling:
    """The spec field for the sampling of the answers."""
    found: AnswerSampling = spec_field(
        "Sampling",
        "For both models’ answers. The fields below override it.",
        AnswerSampling(),
        heading=heading,
        prefix="answer_",
        preset="sampling",
        unset="each model’s own",
        labels={"published": "published: temperature 0.7, top-p 0.9, 256 tokens, no pair of tokens twice"},
    )
    return found


class AssessmentSpec(JobSpec):
    """Two models, the questions that both answer, and the models that rate the answers."""

    files: ClassVar = {"questions": QUESTIONS}

    model: str = spec_field(
        "Model",
        "The one that is assessed: usually the newer one.",
        widget="model",
        use="chat",
        metavar="MODEL",
        argument=True,
        heading="Who answers and who rates",
    )
    base: str = spec_field(
        "Base",
        "The model to compare with: usually the one it was trained from.",
        widget="model",
        use="chat",
        metavar="BASE",
        argument=True,
    )
    raters: tuple[str, ...] = spec_field(
        "Raters",
        "They get the prompts of a society’s observers. Each question takes two answers, and two ratings of each "
        "answer from each rater: 100 questions and 2 raters make 1,000 calls.",
        widget="models",
        use="chat",
        suggested="observer",
        metavar="NAME",
        min_length=1,
        max_length=MOST_RATERS,
    )
    questions: str | None = spec_field(
        "Questions",
        "One a line, or a list in JSON. Those that either model was trained on here are left out.",
        None,
        unset="those that ship",
        widget="file",
        metavar="FILE",
        heading="What is asked",
    )
    sampling: AnswerSampling = sampling_field("Sampling and seed")
    seed: int = spec_field(
        "Seed",
        "For answers and ratings. Both models answer a question with the same seed.",
        0,
        metavar="S",
        ge=0,
        le=LARGEST_SEED,
    )
    budget: JobBudget = budget_field()

    @model_validator(mode="after")
    def _two_models(self) -> Self:
        if self.model == self.base:
            raise Invalid("base", expected=Phrase("a model other than the assessed one"), got=self.base)
        return self
