"""Dataset pages: the list, one dataset with its figures and samples, the origin of its rows, and its file."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from flask import Response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext, lazy_gettext
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.analysis.chart import Chart
from app.analysis.distributions import bins_of
from app.analysis.histogram import histogram
from app.analysis.language import Language
from app.analysis.themes import Palette
from app.core.errors import AppError, Conflict, Invalid, NotFound
from app.core.extensions import db, reading
from app.core.validation import whole_number
from app.datasets import rebuild, register, store
from app.datasets.export import export_dataset, form_of, formats_of
from app.datasets.listing import LIST, origins_of, society_origin
from app.datasets.spec import DatasetRequestSpec
from app.finetuning.listing import jobs_of_dataset
from app.games.base import JSON
from app.jobs.page import job_references
from app.jobs.spec import fields_of
from app.jobs.tags import DATASET
from app.models import Dataset, DatasetRow, MatchRow
from app.rounds.job import ROUND
from app.web.admin.blueprint import blueprint
from app.web.admin.datasets_new import check_size
from app.web.admin.lists import ListPage, add_address, add_list
from app.web.admin.rounds_analysis import with_specs
from app.web.admin.spec_choices import word_label
from app.web.admin.tags import tag_filter
from app.web.chart_language import page_language
from app.web.downloads import download
from app.web.form_writes import write
from app.web.seats import settings
from app.web.threads import in_thread

PAGE = 50  # rows on a page
SAMPLES = 10
_KEPT, _LEFT_OUT = "kept", "left out"
add_address("dataset", lambda number: url_for("admin.dataset_page", dataset_id=number))


add_list(
    ListPage(
        LIST,
        lazy_gettext("Datasets"),
        "datasets",
        new=[
            ("admin.new_dataset", lazy_gettext("New dataset")),
            ("admin.new_import", lazy_gettext("Import a dataset")),
            ("admin.new_dataset_pull", lazy_gettext("Pull a dataset")),
        ],
        about=lazy_gettext(
            "A dataset holds what was said well in matches, for a model to learn from. There are none yet."
        ),
        first=lazy_gettext("Make the first dataset"),
        **tag_filter(DATASET, Dataset.id),
    )
)


@blueprint.app_template_global()
def dataset_word(field: str, word: str) -> str:
    """The label of a value that a field of the dataset spec can take."""
    return word_label(fields_of(DatasetRequestSpec)[field], word)


blueprint.add_app_template_global(society_origin)


@blueprint.get("/datasets/<int:dataset_id>")
def dataset_page(dataset_id: int) -> str:
    """One dataset: what it was cut from, its figures, and ten of its rows as conversations."""
    return _dataset_page(dataset_id)


def _dataset_page(dataset_id: int, refused: AppError | None = None) -> str:
    with reading() as session:
        row = store.get_dataset(session, dataset_id)
        samples, missing = _samples(session, row)
        rounds = [each[0] for name in ("rounds", "means") for each in row.figures.get(name, ())]
        rounds += [each["match"].round_id for each in samples if each["match"] is not None]
        [parts] = origins_of(session, [row])
        return render_template(
            "admin/dataset.html",
            dataset=row,
            figures=row.figures,
            charts=[with_specs(chart) for chart in charts_of(row)],
            samples=samples,
            missing=missing,
            same=_identical_datasets(session, row),
            jobs=jobs_of_dataset(session, row.id),
            formats=[] if missing else formats_of(row),
            again=request.args.get("imported") == "before",
            like=store.can_be_asked_for(row),
            parts=parts,
            rounds=job_references(session, ROUND, rounds),
            refused=refused,
        )


@blueprint.post("/datasets/<int:dataset_id>/rebuild")
def rebuild_dataset(dataset_id: int) -> ResponseReturnValue:
    """Rebuild a dataset from its own spec and show the result, or say why it cannot be rebuilt."""
    with reading() as session:
        row = store.get_dataset(session, dataset_id)
        session.expunge(row)
    home = settings().home
    try:
        draft = in_thread(db.engine, lambda own: rebuild.draft(own, home, row, check_size))
        number = register.save(write, draft, row.name)
    except AppError as error:
        return _dataset_page(dataset_id, error), error.status
    return redirect(url_for("admin.dataset_page", dataset_id=number), 303)


def _samples(session: Session, row: Dataset) -> tuple[list[JSON], AppError | None]:
    """Some rows as a page shows them, or the error that explains why there are none."""
    try:
        lines = store.sample(settings().home, row, SAMPLES)
    except (Conflict, NotFound) as error:
        return [], error
    return [_shown_sample(session, json.loads(line)) for line in lines], None


def _shown_sample(session: Session, row: JSON) -> JSON:
    """A row as a page shows it; the match is None if it is not stored here."""
    match_id, _, seat = str(row.get("group", "")).rpartition(":")
    match = session.get(MatchRow, match_id) if seat in ("0", "1") else None
    score = None if match is None else match.utility_1 if int(seat) else match.utility_0
    query = [*(row.get("history") or ()), {"role": "user", "content": row["query"]}] if "responses" in row else []
    return {
        "match": match,
        "seat": 0 if match is None else int(seat),
        "score": score or 0,
        "messages": query or row["messages"],
        "responses": list(zip(row.get("responses", ()), row.get("scores", ()), strict=True)),
    }


def _identical_datasets(session: Session, row: Dataset) -> Sequence[Dataset]:
    """Other datasets whose files are byte-identical."""
    same = Dataset.sha256 == row.sha256, Dataset.id != row.id, Dataset.complete
    others = select(Dataset).where(*same).order_by(Dataset.id)
    return session.scalars(others).all()


@blueprint.get("/datasets/<int:dataset_id>/rows")
def dataset_rows(dataset_id: int) -> ResponseReturnValue:
    """A page of a dataset's rows, with the match and the seat that each of them came from."""
    refused = None
    with reading() as session:
        row = store.get_dataset(session, dataset_id)
        try:
            first = whole_number(request.args.get("from") or 0, "from", 0, max(0, row.rows - 1))
        except Invalid as error:
            first, refused = 0, error
        lines = [] if refused else _origins(session, row, first)
        page = render_template(
            "admin/dataset-rows.html",
            dataset=row,
            rows=lines,
            rounds=job_references(session, ROUND, [match.round_id for _, _, match in lines]),
            refused=refused,
            first=first,
            later=first + PAGE if first + PAGE < row.rows else None,
        )
    return page, 400 if refused else 200


def _origins(session: Session, row: Dataset, first: int) -> Sequence[Any]:
    lines = (
        select(DatasetRow.place, DatasetRow.seat, MatchRow)
        .join(MatchRow, MatchRow.id == DatasetRow.match_id)
        .where(DatasetRow.dataset_id == row.id, DatasetRow.place >= first, DatasetRow.place < first + PAGE)
        .order_by(DatasetRow.place)
    )
    return session.execute(lines).all()


@blueprint.get("/datasets/<int:dataset_id>.jsonl")
def dataset_file(dataset_id: int) -> Response:
    """The rows of a dataset as they were built."""
    with reading() as session:
        row = store.get_dataset(session, dataset_id)
        name = f"dataset-{row.id}-{row.sha256[:12]}.jsonl"
        response = download(store.pieces_of(store.path_of(settings().home, row)), name, "application/jsonl")
    response.headers["Content-Length"] = str(row.size)
    return response


@blueprint.get("/datasets/<int:dataset_id>/export/<name>")
def dataset_export(dataset_id: int, name: str) -> Response:
    """The rows of a dataset in the format of another program."""
    with reading() as session:
        row = store.get_dataset(session, dataset_id)
        form = form_of(row.kind, name)
        session.expunge(row)
    home = settings().home
    pieces = in_thread(db.engine, lambda _own: export_dataset(home, row, name))  # reads all rows, so it refuses first
    suffix = "jsonl" if form is None else form.suffix
    return download(pieces, f"dataset-{row.id}-{row.sha256[:12]}-{name}.{suffix}", f"application/{suffix}")


def _shades(colours: Palette) -> Sequence[str]:
    """The colour of what was kept (that of bars everywhere, as in the chart of rows) and of what was left out
    (grey).
    """
    return colours.second, colours.strong


def charts_of(row: Dataset) -> list[Chart]:
    """The distribution of the scores of a dataset's seats, kept or not, and of the lengths of its rows.

    Imported rows have no known scores.
    """
    language = page_language()
    lengths = _lengths(row, language)
    return [_score_chart(row, language), lengths] if "scores" in row.figures else [lengths]


def _score_chart(row: Dataset, language: Language) -> Chart:
    kept, left_out = Counter[float](), Counter[float]()
    for score, number, taken in row.figures["scores"]:
        kept[score] += taken
        left_out[score] += number - taken
    bins = [*bins_of(+kept, _KEPT), *bins_of(+left_out, _LEFT_OUT)]
    title = gettext("Scores of all seats")
    sentence = gettext(
        "%(title)s: %(kept)s of %(all)s were kept for %(dataset)s.",
        title=title,
        kept=kept.total(),
        all=kept.total() + left_out.total(),
        dataset=_full_name(row),
    )
    whole = all(float(score).is_integer() for score in kept)
    return histogram(
        f"dataset-{row.id}-scores", title, gettext("Score"), gettext("Seats"), sorted(bins), sentence,
        {_KEPT: gettext("kept"), _LEFT_OUT: gettext("left out")}, gettext("Transcript"), whole=whole, stacked=True,
        shades=_shades, language=language,
    )  # fmt: skip


def _lengths(row: Dataset, language: Language) -> Chart:
    words = {float(number): rows for number, rows in row.figures["words"]}
    sentence = gettext(
        "Length of the %(rows)s rows of %(dataset)s, prompts included: %(mean)s words on average.",
        rows=row.rows,
        dataset=_full_name(row),
        mean=language.decimals(row.words / row.rows, 1),
    )
    return histogram(
        f"dataset-{row.id}-words", gettext("Length of rows"), gettext("Length (words)"), gettext("Rows"),
        bins_of(words), sentence, language=language,
    )  # fmt: skip


def _full_name(row: Dataset) -> str:
    return str(gettext("%(name)s, version %(version)s", name=row.name, version=row.version))
