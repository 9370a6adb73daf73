"""The page of a push: what was sent, where to, and under which licence."""

from app.core.errors import Phrase, Verbatim
from app.core.lists import Code, Reference
from app.jobs.listing import JobListItem
from app.jobs.page import ASKED, JobPage, Section, fact, json_fact
from app.models import Publication
from app.publication.job import PUBLICATION
from app.publication.spec import PublicationSpec


def _what(item: JobListItem) -> Reference:
    row = item.row
    kind, number = ("model", row.language_model_id) if row.dataset_id is None else ("dataset", row.dataset_id)
    return Reference(kind, number, Verbatim(row.name))


PAGE: JobPage[Publication] = JobPage(
    kind=PUBLICATION,
    progress=Phrase("%(done)s of %(all)s files are sent"),
    sections=[
        Section(
            ASKED,
            "What was asked for",
            (
                fact("what", "What is published", _what),
                fact("target", "Where to", lambda each: Code(each.row.target)),
                fact("revision", "Commit", lambda each: each.row.revision and Code(each.row.revision)),
                fact("licence", "Licence"),
                fact("size", "Bytes", numeric=True),
                fact("files", "Files", numeric=True),
                fact("manifest", "Manifest (sha256)", lambda each: each.row.manifest and Code(each.row.manifest)),
                fact("sent_at", "Sent, UTC"),
                json_fact("spec", lambda each: PublicationSpec.of_json(each.row.spec).to_json()),
            ),
        ),
    ],
)
