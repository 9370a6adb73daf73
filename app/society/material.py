"""Material of societies and assessments from files: questions and first memories, each with its source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.jobs.spec import TextFile
from app.society import priors, questions
from app.society.config import Label


@dataclass(frozen=True, slots=True)
class QuestionList:
    """The questions for agents, and their source."""

    source: str
    questions: Sequence[str]


@dataclass(frozen=True, slots=True)
class PriorMemories:
    """Questions with the answers that agents of a label may remember at the start, and their source."""

    source: str
    pairs: Mapping[Label, Sequence[tuple[str, str]]]


_JSON = ".json,application/json"
QUESTIONS = TextFile(
    lambda raw, name: QuestionList(name, questions.parse_questions(raw, name)),
    questions.SHIPPED,
    f".txt,text/plain,{_JSON}",
)
PRIORS = TextFile(lambda raw, name: PriorMemories(name, priors.parse_priors(raw, name)), priors.SHIPPED, _JSON)
