"""Making datasets: what the form has beyond the spec, and how the dataset is built."""

from pathlib import Path

from flask import url_for
from flask_babel import gettext, lazy_gettext
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, Phrase, check_name
from app.core.extensions import db, reading
from app.core.validation import whole_number
from app.datasets import build, register, store
from app.datasets.build import DatasetBuild
from app.datasets.spec import DatasetRequestSpec, request_of
from app.games import GAMES
from app.games.base import JSON
from app.jobs.spec import command_words
from app.web.admin.blueprint import blueprint
from app.web.admin.spec_page import Asked, FormWords, Link, SpecPage
from app.web.form_writes import result_before, write, write_once
from app.web.seats import settings
from app.web.threads import in_thread

MOST = 20_000  # matches of a dataset built while somebody waits for the page


class DatasetPage(SpecPage[DatasetRequestSpec]):
    """The form of a dataset."""

    spec = DatasetRequestSpec
    words = FormWords(
        title=lazy_gettext("New dataset"),
        intro=lazy_gettext("What was said in finished matches, one row per seat, for a model to learn from."),
        start=lazy_gettext("Make the dataset"),
        back=lazy_gettext("Back to the datasets"),
    )
    below = "admin/dataset-rewards.html"

    def listed(self) -> Link:
        return Link(gettext("Datasets"), url_for("admin.datasets"))

    def action(self) -> str:
        return url_for("admin.make_dataset")

    def earlier(self, session: Session, number: str) -> tuple[Link, JSON, JSON]:
        row = store.get_dataset(session, whole_number(number, "like", 1, 2**31 - 1), "like")
        if not store.can_be_asked_for(row):
            expected, got = Phrase("one that was cut from matches by hand"), Phrase("another one")
            raise Conflict("like", expected=expected, got=got, subject=Phrase("dataset %(number)s", number=row.id))
        link = Link(row.name, url_for("admin.dataset_page", dataset_id=row.id))
        return link, request_of(row.spec).to_json(), {}

    def further(self) -> JSON:
        """The reward formulas."""
        return {"rewarded": {game.title: game.rewards.summary for game in GAMES.values() if game.rewards}}

    def make(self, asked: Asked[DatasetRequestSpec]) -> str:
        """Build the dataset in a thread, unless this form was already sent."""
        number = result_before()
        if number is None:
            spec, home = asked.spec, settings().home
            name = spec.name or store.default_name(spec.cut)
            check_name("name", name)
            draft = in_thread(db.engine, lambda own: _built(own, home, spec))
            registered = register.save(write, draft, name)
            number = write_once(lambda _session: registered)
        return url_for("admin.dataset_page", dataset_id=number)


def _built(engine: Engine, home: Path, spec: DatasetRequestSpec) -> store.UnregisteredDataset:
    with reading(engine) as session:
        found = build.prepare(session, spec.cut)
        check_size(found, f"flask dataset build {command_words(spec)}")
        return store.write(home, found, build.training_rows(session, found))


def check_size(found: DatasetBuild, command: str = "flask dataset rebuild") -> None:
    """Raises Invalid, which names the command, if there is more to read than a page should wait for."""
    if found.matches > MOST:
        raise Invalid(
            "matches",
            expected=Phrase("at most %(most)s to be read while a page waits", most=MOST),
            got=found.matches,
            remedy=Phrase("`%(command)s` has no such limit", command=command),
        )


_PAGE = DatasetPage()
blueprint.add_url_rule("/datasets/new", "new_dataset", _PAGE.begin, methods=["GET"])
blueprint.add_url_rule("/datasets/new", "make_dataset", _PAGE.start, methods=["POST"])
