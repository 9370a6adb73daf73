"""Rehearsals: bots are sent through a copy of a study from its page, and a page follows them."""

from collections.abc import Mapping
from typing import Any

from flask import url_for
from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.jobs.listing import JobListItem
from app.models import Rehearsal
from app.studies.bots import job
from app.studies.bots.job import REHEARSAL
from app.studies.bots.spec import RehearsalSpec
from app.web.admin.job_form import FormWords, JobForm, register_form
from app.web.admin.job_pages import JobPages, register_pages
from app.web.admin.lists import add_address


def _rehearsal_page_fields(session: Session, item: JobListItem) -> Mapping[str, Any]:
    return {"report": job.report_of(session, item.row)}


add_address("wave", lambda number: url_for("admin.wave_page", wave_id=number))
register_pages(
    REHEARSAL,
    JobPages(lazy_gettext("Rehearsals"), "rehearsals", "rehearsal_id", below="studies", fields=_rehearsal_page_fields),
    intro=lazy_gettext("Bots that go through copies of studies. They are sent from the page of a study."),
)


# ---- Sending bots ----------------------------------------------------------------------


class _RehearsalForm(JobForm[Rehearsal, RehearsalSpec]):
    kind = REHEARSAL
    spec = RehearsalSpec
    words = FormWords(
        title=lazy_gettext("Send bots"),
        intro=lazy_gettext(
            "Programs go through a copy of a study as people would, over the same pages. Some have bad habits: they"
            " fail the quiz, go silent, press twice, use two browsers, withdraw. They take no place and no arm of the"
            " study."
        ),
        start=lazy_gettext("Send bots"),
        back=lazy_gettext("Back to the rehearsals"),
    )


register_form(_RehearsalForm())
