"""The file of a study: what it asks of people, what they play, and their pay. Pure.

A design contains no recruiter's code, id or key: those belong to a wave. Every key is described in docs/studies.md.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from app.studies.endings import Ending, EndingChange, EndingName
from app.studies.quantities import Money, Rate, Time

Text = Annotated[str, StringConstraints(min_length=1, max_length=4000, strip_whitespace=True)]
ShortText = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]
SLUG = r"^[a-z0-9][a-z0-9-]{0,39}$"
_IDENTIFIER = r"^[a-z][a-z0-9_]{0,39}$"
_MAIL = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"
FILE_NAME = r"^[\w-][\w.-]*(/[\w-][\w.-]*)*$"
_ADDRESS = r"^https://\S+$"
_CURRENCY = r"^[A-Z]{3}$"
# The patterns in words.
FORMS: Mapping[str, str] = {
    SLUG: "at most 40 small letters, digits and hyphens",
    _IDENTIFIER: "at most 40 small letters, digits and underscores, a letter first",
    _MAIL: "a mail address",
    FILE_NAME: "the name of a file in the folder of the study",
    _ADDRESS: "an address that begins with https://",
    _CURRENCY: "a currency such as USD",
}
_MUST = re.compile(r"[\w ]+? should (be|have) ")  # how pydantic's messages begin


def expected_form(error: ErrorDetails) -> str:
    """What pydantic expected of a value of the right type, worded to follow “expected”."""
    if error["type"] == "string_pattern_mismatch":
        return FORMS[error["ctx"]["pattern"]]
    message = _MUST.sub("", error["msg"], count=1)
    return message[:1].lower() + message[1:]


Slug = Annotated[str, StringConstraints(pattern=SLUG)]
Identifier = Annotated[str, StringConstraints(pattern=_IDENTIFIER)]
Mail = Annotated[str, StringConstraints(pattern=_MAIL, max_length=200)]
FileName = Annotated[str, StringConstraints(pattern=FILE_NAME, max_length=200)]

COMPUTER, PERSON, EITHER, HIDDEN = "computer", "person", "either", "hidden"
EACH_BLOCK, EACH_MATCH = "each block", "each match"
REPLACE: Literal["pay and replace the match once"] = "pay and replace the match once"
END_STUDY: Literal["pay and end the study"] = "pay and end the study"
COUNTERBALANCED: Literal["counterbalanced"] = "counterbalanced"
LATIN_SQUARE: Literal["latin square"] = "latin square"
RANDOM: Literal["random"] = "random"
AS_WRITTEN: Literal["as written"] = "as written"

SHORTEST_GRACE, LONGEST_GRACE = timedelta(seconds=10), timedelta(minutes=60)

Level = str | int | float
_MOST_FACTORS, _MOST_LEVELS = 20, 240
_Levels = (
    Annotated[dict[str, Level], Field(max_length=_MOST_LEVELS)]
    | Annotated[list[Level], Field(max_length=_MOST_LEVELS)]
)  # fmt: skip
_MOST_QUESTIONS = 500  # in a part of the survey
_MOST_RULES = 200  # for excluding people


class Part(BaseModel):
    """A mapping in the file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Contact(Part):
    """The contact for participants. `ethics` is the board and its number, or none."""

    name: ShortText
    mail: Mail
    ethics: ShortText
    ethics_mail: Mail | None = None

    @model_validator(mode="after")
    def _has_mail_of_board(self) -> Self:
        if self.ethics != "none" and self.ethics_mail is None:
            raise PydanticCustomError("board", "ethics_mail, the address of the ethics board, beside ethics")
        return self


_AFTER = re.compile(r"(\d{1,4}) days after (taking part|close)")


def _deadline(raw: Any) -> str:
    if not isinstance(raw, str) or _AFTER.fullmatch(raw) is None:
        raise PydanticCustomError("deadline", "a time such as 30 days after taking part or 90 days after close")
    return raw


Deadline = Annotated[str, BeforeValidator(_deadline)]


class Privacy(Part):
    """The data controller, the legal basis, the deadline for deletion requests, and other recipients of the data.

    `link_deleted` is the deadline for deleting the keyed hash that identifies a person in other studies.
    """

    controller: ShortText
    basis: ShortText
    data_protection: ShortText | None = None
    delete_my_data_until: Deadline
    vendor_ids_deleted: Deadline
    link_deleted: Deadline = "730 days after close"
    recipients: tuple[ShortText, ...] = Field(default=(), max_length=100)


class ConsentTexts(Part):
    """The files with the consent text and the debrief, and what else people are asked to agree to.

    `training`: whether they are asked about training, and `training_recipients`: who else then gets their games for it
    (vendors such as OpenAI or Tinker, or the hosts of servers). `publication`: whether they are also asked about it.
    """

    text: FileName
    training: Literal["ask", "no"] = "ask"
    training_recipients: tuple[ShortText, ...] = Field(default=(), max_length=20)
    publication: Literal["ask", "no"] = "no"
    debrief: FileName | None = None

    @model_validator(mode="after")
    def _asks_about_training_first(self) -> Self:
        if self.training_recipients and self.training != "ask":
            raise PydanticCustomError("recipients", "no training_recipients where training is not asked about")
        if self.publication == "ask" and self.training != "ask":
            raise PydanticCustomError("publication", "training: ask beside publication: ask")
        return self


class ReplyAfter(Part):
    """The delay before a model's reply is shown, by its words, in seconds; the same for all conditions."""

    seconds_per_word: float = Field(default=0.3, ge=0, le=5)
    least: float = Field(default=3, ge=0, le=120)
    most: float = Field(default=20, ge=0, le=300)

    @model_validator(mode="after")
    def _is_ordered(self) -> Self:
        if self.least > self.most:
            raise PydanticCustomError("order", "least that is not more than most")
        return self


class Limits(Part):
    """The maximum time of a turn and of a match, and the maximum number of moves; the game's defaults if left out."""

    turn: Time | None = None
    match: Time | None = None
    moves: int | None = Field(default=None, ge=2, le=200)


class Idle(Part):
    """When a silent participant is warned, and what happens if they let a turn run out.

    `warn` is how much of a turn has passed when the page warns, by default half of it; `end` is how long the question
    “Are you still there?” waits for an answer before it ends their study.
    """

    warn: Time | None = None
    end: Time = timedelta(minutes=5)

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        if not SHORTEST_GRACE <= self.end <= LONGEST_GRACE:
            raise PydanticCustomError("grace", "an end from 10 s to 60 min")
        return self


class ModelFailurePolicy(Part):
    """What happens if a model makes no valid move: how often it is asked again, and what follows then."""

    retries: int = Field(default=2, ge=0, le=10)
    then: Literal["pay and replace the match once", "pay and end the match", "pay and end the study"] = REPLACE


class SameForAll(Part):
    """Settings that are the same under all conditions. `game` holds further settings of the game."""

    reply_after: ReplyAfter = ReplyAfter()
    limits: Limits = Limits()
    idle: Idle = Idle()
    feedback: Literal["own points", "both", "none"] = "own points"
    model_failure: ModelFailurePolicy = ModelFailurePolicy()
    game: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _warns_within_a_turn(self) -> Self:
        warn, turn = self.idle.warn, self.limits.turn
        if warn is not None and (turn is None or not timedelta(0) < warn < turn):
            raise PydanticCustomError("warn", "an idle.warn that is shorter than limits.turn")
        return self

    @property
    def warns_after(self) -> float:
        """The share of a turn that has passed when the page warns."""
        if self.idle.warn is None or self.limits.turn is None:
            return 0.5
        return self.idle.warn / self.limits.turn


class Blocks(Part):
    """Matches in blocks, one for each level of a factor, and the order of the blocks."""

    by: Identifier
    order: Literal["counterbalanced", "random", "as written"] = COUNTERBALANCED


class Practice(Part):
    """Matches before the first that counts."""

    matches: int = Field(default=1, ge=1, le=5)
    against: ShortText


class Assignment(Part):
    """How arms are drawn: in random blocks within strata, when the first match begins."""

    seed: int = Field(ge=0, lt=2**62)
    when: Literal["first match"] = "first match"
    replace: Literal["drop-outs", "nobody"] = "drop-outs"
    strata: tuple[Literal["device", "provider"], ...] = ()


class Plan(Part):
    """The conditions a person plays, how often, and in what order.

    Each factor is `within` (a person plays all of its levels) or `between` (one of them).
    """

    within: tuple[Identifier, ...] = Field(default=(), max_length=_MOST_FACTORS)
    between: tuple[Identifier, ...] = Field(default=(), max_length=_MOST_FACTORS)
    matches: int = Field(default=1, ge=1, le=50)
    blocks: Blocks | None = None
    inside_block: Literal["latin square", "random", "as written"] = LATIN_SQUARE
    practice: Practice | None = None
    assign: Assignment


class StudyMaterial(Part):
    """The material of matches: how it is handed out, and who gets which side.

    One additional key is named after the game's material (`contexts`, `words`) and gives its file. `yoked_to` names a
    level of a between-person factor: what its people played is played again in the same order.
    """

    model_config = ConfigDict(extra="allow")

    each: Literal["once a person"] = "once a person"
    rotate_over: Literal["conditions", "nothing"] = "conditions"
    sides: Literal["balanced", "random"] = "balanced"
    starts: Literal["balanced", "random"] = "balanced"
    held_out: bool = True
    yoked_to: ShortText | None = None

    @model_validator(mode="after")
    def _has_file(self) -> Self:
        if not self.__pydantic_extra__:
            raise PydanticCustomError("file", "one key with the name of the game's material, and a file of it")
        return self

    @property
    def others(self) -> Mapping[str, Any]:
        """The game-specific keys: in a valid design, only the one with the file."""
        return self.__pydantic_extra__ or {}

    @property
    def kind(self) -> str:
        """The name of the material."""
        return next(iter(self.others))

    @property
    def file(self) -> str:
        """The file with the material."""
        return str(self.others[self.kind])


Answer = str | int | float


class AskedOnce(Part):
    """The question at one attempt: one right answer, or one for each level of a factor, and wrong answers."""

    ask: Text
    right: Answer | dict[str, Answer]
    wrong: tuple[Answer, ...] = Field(min_length=1, max_length=8)

    @model_validator(mode="after")
    def _is_distinct(self) -> Self:
        rights = list(self.right.values()) if isinstance(self.right, dict) else [self.right]
        if len(set(self.wrong)) < len(self.wrong) or set(self.wrong) & set(rights):
            raise PydanticCustomError("answers", "wrong answers that differ from each other and from the right one")
        return self


class QuizQuestion(AskedOnce):
    """A question of the quiz. `again` has its versions after wrong answers, for example with other numbers."""

    again: tuple[AskedOnce, ...] = Field(default=(), max_length=4)


class Quiz(Part):
    """Questions that have to be answered before the first match, or before each block."""

    before: Literal["first match", "each block"] = "first match"
    attempts: int = Field(default=2, ge=1, le=5)
    questions: tuple[QuizQuestion, ...] = Field(min_length=1, max_length=20)


class Slider(Part):
    """A slider without a value until it is moved."""

    least: int = 0
    most: int = 100
    ends: tuple[ShortText, ShortText] | None = None

    @model_validator(mode="after")
    def _is_ordered(self) -> Self:
        if self.least >= self.most:
            raise PydanticCustomError("order", "least that is less than most")
        return self


class Matrix(Part):
    """Statements that are all rated on one scale; `ends` are the labels of its ends."""

    rows: dict[Identifier, ShortText] = Field(min_length=2, max_length=30)
    scale: int = Field(ge=2, le=11)
    ends: tuple[ShortText, ShortText] | None = None


class OutsideSurvey(Part):
    """A survey elsewhere, which sends people back with a signed link."""

    url: Annotated[str, StringConstraints(pattern=_ADDRESS, max_length=1000)]


KINDS = ("number", "text", "choice", "choices", "scale", "matrix", "slider", "outside")


class SurveyQuestion(Part):
    """A question of a survey: its text, and one kind of answer.

    `number` is the range of a number, `text` the maximum number of characters, `choice` and `choices` the options of
    which one or several are chosen, `scale` the points of a Likert scale whose ends `ends` labels, `matrix` statements
    on one scale. `attention` is the answer that shows that the question was read. `show_if` is `id = answer` of an
    earlier question.
    """

    id: Identifier
    ask: Text
    number: tuple[float, float] | None = None
    text: int | None = Field(default=None, ge=1, le=10_000)
    choice: tuple[ShortText, ...] | None = Field(default=None, min_length=2, max_length=30)
    choices: tuple[ShortText, ...] | None = Field(default=None, min_length=2, max_length=30)
    scale: int | None = Field(default=None, ge=2, le=11)
    matrix: Matrix | None = None
    slider: Slider | None = None
    outside: OutsideSurvey | None = None
    ends: tuple[ShortText, ShortText] | None = None
    attention: int | str | None = None
    show_if: ShortText | None = None
    shuffle: bool = False
    required: bool = True
    prefer_not_to_say: bool = False

    @property
    def kind(self) -> str:
        """The kind of its answer."""
        return next(name for name in KINDS if getattr(self, name) is not None)

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        kinds = [name for name in KINDS if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise PydanticCustomError("kind", f"one of {', '.join(KINDS)}")
        if self.ends is not None and self.scale is None:
            raise PydanticCustomError("ends", "ends beside scale, or within slider or matrix")
        if self.shuffle and self.choice is None and self.choices is None and self.matrix is None:
            raise PydanticCustomError("shuffle", "shuffle beside choice, choices or matrix")
        if self.number is not None and self.number[0] >= self.number[1]:
            raise PydanticCustomError("number", "number: [least, most], the first less than the second")
        for options in (self.choice, self.choices):
            if options is not None and len(set(options)) < len(options):
                raise PydanticCustomError("options", "answers that differ from each other")
        self._check_attention()
        return self

    def _check_attention(self) -> None:
        """The attention answer must be a possible answer."""
        if self.attention is None:
            return
        possible: object = range(1, self.scale + 1) if self.scale is not None else self.choice
        if possible is None or self.attention not in possible:  # type: ignore[operator]  # a range or a tuple
            raise PydanticCustomError("attention", "an attention that is one of the answers of a scale or a choice")


Questions = Annotated[tuple[SurveyQuestion, ...], Field(max_length=_MOST_QUESTIONS)]


class Survey(Part):
    """Questions before the first match, after each match, after each block, and at the end."""

    start: Questions = ()
    after_each_match: Questions = Field(default=(), alias="after each match")
    after_each_block: Questions = Field(default=(), alias="after each block")
    end: Questions = ()

    @property
    def parts(self) -> Mapping[str, Questions]:
        """The questions by the key of their part in the file, in the order in which they are first asked."""
        return {
            "start": self.start,
            "after each match": self.after_each_match,
            "after each block": self.after_each_block,
            "end": self.end,
        }

    @property
    def all(self) -> Questions:
        """The questions in the order in which they are first asked."""
        return tuple(question for questions in self.parts.values() for question in questions)


class Stakes(Part):
    """The pay of a match: an amount per point, on top of an endowment, and never less than the floor."""

    per_point: Rate | None = None
    endowment: Money | None = None
    floor: Money | None = None


class Bonus(Stakes):
    """The bonus of each match that counts. `by_objective` changes the stakes under an objective of the game."""

    per_point: Rate = Decimal(0)
    of: Literal["utility", "own points"] = "utility"
    endowment: Money = Decimal("0.00")
    floor: Money = Decimal("0.00")
    model_failure: Money = Decimal("0.00")
    by_objective: dict[str, Stakes] = Field(default_factory=dict)


class Pay(Part):
    """People's pay: the base for taking part, the bonus, and the maximum total bonus of one person."""

    currency: Annotated[str, StringConstraints(pattern=_CURRENCY)]
    base: Money
    bonus: Bonus = Bonus()
    most_a_person: Money


class Analysis(Part):
    """The outcome of interest, and the rules that mark a person in `excluded_by`; no row is ever left out."""

    outcome: Identifier = "utility"
    exclude: tuple[ShortText, ...] = Field(default=(), max_length=_MOST_RULES)


class StudyDesign(Part):
    """A study. Levels of `conditions` are crossed; a mapping of levels gives each a label that people may see."""

    study: Slug
    title: ShortText
    language: Literal["en", "de"] = "en"
    minutes: int = Field(ge=1, le=600)
    devices: tuple[Literal["desktop", "tablet", "phone"], ...] = Field(
        default=("desktop", "tablet", "phone"), min_length=1
    )
    contact: Contact
    privacy: Privacy
    consent: ConsentTexts
    partner_told: Literal["computer", "person", "either", "hidden"]
    deception: ShortText | None = None
    game: ShortText
    conditions: dict[Identifier, _Levels] = Field(max_length=_MOST_FACTORS)
    same_for_all: SameForAll = SameForAll()
    plan: Plan
    material: StudyMaterial | None = None
    instructions: FileName
    quiz: Quiz | None = None
    survey: Survey = Survey()
    pay: Pay
    endings: dict[EndingName, EndingChange] = Field(default_factory=dict)
    analysis: Analysis = Analysis()
    people_in_tournaments: bool = False  # whether leaderboards include its people, all as one player

    @property
    def text_files(self) -> Mapping[tuple[str | int, ...], str]:
        """The files with the texts that people read, each by its key."""
        found = {
            ("consent", "text"): self.consent.text,
            ("consent", "debrief"): self.consent.debrief,
            ("instructions",): self.instructions,
        }
        return {key: name for key, name in found.items() if name is not None}

    def levels(self, factor: str) -> Mapping[str, Level]:
        """The levels of a factor by their labels."""
        found = self.conditions[factor]
        return found if isinstance(found, dict) else {str(level): level for level in found}

    def ending(self, name: EndingName, preset: Mapping[EndingName, Ending]) -> Ending:
        """The ending with that name: the preset's, with the design's changes."""
        change = self.endings.get(name, EndingChange())
        return preset[name].model_copy(update={key: getattr(change, key) for key in change.model_fields_set})
