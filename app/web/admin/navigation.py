"""The navigation of all admin pages: a line of sections, and below it the lists of the open section.

Lists of jobs come from the kinds: a new kind gets its own section, unless its pages name the section that they belong
below.
"""

from typing import Any, NamedTuple

from flask import request, url_for
from flask_babel import gettext

from app import training_part
from app.job_kinds import JOB_KINDS
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import pages_of
from app.web.admin.study_reports import reports_waiting

_PAGE, _WITHIN = "page", "true"  # aria-current for the open page, and for an entry that the page belongs to


class NavigationEntry(NamedTuple):
    """A list or a page of its own. `path` is its path below all admin pages."""

    path: str
    title: Any  # text or lazy text
    waiting: int = 0  # how many items wait there for the signed-in experimenter
    elsewhere: str = ""  # the path of pages that belong to it without being below its own

    @property
    def address(self) -> str:
        return url_for("admin.home") + self.path

    @property
    def current(self) -> str:
        """The value of aria-current for this entry during this request; empty if it is not open."""
        if request.path == self.address:
            return _PAGE
        below = [url_for("admin.home") + path for path in (self.path, self.elsewhere) if path]
        return _WITHIN if any(f"{request.path}/".startswith(f"{each}/") for each in below) else ""


class NavigationSection(NamedTuple):
    """An entry of the first line, with the lists of the second line while it is open: none, or itself and others."""

    entry: NavigationEntry
    lists: list[NavigationEntry]

    @property
    def current(self) -> str:
        """The value of aria-current for this section; it is also set if one of its lists is open."""
        return self.entry.current or (_WITHIN if any(each.current for each in self.lists) else "")


class TrainingNotice(NamedTuple):
    """Why local models and trainings have to wait, or cannot be used here."""

    reason: str
    percent: int | None  # of the installation's current step
    is_off: bool


@blueprint.app_template_global()
def training_notice() -> TrainingNotice | None:
    """The notice about the training part; None if that is available."""
    found = training_part.lacking()
    if found is None:
        return None
    percent = found.percent if found.is_under_way else None
    return TrainingNotice(found.reason().render(gettext), percent, found.is_off)


@blueprint.app_template_global()
def admin_navigation() -> list[NavigationSection]:
    """The sections in their order."""
    overview = NavigationEntry("", gettext("Overview"))
    matches = NavigationEntry("matches", gettext("Matches"))
    datasets = NavigationEntry("datasets", gettext("Datasets"))
    models = NavigationEntry("models", gettext("Models"))
    studies = NavigationEntry("studies", gettext("Studies"), sum(reports_waiting()))
    rounds, *jobs = _lists_below("")
    entries = (overview, matches, rounds, datasets, *jobs, models, studies)
    return [NavigationSection(entry, _lists_of(entry)) for entry in entries]


@blueprint.app_template_global()
def open_lists() -> list[NavigationEntry]:
    """The second line: the lists of the open section; empty if it has only one."""
    return next((section.lists for section in admin_navigation() if section.current), [])


def _lists_of(section: NavigationEntry) -> list[NavigationEntry]:
    of_overview = [
        NavigationEntry("spend", gettext("Spend")),
        NavigationEntry("spend/storage", gettext("Storage"), elsewhere="spend/removed"),
        NavigationEntry("notices", gettext("Notices")),
    ]
    below = _lists_below(section.path) if section.path else of_overview
    if section.path == "studies":
        below = [NavigationEntry("studies/reports", gettext("Problem reports"), section.waiting), *below]
    elif section.path == "matches":
        below = [
            NavigationEntry("matches/transcripts", gettext("Transcripts")),
            NavigationEntry("matches/codings", gettext("Codings")),
        ]
    elif section.path == "models":
        below = [
            NavigationEntry("models/prompts", gettext("System prompts")),
            NavigationEntry("models/leaderboard", gettext("Leaderboard")),
            NavigationEntry("models/side-by-side", gettext("Side by side")),
            *below,
        ]
    return [section, *below] if below else []


def _lists_below(path: str) -> list[NavigationEntry]:
    """The lists of jobs below the section with that path; for an empty path, those that are sections themselves."""
    found = [pages_of(kind) for kind in JOB_KINDS]
    return [NavigationEntry(pages.path, pages.title) for pages in found if pages.below == path]
