"""The file of a wave: the recruiter, the number of people, the codes, and the maximum cost. Pure.

Every key is described in docs/studies.md.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote, urlencode, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from app.studies.cost import most_a_place, study_cost
from app.studies.design import Part, Slug, StudyDesign
from app.studies.endings import (
    CLOSED,
    COMPLETED,
    DECLINED,
    FULL,
    FULL_BASE,
    INACTIVE,
    INELIGIBLE,
    PROLIFIC,
    QUIZ_FAILED,
    TECHNICAL,
    WITHDRAWN,
    EndingName,
)
from app.studies.quantities import Money, Rate
from app.studies.warnings import Warned

Recruiter = Literal["prolific", "connect", "link", "mturk"]
LINK: Recruiter = "link"
RECRUITERS: tuple[Recruiter, ...] = ("prolific", "connect", LINK)
GONE: Recruiter = "mturk"  # Amazon Mechanical Turk closed on 30 September 2026; earlier waves stay readable
_ID = "{id}"  # stands for a person's id in an address
_LONGEST_ADDRESS = 500
_TIME_FORM, _TIME_EXAMPLE = "%Y-%m-%d %H:%M", "2026-12-01 18:00"
_STORED = "stored"  # in a check's context: the file is that of an earlier wave
# By recruiter: its links' parameters for the person, the visit, and the recruiter's own study.
PARAMETERS: Mapping[str, tuple[str, str, str]] = {
    "prolific": ("PROLIFIC_PID", "SESSION_ID", "STUDY_ID"),
    "connect": ("participantId", "assignmentId", "projectId"),
}
# The form of a recruiter's ids: safe in any file, and no spreadsheet takes one for a formula.
PLAIN_ID = re.compile(r"[A-Za-z0-9][\w.@:-]*")
# The form of a person's id, where known. Source: docs.prolific.com; for Connect nothing is public.
PERSON_ID: Mapping[str, re.Pattern[str]] = {"prolific": re.compile(r"[0-9A-Fa-f]{24}")}
_NEED_CODE = ("prolific", "connect")  # their people prove by a code that they took part
# What recruiters write if no code was given; Prolific writes the first.
NO_CODES = ("nocode", "no-code", "none", "n/a", "na", "null")


def plain_code(code: str) -> str:
    """A hand-typed code in normal form: in one case, in ordinary letters, without blanks."""
    return "".join(unicodedata.normalize("NFKC", code).split()).casefold()


def _matching(pattern: str, what: str) -> Callable[[Any], str]:
    """A check of a text against a pattern. `what` is the expected form."""

    def check(raw: Any) -> str:
        if not isinstance(raw, str) or re.fullmatch(pattern, raw) is None:
            raise PydanticCustomError("form", "{what}", {"what": what})
        return raw

    return check


_SLUG = r"[a-z0-9][a-z0-9-]{0,39}"
_Reference = Annotated[
    str, BeforeValidator(_matching(rf"{_SLUG}(@[1-9][0-9]{{0,8}})?", "a study: STUDY or STUDY@VERSION"))
]
_TookPartIn = Annotated[
    str, BeforeValidator(_matching(rf"{_SLUG}(:{_SLUG})?", "a study or a wave: STUDY or STUDY:WAVE"))
]
_Code = Annotated[
    str, BeforeValidator(_matching(r"[A-Za-z0-9-]{1,40}", "text of at most 40 letters, digits and hyphens, in quotes"))
]
_Parameter = Annotated[
    str, BeforeValidator(_matching(r"[A-Za-z][A-Za-z0-9_.-]{0,39}", "the name of a parameter of a link"))
]


_RecruiterId = Annotated[
    str, AfterValidator(_matching(rf"(?=.{{1,200}}$){PLAIN_ID.pattern}", "an id, not the address that it is in"))
]


def _return_address(raw: str) -> str:
    """An address that a page may link to. Its path and its parameters may contain the person's id."""
    expected = "an address such as https://uni.example.edu/credit?code={id}, with no other braces"
    try:
        parts = urlsplit(raw)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    plain = raw.replace(_ID, "")
    if (
        not host
        or parts.scheme not in ("http", "https")
        or "{" in parts.netloc
        or "@" in parts.netloc
        or any(each in plain for each in '{}<>"\\')
        or not plain.isascii()
        or any(not each.isprintable() or each.isspace() for each in plain)
        or len(raw) > _LONGEST_ADDRESS
    ):
        raise PydanticCustomError("return_to", "{expected}", {"expected": expected})
    return raw


class RecruiterTerms(Part):
    """The terms of all recruiters: their share on top of what people are paid, and the minimum hourly pay."""

    fee: Annotated[Rate, Field(le=5)] = Decimal(0)
    minimum_per_hour: Money | None = None


class ProlificTerms(RecruiterTerms):
    """A study at Prolific, by its id there.

    `signed`: Prolific signs its people's links, for the `audience` if one is given, and nobody else is let in.
    """

    study_id: _RecruiterId
    signed: bool = False
    audience: Annotated[str, Field(min_length=1, max_length=_LONGEST_ADDRESS)] | None = None

    @model_validator(mode="after")
    def _is_signed_for_somebody(self) -> Self:
        if self.audience is not None and not self.signed:
            raise PydanticCustomError("audience", "signed: true beside an audience")
        return self


class MTurkTerms(RecruiterTerms):
    """A task at Amazon Mechanical Turk, in waves that were opened while there was one."""

    hit_id: _RecruiterId | None = None
    sandbox: bool = False


class ConnectTerms(RecruiterTerms):
    """A project at CloudResearch Connect."""

    project_id: _RecruiterId | None = None


class LinkTerms(RecruiterTerms):
    """A link that is sent to people. Without `id_parameter` it is the same for all, and each browser is a person.

    `return_to` is an address that the last page links to, with `{id}` for the person's id.
    """

    id_parameter: _Parameter | None = None
    return_to: Annotated[str, AfterValidator(_return_address)] | None = None

    @model_validator(mode="after")
    def _has_an_id_for_the_address(self) -> Self:
        if self.return_to is not None and _ID in self.return_to and self.id_parameter is None:
            raise PydanticCustomError("return_to", "an address without {id} where people have no id_parameter")
        return self


class Provider(Part):
    """The recruiter: exactly one of these."""

    prolific: ProlificTerms | None = None
    connect: ConnectTerms | None = None
    link: LinkTerms | None = None
    mturk: MTurkTerms | None = None

    @model_validator(mode="after")
    def _is_one(self, checked: ValidationInfo) -> Self:
        if self.is_gone and _STORED not in (checked.context or ()):
            raise PydanticCustomError(
                "provider", "one of prolific, connect, link, as Amazon Mechanical Turk closed on 30 September 2026"
            )
        if len(self.model_fields_set) != 1:
            raise PydanticCustomError("provider", "one of prolific, connect, link")
        return self

    @property
    def name(self) -> Recruiter:
        """The name of the recruiter."""
        return next(name for name in (*RECRUITERS, GONE) if name in self.model_fields_set)

    @property
    def is_gone(self) -> bool:
        """Whether the recruiter no longer sends anyone."""
        return GONE in self.model_fields_set

    @property
    def is_signed(self) -> bool:
        """Whether the recruiter signs its people's links, and other links let nobody in."""
        return self.prolific is not None and self.prolific.signed

    @property
    def has_ids(self) -> bool:
        """Whether people are distinguished by an id in their link; otherwise each browser is a person."""
        return self.link is None or self.link.id_parameter is not None

    @property
    def study(self) -> str | None:
        """The recruiter's id of its own study or project; None where it is not stated."""
        if self.prolific is not None:
            return self.prolific.study_id
        return None if self.connect is None else self.connect.project_id

    @property
    def terms(self) -> RecruiterTerms:
        """The recruiter's terms."""
        found: RecruiterTerms = getattr(self, self.name)
        return found


def _closing_time(raw: str) -> str:
    """A time in UTC, to the minute."""
    try:
        if len(raw) != len(_TIME_EXAMPLE):
            raise ValueError
        datetime.strptime(raw, _TIME_FORM).replace(tzinfo=UTC)
    except ValueError:
        expected = f"a time in UTC such as {_TIME_EXAMPLE}, in quotes"
        raise PydanticCustomError("closes", "{expected}", {"expected": expected}) from None
    return raw


class WaveStart(Part):
    """A start with a few people: after the `first` ones, nobody enters until an experimenter has checked."""

    first: int = Field(ge=1)
    then: Literal["pause"]


class WaveFile(Part):
    """A wave: `of` names the study or one of its versions."""

    wave: Slug
    of: _Reference
    provider: Provider
    places: int = Field(ge=1, le=100_000)
    closes: Annotated[str, AfterValidator(_closing_time)] | None = None
    start: WaveStart | None = None
    codes: dict[EndingName, _Code] = Field(default_factory=dict, validate_default=True)
    not_if_took_part_in: tuple[_TookPartIn, ...] = Field(default=(), max_length=1000)
    most_spent: Money
    preset: Literal["prolific"] = "prolific"

    @field_validator("codes")
    @classmethod
    def _codes_differ(cls, codes: dict[EndingName, str], known: ValidationInfo) -> dict[EndingName, str]:
        folded: dict[str, str] = {}
        for name, code in codes.items() if _STORED not in (known.context or ()) else ():  # an earlier wave is read
            plain, got = plain_code(code), f"{name}: {code}"
            if plain in NO_CODES:
                text = "codes other than {word}, by which recruiters say that none was given"
                raise PydanticCustomError("codes", text, {"word": plain, "got": got})
            if plain in folded:
                text = "codes that differ from each other, whatever the case of their letters"
                raise PydanticCustomError("codes", text, {"got": f"{folded[plain]}, {got}"})
            folded[plain] = got
        provider = known.data.get("provider")
        if provider is not None and provider.name in _NEED_CODE and COMPLETED not in codes:
            raise PydanticCustomError(
                "codes", "codes with one for completed, as {name} asks for it", {"name": provider.name}
            )
        return codes

    @property
    def closes_at(self) -> datetime | None:
        """When the wave closes automatically; None if it does not."""
        return None if self.closes is None else datetime.strptime(self.closes, _TIME_FORM).replace(tzinfo=UTC)

    @property
    def fee(self) -> Decimal:
        """The recruiter's share on top of what is paid."""
        return self.provider.terms.fee


def stored_wave_file(settings: Mapping[str, Any]) -> WaveFile:
    """The file of an opened wave, which may name a recruiter that no longer exists."""
    return WaveFile.model_validate_json(json.dumps(settings), context={_STORED: True})


def link_path(study: str, wave: WaveFile) -> str:
    """The link of a wave for its recruiter, without the server; some recruiters add the ids by themselves."""
    path = f"/s/{study}/{wave.wave}"
    if wave.provider.prolific is not None:
        names = ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
        return f"{path}?{'&'.join(f'{name}={{{{%{name}%}}}}' for name in names)}"
    if wave.provider.connect is not None:
        names = ("participantId", "assignmentId", "projectId")
        return f"{path}?{'&'.join(f'{name}={{{{{name}}}}}' for name in names)}"
    if wave.provider.link is not None and wave.provider.link.id_parameter is not None:
        return f"{path}?{wave.provider.link.id_parameter}=ID"
    return path


def person_path(study: str, wave: WaveFile, person: str | None) -> str:
    """The link of a wave for one person, by the recruiter's id; the id of their visit is not known."""
    path = f"/s/{study}/{wave.wave}"
    if person is None:
        return path
    if wave.provider.link is not None:
        return f"{path}?{urlencode({str(wave.provider.link.id_parameter): person})}"
    name, _, own_study = PARAMETERS[wave.provider.name]
    stated = {} if wave.provider.study is None else {own_study: wave.provider.study}
    return f"{path}?{urlencode({name: person, **stated})}"


def return_address(file: WaveFile, person: str | None) -> str | None:
    """The return address of a wave's own link, for a person with that id; None if it has none, or the id is gone."""
    address = None if file.provider.link is None else file.provider.link.return_to
    if address is None or _ID not in address:
        return address
    return None if person is None else address.replace(_ID, quote(person, safe=""))


def most_with_fee(design: StudyDesign, wave: WaveFile) -> Decimal:
    """The most that one person of a wave costs, the recruiter's fee included."""
    return most_a_place(design) * (1 + wave.fee)


def wave_warnings(design: StudyDesign, wave: WaveFile) -> Iterator[Warned]:
    """Points to consider before a wave is opened."""
    cost = study_cost(design, wave.places, wave.fee)
    if wave.most_spent < cost.most:
        yield Warned(
            ("most_spent",),
            f"all places may cost up to {cost.most} {design.pay.currency}; when it is full, nobody enters",
        )
    least = wave.provider.terms.minimum_per_hour
    if least is not None and cost.hourly_base < least:
        yield Warned(
            ("provider", wave.provider.name, "minimum_per_hour"),
            f"the base comes to {cost.hourly_base} an hour in {design.minutes} minutes",
        )
    if wave.provider.name in _NEED_CODE:
        yield from _without_code(design, wave)


def _without_code(design: StudyDesign, wave: WaveFile) -> Iterator[Warned]:
    """The possible endings without a code, those first whose base the recruiter would have to pay."""
    names: list[EndingName] = [TECHNICAL, WITHDRAWN, DECLINED, INACTIVE, FULL, CLOSED]
    if design.quiz is not None:
        names.append(QUIZ_FAILED)
    if wave.not_if_took_part_in:
        names.append(INELIGIBLE)
    missing = [name for name in names if name not in wave.codes]
    if unpaid := [name for name in missing if design.ending(name, PROLIFIC).base == FULL_BASE]:
        yield Warned(
            ("codes",),
            f"{', '.join(unpaid)} without a code: nobody can submit it, so its base is paid by a bonus, once the"
            " recruiter's table says that the submission was returned or timed out",
        )
    if others := [name for name in missing if name not in unpaid]:
        yield Warned(("codes",), f"{', '.join(others)} without a code: people are asked to return their submission")
