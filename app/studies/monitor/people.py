"""The list of the people of a wave: where each is, since when, and what each is paid."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from sqlalchemy import ColumnElement, Float, cast, func, select
from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase, either
from app.core.lists import COMMANDS, NOWHERE, Labelled, ListColumn, Listing, Reference, attribute, computed, of_other
from app.core.validation import whole_number
from app.matches.filter import is_over
from app.models import Arm, Enrolment, MatchRow, Participant, Payment, SeatRow, StudyEvent, StudyVersion
from app.studies.amounts import NOTHING
from app.studies.endings import COMPLETED
from app.studies.monitor.words import ending_cell, step_words
from app.studies.participant_steps import Step, steps
from app.studies.store import design_of

HERE, COMPLETE, EARLY = "here", "completed", "ended early"
WHERE: Mapping[str, ColumnElement[bool]] = {
    HERE: Enrolment.ending.is_(None),
    COMPLETE: Enrolment.ending == COMPLETED,
    EARLY: Enrolment.ending.is_not(None) & (Enrolment.ending != COMPLETED),
}
_LARGEST = 2**31 - 1


class PersonListItem(NamedTuple):
    """A person in a list, with what they are owed, None before that is known."""

    row: Enrolment
    step: Step
    pay: Decimal | None
    currency: str


def conditions(wave_id: int, given: Mapping[str, str]) -> list[ColumnElement[bool]]:
    """Which people of a wave are listed: `where` is one of WHERE, `arm` a number, `person` a part of the code.

    Raises Invalid.
    """
    found = [Enrolment.wave_id == wave_id]
    if where := given.get("where"):
        if where not in WHERE:
            raise Invalid("where", expected=either(WHERE), got=where)
        found.append(WHERE[where])
    if arm := given.get("arm"):
        found.append(Enrolment.arm_id == whole_number(arm, "arm", 1, _LARGEST))
    if code := given.get("person", "").strip():
        found.append(func.lower(_CODE).contains(code.lower(), autoescape=True))
    return found


def _person_list_items(session: Session, rows: Sequence[Enrolment]) -> list[PersonListItem]:
    owed: dict[int, Decimal] = {}  # added here, as the database stores amounts as text
    wanted = select(Payment.enrolment_id, Payment.amount).where(Payment.enrolment_id.in_([row.id for row in rows]))
    for number, amount in session.execute(wanted):
        owed[number] = owed.get(number, NOTHING) + amount
    designs = {
        number: design_of(session.get_one(StudyVersion, number)) for number in {r.study_version_id for r in rows}
    }
    return [
        PersonListItem(
            row, steps(design := designs[row.study_version_id])[row.step], owed.get(row.id), design.pay.currency
        )
        for row in rows
    ]


_CODE = of_other(Participant.code, Participant.id == Enrolment.participant_id)
_CAME = of_other(func.max(StudyEvent.at), (StudyEvent.enrolment_id == Enrolment.id) & (StudyEvent.kind == "step"))

PEOPLE: Listing[Enrolment] = Listing(
    name="people",
    table=Enrolment,
    columns=(
        computed(
            "participant",
            Phrase("Person"),
            _CODE,
            lambda each, code: Reference("participant", (each.row.wave_id, each.row.id), code),
        ),
        attribute(Enrolment.id, Phrase("Number"), "enrolment_id", numeric=True, seen=NOWHERE),
        ListColumn(
            "where", Phrase("Where"), lambda each: Labelled(each.step.key, step_words(each.step)), sort=Enrolment.step
        ),
        computed(
            "since", Phrase("Since, UTC"), func.coalesce(Enrolment.ended_at, _CAME, Enrolment.enrolled_at), numeric=True
        ),
        computed("arm", Phrase("Arm"), of_other(Arm.name, Arm.id == Enrolment.arm_id), none=Phrase("none yet")),
        computed(
            "matches",
            Phrase("Finished matches"),
            of_other(
                func.count(MatchRow.id),
                (SeatRow.enrolment_id == Enrolment.id)
                & (MatchRow.id == SeatRow.match_id)
                & MatchRow.position.is_not(None)
                & (is_over()),
            ),
            numeric=True,
        ),
        ListColumn("ending", Phrase("Ending"), lambda each: ending_cell(each.row.ending), sort=Enrolment.ending),
        ListColumn(
            "pay",
            Phrase("Pay"),
            lambda each: each.pay,
            sort=of_other(func.sum(cast(Payment.amount, Float)), Payment.enrolment_id == Enrolment.id),
            none=Phrase("open"),
            numeric=True,
        ),
        ListColumn("currency", Phrase("Currency"), lambda each: each.currency, seen=COMMANDS),
        attribute(Enrolment.enrolled_at, Phrase("Entered, UTC"), "entered_at", numeric=True, seen=NOWHERE),
        attribute(Enrolment.ended_at, Phrase("Ended, UTC"), numeric=True, seen=NOWHERE),
        attribute(Enrolment.device, Phrase("Device"), seen=NOWHERE),
    ),
    items=_person_list_items,
)
