"""Codings: their list, a coding by one experimenter, the agreement of coders who are done, and its file."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from flask import Response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext
from flask_login import current_user
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.core.csv_tables import to_csv
from app.core.errors import AppError, Conflict, Invalid, Phrase
from app.core.extensions import db, reading
from app.core.validation import whole_number
from app.jobs.kind import LARGEST
from app.matches import codings
from app.matches.agreement import agreement
from app.matches.coding_list import LIST
from app.matches.export_codings import COLUMNS, coded_rows
from app.matches.filter import NAMES, read_choice
from app.matches.transcripts import NEWEST, Transcript, transcript
from app.matches.words import TextQuery
from app.models import Coder, Coding, GivenCode
from app.web.admin.blueprint import blueprint
from app.web.admin.lists import ListPage, add_address, read_list, register_list
from app.web.admin.rounds_analysis import cached
from app.web.admin.transcripts import transcripts_page
from app.web.csv_exports import csv_flags
from app.web.downloads import download
from app.web.form_writes import write, write_once
from app.web.threads import in_worker_thread
from app.web.translations import game_titles

# ---- The list ------------------------------------------------------------------

_PAGE = ListPage(
    LIST,
    lazy_gettext("Codings"),
    "matches/codings",
    intro=lazy_gettext(
        "A coding is a set of codes and the matches to be coded. Experimenters code independently until they are done."
    ),
    template="admin/codings.html",
)
register_list(_PAGE)
add_address("coding", lambda number: url_for("admin.coding", number=number))


@blueprint.get("/matches/codings")
def coding_list() -> ResponseReturnValue:
    """All codings, and the form of a new one."""
    return _codings_page()


@blueprint.post("/matches/codings")
def new_coding() -> ResponseReturnValue:
    """Create a coding; errors are shown above the form, which keeps its input."""
    name, codes, creator = request.form.get("name", "").strip(), request.form.get("codes", ""), current_user.name
    try:
        number = write_once(lambda session: codings.create_coding(session, name, codes, creator).id)
    except AppError as error:
        return _codings_page(error)
    return redirect(url_for("admin.coding", number=number), 303)


def _codings_page(refused: AppError | None = None) -> ResponseReturnValue:
    with reading() as session:
        view = read_list(session, _PAGE)
        page = render_template(_PAGE.template, page=_PAGE, view=view, refused=refused, most=codings.MOST_CODES)
    shown = refused or view.refused
    return page, 200 if shown is None else shown.status


@blueprint.post("/matches/codings/add")
def add_to_coding() -> ResponseReturnValue:
    """Add matches of a search to a coding; errors are shown above the search."""
    asked = {name: text for name in (*NAMES, "sort", "coding", "most", "drawn") if (text := request.form.get(name, ""))}
    try:
        number = whole_number(asked.get("coding", ""), "coding", 1, LARGEST)
        most = whole_number(asked.get("most", str(codings.MOST_MATCHES)), "most", 1, codings.MOST_MATCHES)
        order = codings.RANDOM if asked.get("drawn") else asked.get("sort", NEWEST)
        with reading() as session:
            codings.find_coding(session, number)
        chosen = in_worker_thread(db.engine, codings.choose_matches, number, read_choice(asked), most, order)
        write_once(lambda session: codings.add_matches(session, codings.find_coding(session, number), chosen))
    except AppError as error:
        return transcripts_page(asked, error)
    return redirect(url_for("admin.coding", number=number), 303)


# ---- One coding ----------------------------------------------------------------


@blueprint.get("/matches/codings/<int:number>")
def coding(number: int) -> ResponseReturnValue:
    """A coding as its reader codes it: the current match, the selected line, and the codes of both."""
    with reading() as session:
        return render_template("admin/coding.html", **_coding_fields(session, codings.find_coding(session, number)))


@blueprint.post("/matches/codings/<int:number>/codes")
def give_code(number: int) -> ResponseReturnValue:
    """Give the chosen line or match a code, or take it back."""
    form, coder = request.form, current_user.name
    match_id, seq = form.get("match", ""), whole_number(form.get("line", ""), "line", 0, LARGEST)
    key = whole_number(form.get("key", ""), "key", 1, codings.MOST_CODES)
    write(lambda session: codings.toggle(session, codings.find_coding(session, number), coder, match_id, seq, key))
    return _to_line(number, match=match_id, line=seq)


@blueprint.post("/matches/codings/<int:number>/undo")
def undo_code(number: int) -> ResponseReturnValue:
    """Take back the last code given, and go to its place."""
    coder = current_user.name

    def work(session: Session) -> dict[str, Any]:
        last = codings.undo(session, codings.find_coding(session, number), coder)
        return {} if last is None else {"match": last.match_id, "line": last.seq}

    return _to_line(number, **write(work))


@blueprint.post("/matches/codings/<int:number>/done")
def finish_coding(number: int) -> ResponseReturnValue:
    """Finish coding, permanently."""
    coder = current_user.name
    write(lambda session: codings.finish(session, codings.find_coding(session, number), coder))
    return redirect(url_for("admin.coding", number=number), 303)


@blueprint.post("/matches/codings/<int:number>/left")
def end_left_coder(number: int) -> ResponseReturnValue:
    """End the unfinished coding of a coder whose account is gone: keep their codes as if they were done, or drop
    them.
    """
    name, action = request.form.get("coder", ""), request.form.get("action")
    if action not in ("close", "drop"):
        raise Invalid("action", expected=Phrase("close or drop"), got=action)
    drop = action == "drop"
    write(lambda session: codings.end_left(session, codings.find_coding(session, number), name, drop=drop))
    return redirect(url_for("admin.coding", number=number), 303)


@blueprint.get("/matches/codings/<int:number>.csv")
def download_coding(number: int) -> Response:
    """The codes that the reader sees, one per row."""
    with reading() as session:
        codings.find_coding(session, number)
        coders = codings.seen_coders(session, number, current_user.name)
    return download(
        _coding_csv_pieces(db.engine, number, coders, csv_flags(request.args)), f"codings-{number}.csv", "text/csv"
    )


def _coding_csv_pieces(engine: Engine, number: int, coders: Sequence[str], flags: dict[str, bool]) -> Iterator[bytes]:
    with reading(engine) as session:
        found = codings.find_coding(session, number)
        yield from to_csv(COLUMNS, coded_rows(session, found, coders), **flags)


def _to_line(number: int, **there: Any) -> ResponseReturnValue:
    return redirect(url_for("admin.coding", number=number, **there, _anchor="read"), 303)


def _coding_fields(session: Session, found: Coding) -> dict[str, Any]:
    reader, ids = current_user.name, codings.matches_of(session, found.id)
    coders = codings.coders_of(session, found.id)
    seen = codings.seen_coders(session, found.id, reader)
    codes = codings.codes_of(session, found.id)
    given = codings.given_codes(session, found.id, seen)
    asked = request.args.get("match", "")
    place = ids.index(asked) if asked in ids else 0
    read = transcript(session, ids[place], TextQuery((), ())) if ids else None
    own = [each for each in given if each.coder == reader]
    done = any(coder.name == reader and coder.done_at for coder in coders)
    return {
        "coding": found, "codes": codes, "coders": coders, "seen": seen, "ids": ids, "place": place, "reader": read,
        "titles": game_titles(), "is_done": done, "left": codings.left_coders(session, found.id),
        "counts": Counter(each.match_id for each in own),
        **({} if read is None else _reading(found.id, read, ids, place)),
        "labels": {} if read is None
        else _codes_by_line(given, {code.id: code.name for code in codes}, read.row.id, reader),
        "own": own, **_agreement(found, seen, coders, (len(ids), len(given))),
    }  # fmt: skip


def _reading(number: int, read: Transcript, ids: Sequence[str], place: int) -> dict[str, Any]:
    """The selected line, and the addresses around it."""

    def at(match_id: str, line: int | None = None) -> str:
        return url_for("admin.coding", number=number, match=match_id, line=line, _anchor="read")

    seqs = [line.seq for line in read.lines]
    asked = request.args.get("line", "")
    chosen = int(asked[:9]) if asked.isascii() and asked.isdecimal() else None
    if chosen not in (codings.WHOLE_MATCH, *seqs):
        chosen = seqs[0] if seqs else codings.WHOLE_MATCH
    row = seqs.index(chosen) if chosen in seqs else None
    return {
        "chosen": chosen,
        "chosen_number": None if row is None else row + 1,
        "addresses": {seq: at(read.row.id, seq) for seq in seqs},
        "whole": at(read.row.id, codings.WHOLE_MATCH),
        "line_before": at(read.row.id, seqs[row - 1]) if row else None,
        "line_after": at(read.row.id, seqs[row + 1]) if row is not None and row + 1 < len(seqs) else None,
        "before": at(ids[place - 1]) if place else None,
        "after": at(ids[place + 1]) if place + 1 < len(ids) else None,
    }


def _codes_by_line(
    given: Sequence[GivenCode], names: dict[int, str], match_id: str, reader: str
) -> dict[int, list[str]]:
    """The codes of each line, with the coder's name if it is another coder."""
    found: dict[int, list[str]] = {}
    for each in given:
        if each.match_id == match_id:
            by = "" if each.coder == reader else f" ({each.coder})"
            found.setdefault(each.seq, []).append(f"{names[each.code_id]}{by}")
    return found


def _agreement(
    coding: Coding, seen: Sequence[str], coders: Sequence[Coder], numbers: tuple[int, int]
) -> dict[str, Any]:
    """The agreement of the coders who are done, visible only to one of them; slow for many matches.

    Recomputed when another coder is done, or when a match is removed, as the `numbers` of matches and codes show.
    """
    if len(seen) < 2:
        return {"agreement": None, "without_library": None}
    done = tuple((each.name, each.done_at) for each in coders)
    key = (str(db.engine.url), "coding", coding.id, coding.created_at, tuple(seen), done, numbers)
    make = partial(in_worker_thread, db.engine, agreement, coding.id, seen)
    try:
        return {"agreement": cached(key, make), "without_library": None}
    except Conflict as error:
        return {"agreement": None, "without_library": error}
