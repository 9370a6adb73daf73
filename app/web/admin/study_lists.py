"""The lists of studies, versions, waves, people, batches and reports: what surrounds them, and where they link."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from flask import get_template_attribute, request, url_for
from flask_babel import gettext, lazy_gettext
from markupsafe import Markup
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from app.core.validation import whole_number
from app.models import Arm, PaymentBatch, StudyVersion, User, Wave
from app.studies.listing import STUDIES, VERSIONS, WAVES
from app.studies.monitor.inbox import REPORTS, conditions, waves_with_reports
from app.studies.monitor.pay import BATCHES
from app.studies.monitor.people import COMPLETE, EARLY, HERE, PEOPLE
from app.studies.monitor.people import conditions as people_conditions
from app.studies.reports import MARKS
from app.studies.waves import OPEN
from app.web.admin.lists import ListFilter, ListPage, ListView, add_address, read_list, register_list
from app.web.translations import N_

_LARGEST = 2**31 - 1
_PATH = "studies"
_WHERE = {HERE: N_("here now"), COMPLETE: N_("completed"), EARLY: N_("ended early")}

add_address("study", lambda number: url_for("admin.study_page", study_id=number))
add_address("study_version", lambda key: url_for("admin.study_page", study_id=key[0], version=key[1]))
add_address("wave", lambda number: url_for("admin.wave_page", wave_id=number))
add_address("participant", lambda key: url_for("admin.study_person", wave_id=key[0], enrolment_id=key[1]))
add_address("batch", lambda key: url_for("admin.batch_file", wave_id=key[0], number=key[1]))
add_address("reports_of", lambda key: url_for("admin.study_reports", wave=key[0], person=key[1]))


def _written_by(macro: str) -> Callable[[Session, Sequence[Any]], list[Markup]]:
    """The cells that a macro renders for items."""

    def drawn(_session: Session, items: Sequence[Any]) -> list[Markup]:
        write_cell = get_template_attribute("admin/study-parts.html", macro)
        return [write_cell(each) for each in items]

    return drawn


_VERSIONS = ListPage(VERSIONS, lazy_gettext("Versions"), _PATH, prefix="versions-")
_WAVES = ListPage(WAVES, lazy_gettext("Waves"), _PATH, prefix="waves-", is_live=lambda each: each.row.status == OPEN)
_PEOPLE = ListPage(PEOPLE, lazy_gettext("People"), _PATH, counts=True)
_BATCHES = ListPage(BATCHES, lazy_gettext("Batches"), _PATH, values={"format": _written_by("batch_acts")})


def waves_listed(session: Session) -> ListView:
    """The waves of all studies."""
    return read_list(session, _WAVES)


def lists_of_study(session: Session, version: StudyVersion) -> dict[str, ListView]:
    """The versions of a study and its waves, on the page of a version."""
    fixed, number = {"version": str(version.number)}, version.study_id
    return {
        "versions": read_list(
            session, replace(_VERSIONS, fixed=fixed, where=lambda _session, _given: [StudyVersion.study_id == number])
        ),
        "waves": read_list(
            session, replace(_WAVES, fixed=fixed, where=lambda _session, _given: [Wave.study_id == number])
        ),
    }


def people_listed(session: Session, wave: Wave) -> ListView:
    """The people of a wave that the URL selects."""

    def filters(session: Session) -> list[ListFilter]:
        arms = select(Arm.id, Arm.name).where(Arm.study_version_id == wave.study_version_id).order_by(Arm.id)
        return [
            ListFilter("where", gettext("Where"), _WHERE, any=gettext("Everyone")),
            ListFilter("arm", gettext("Arm"), {str(number): name for number, name in session.execute(arms)}),
            ListFilter("person", gettext("Person"), type="search"),
        ]

    return read_list(
        session, replace(_PEOPLE, filters=filters, where=lambda _session, given: people_conditions(wave.id, given))
    )


def batches_listed(session: Session, wave: Wave) -> ListView:
    """The payment batches of a wave."""
    return read_list(session, replace(_BATCHES, where=lambda _session, _given: [PaymentBatch.wave_id == wave.id]))


def _report_filters(session: Session) -> list[ListFilter]:
    asked = request.args.get("wave", "")
    waves = waves_with_reports(session, int(asked) if asked.isdecimal() and len(asked) < 10 else None)
    names = session.scalars(select(User.name).order_by(User.name)).all()
    return [
        ListFilter(
            "wave", gettext("Wave"), {str(wave.id): f"{study}:{wave.name} ({count})" for wave, study, count in waves}
        ),
        ListFilter("state", gettext("Status"), {each: each for each in MARKS}),
        ListFilter("to", gettext("Assigned to"), {name: name for name in names}, any=gettext("Anybody")),
        ListFilter("person", gettext("Person"), type="search"),
    ]


def _chosen_reports(_session: Session, given: Mapping[str, str]) -> Sequence[ColumnElement[bool]]:
    """A limited number of reports for each person, unless a person is asked for or all reports are written to a
    file.
    """
    wave_id = whole_number(given["wave"], "wave", 1, _LARGEST) if "wave" in given else None
    each = "person" not in given and not request.args.get("format")
    return conditions(wave_id, state=given.get("state"), to=given.get("to"), code=given.get("person"), each=each)


REPORTS_PAGE = ListPage(
    REPORTS,
    lazy_gettext("Problem reports"),
    "studies/reports",
    intro=lazy_gettext("What people reported to you. A report does not reduce pay: look at it before you pay a wave."),
    about=lazy_gettext(
        "Nobody has reported anything. Every page of a study has “Report a problem”; what is sent there comes here."
    ),
    values={"state": _written_by("report_acts")},
    filters=_report_filters,
    where=_chosen_reports,
)
STUDIES_PAGE = ListPage(
    STUDIES,
    lazy_gettext("Studies"),
    _PATH,
    new=[("admin.new_study", lazy_gettext("Load a study"))],
    about=lazy_gettext(
        "A study asks people for their consent, explains a game to them, has them play it with models under conditions,"
        " and pays them. There are none yet."
    ),
    first=lazy_gettext("Load the first study"),
    template="admin/studies.html",
    is_live=lambda each: each.is_open,
    fields=lambda session, _given: {"waves": waves_listed(session)},
)
for _page in (STUDIES_PAGE, _VERSIONS, _WAVES, _PEOPLE, _BATCHES, REPORTS_PAGE):
    register_list(_page)
