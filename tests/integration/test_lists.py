"""Lists of all kinds: sorted by every column that can be, page by page, with chosen columns, and as files."""

import csv
import html
import io
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app.accounts import create_user, tokens
from app.accounts.tokens import LIST as TOKENS
from app.accounts.tokens import READ, RUN
from app.campaigns.step_names import EVALUATE, OF_BASE
from app.cli.commands import LIST as COMMANDS
from app.cli.commands import load_below
from app.codebook import all_tables
from app.core.config import load_settings
from app.core.csv_tables import to_csv
from app.core.extensions import reading, writing
from app.core.lists import Listing
from app.datasets.listing import LIST as DATASETS
from app.games import metrics_of
from app.job_kinds import JOB_KINDS, find_kind
from app.jobs import states
from app.jobs.kind import fail
from app.jobs.listing import list_of
from app.matches import codings
from app.matches.coding_list import LIST as CODINGS
from app.matches.listing import LIST as MATCHES
from app.matches.model_list import LIST as MODELS
from app.models import (
    CodedMatch,
    Coder,
    Coding,
    Dataset,
    LanguageModel,
    MatchCount,
    MatchRow,
    RecipeStep,
    RoundRow,
    TrainingJob,
    User,
)
from app.notices.outbox import add_test
from app.notices.recipients import set_notices
from app.registry.prompts import LIST as PROMPTS
from app.registry.prompts import add_prompt
from app.studies.bots import job as rehearsals
from app.studies.bots.spec import RehearsalSpec
from app.web.admin.job_pages import job_address
from tests.assessments import make_alignment, make_assessment
from tests.benchmarks import make_benchmark, score
from tests.campaigns import add_local, campaign_of
from tests.experimenter import leafed_through, signed_in
from tests.integration.test_authorisation import House
from tests.jobs import make_dataset, make_job, make_publication, tell
from tests.programs import Program
from tests.r_programs import check_frame, needs_r, run_lines
from tests.recipes import make_run
from tests.rounds import make_round
from tests.societies import make_society
from tests.waves import loaded_study, store_study

OFTEN = 5  # jobs of each kind
NOW = datetime.now(UTC)


@pytest.fixture
def filled(app: Flask, engine: Engine) -> Engine:
    """A database with some jobs of every kind, the values of which differ, are the same, or are not there."""
    dataset = make_dataset(engine, app.config["SETTINGS"])
    add_local(engine, "base")
    with writing(engine) as session:
        store_study(session, loaded_study())
    for number in range(OFTEN):
        make_round(engine, "scripted", matches=2 + number % 2, name=("", "evening", "=1~2")[number % 3])
        job = make_job(engine, dataset, f"small-{number}", queued=True)
        if number % 2:
            tell(engine, job, number, 40)
        campaign_of(engine, "base", name=f"loop-{number}")
        benchmark = make_benchmark(engine, "base", "a,b")
        if number % 2:
            score(engine, benchmark, {"a": 0.25, "b": 0.36})
        make_society(engine, "scripted-agent", observers=["scripted-observer"])
        make_assessment(engine, "scripted-agent", "scripted-observer", "scripted-observer")
        make_alignment(engine, "base", f"chain-{number}")
        make_publication(engine, dataset)
        make_run(engine)
        with writing(engine) as session:
            rehearsals.create(session, RehearsalSpec(study="two-models", bots=1))
            user = create_user(session, f"user-{number}", None, NOW)
            scopes = [READ, *([RUN] if number % 2 else [])]
            token, _ = tokens.create(session, user, "robot", scopes, 1, NOW - timedelta(days=number))
            token.revoked_at = NOW if number == 2 else None
            codings.create_coding(session, f"offers-{number}", "asks", "ann")
            add_prompt(session, ("polite", "terse")[number % 2], f"Be number {number}.", "ann")
    return engine


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


def numbers_in(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'id="line-(\d+)"', page)]


def pages_of(engine: Engine, listing: Listing[object], sort: str) -> Iterator[list[int]]:
    """The numbers of each page of two lines."""
    after: str | None = ""
    with reading(engine) as session:
        while after is not None:
            rows, after = listing.read(session, listing.order(sort), 2, after=after)
            yield [row.id for row in rows]  # type: ignore[attr-defined]


def test_every_order_has_each_line_once_and_is_the_same_page_by_page(filled: Engine) -> None:
    for listing in (*map(list_of, JOB_KINDS), DATASETS, MATCHES, MODELS, CODINGS, TOKENS, PROMPTS):
        sortable = [column.name for column in listing.columns if column.sort is not None]
        assert len(sortable) >= (4 if listing is PROMPTS else 6)
        for sort in ("", *sortable, *(f"-{name}" for name in sortable)):
            with reading(filled) as session:
                whole = [row.id for row in listing.read(session, listing.order(sort)).rows]
            paged = [number for page in pages_of(filled, listing, sort) for number in page]
            assert paged == whole, (listing.name, sort)
            assert len(whole) == len(set(whole)) >= (1 if listing is DATASETS else OFTEN)


def rows_of(session: Session, kind: str) -> list[Any]:
    """The jobs of a kind by number."""
    table = find_kind(kind).table
    return [*session.scalars(select(table).order_by(table.id))]


def make_different(session: Session) -> None:
    """Give the rows of a `filled` database other values, in other orders than their numbers."""
    score_rounds_and_campaigns(session)
    change_jobs(session)
    add_datasets(session)
    code_matches(session)


def score_rounds_and_campaigns(session: Session) -> None:
    for number, row in enumerate(rows_of(session, "round")[:OFTEN]):
        points = (7.0, 2.0, 9.5, 4.0, 0.0)[number]
        for part in (1, 2):  # of two endings
            counted = {"source": "selfplay", "reason": f"ending {part}", "imported_0": False, "imported_1": False}
            counted |= {"matches": part, "scored": part, "points_0": part * points, "points_1": part * points}
            session.add(MatchCount(round_id=row.id, game=row.game, **counted))
    for number, row in enumerate(rows_of(session, "campaign")):
        for iteration in range(number % 2 + 1):  # that of the base, and one
            score = {"value": (number * 3 + iteration) % 5, "low": None, "high": None, "n": 4}
            figures = {metrics_of(row.game).headline.name: score}
            name = EVALUATE if iteration else EVALUATE + OF_BASE
            step(session, "campaign_id", row.id, iteration, name=name, figures=figures)


def change_jobs(session: Session) -> None:
    session.scalars(select(LanguageModel).where(LanguageModel.name == "base")).one().games = ["chess", "negotiation"]
    for number, row in enumerate(rows_of(session, "publication")):
        row.status, row.files = (states.DONE, 9 - number) if number % 2 else (states.WAITING, 12)
    for number, row in enumerate(rows_of(session, "recipe")):
        for place in range((2, 4, 0, 3, 1)[number]):
            step(session, "run_id", row.id, place, name="play", ended_at=NOW if place else None)
    for number, row in enumerate(rows_of(session, "benchmark")):
        row.tasks = [("c", "a", "d", "b", "a")[number], "e"]
    for number, row in enumerate(rows_of(session, "society")):
        row.observers = [{"model_id": None, "model": f"observer-{(number * 3) % OFTEN}"}]


def add_datasets(session: Session) -> None:
    dataset = session.scalars(select(Dataset)).one()
    copied = ("name", "kind", "sha256", "size", "rows", "words", "own_words", "figures", "created_at")
    first = dataset.spec["rounds"][0]
    session.get_one(RoundRow, first).name = "morning"
    for version, spec in enumerate((
        {"imported": {"file": "zebra.jsonl"}},
        {"society": {"society_id": 1, "name": "village"}},
        {"best_of": {"dataset": "apples@1", "dataset_id": dataset.id}},
    ), 2):  # fmt: skip
        session.add(Dataset(version=version, spec=spec, **{name: getattr(dataset, name) for name in copied}))


def code_matches(session: Session) -> None:
    matches = session.scalars(select(MatchRow.id)).all()
    for number, coding in enumerate(session.scalars(select(Coding).order_by(Coding.id))):
        for place, match_id in enumerate(matches[: (2, 0, 3, 1, 4)[number]]):
            session.add(CodedMatch(coding_id=coding.id, match_id=match_id, place=place))
        for name in (f"coder-{9 - number}", "coder-99")[: number % 3]:
            session.add(Coder(coding_id=coding.id, name=name))


def step(session: Session, owner: str, number: int, place: int, **said: Any) -> None:
    values = {"iteration": place} if place else {}
    row = RecipeStep(key=f"step-{place}", place=place, values=values, spec={}, begun_at=NOW, **{owner: number}, **said)
    session.add(row)


def test_a_column_is_sorted_by_what_it_shows(filled: Engine) -> None:
    with writing(filled) as session:
        make_different(session)
    by_kind = (
        ("round", "score"), ("campaign", "score"), ("publication", "done"), ("recipe", "done"), ("benchmark", "tasks"),
        ("society", "observers"),
    )  # fmt: skip
    others = (
        (DATASETS, "kept"), (MODELS, "games"), (CODINGS, "matches"), (CODINGS, "coders"), (TOKENS, "state"),
        (PROMPTS, "prompt"), (PROMPTS, "created_at"),
    )  # fmt: skip
    for listing, name in (*((list_of(find_kind(kind)), name) for kind, name in by_kind), *others):
        column = listing.column(name, "sort")
        for order in (name, f"-{name}"):
            with reading(filled) as session:
                lines = listing.lines(session, [column], listing.order(order))
                shown = [line[name] for line in lines if line[name] not in (None, [])]
                whole = [row.id for row in listing.read(session, listing.order(order)).rows]
            assert shown == sorted(shown, reverse=order != name), (listing.name, order)
            assert [number for page in pages_of(filled, listing, order) for number in page] == whole
            assert len({*map(str, shown)}) > 1, (listing.name, name)


def test_datasets_are_sorted_by_the_name_of_their_origin_and_tokens_by_their_scopes(filled: Engine) -> None:
    with writing(filled) as session:
        make_different(session)
    with reading(filled) as session:
        origins = [next(iter(line["origin"])) for line in lines_of(session, DATASETS, "origin")]
        assert [origins[0], *origins[2:]] == ["the best responses of apples@1", "society 1", "the file zebra.jsonl"]
        assert "round" in origins[1]
        scopes = [line["scopes"] for line in lines_of(session, TOKENS, "-scopes")]
    assert scopes == [[READ]] * 3 + [[READ, RUN]] * 2


def lines_of(session: Session, listing: Listing[Any], name: str) -> list[Mapping[str, Any]]:
    """The lines of a list in that order, with that column alone."""
    order = listing.order(name)
    assert order.column is not None
    return [*listing.lines(session, [order.column], order)]


def test_what_has_no_value_comes_last_in_both_directions(filled: Engine) -> None:
    [listing] = [list_of(kind) for kind in JOB_KINDS if kind.name == "training"]
    with reading(filled) as session:
        for sort, steps in (("done", [1, 3]), ("-done", [3, 1])):
            found = [
                session.get_one(TrainingJob, row.id).step for row in listing.read(session, listing.order(sort)).rows
            ]
            assert [step for step in found if step is not None] == found[: len(steps)] == steps


def test_a_heading_sorts_and_leads_through_all_pages(
    filled: Engine, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.web.admin.lists.PAGE", 2)
    page = client.get("/admin/rounds?game=negotiation").text
    address = html.unescape(re.findall(r'href="([^"]+sort=done[^"]*)"', page)[0])
    assert "game=negotiation" in address
    found = [number for page in leafed_through(client, address) for number in numbers_in(page)]
    with reading(filled) as session:
        assert len(found) == len(set(found)) == session.query(RoundRow).count()
    sorted_page = client.get(address).text
    assert 'aria-sort="ascending"' in sorted_page
    assert re.search(r'href="[^"]+sort=-done', sorted_page)


@pytest.mark.parametrize(
    "query", ["sort=colour", "sort=tags", "sort=done&before=x", "sort=done&before=1~y", "format=pdf"]
)
def test_an_order_that_cannot_be_is_refused_with_a_line(client: FlaskClient, query: str) -> None:
    answer = client.get(f"/admin/rounds?{query}")
    assert (answer.status_code, 'role="alert"' in answer.text) == (400, True)


def test_chosen_columns_are_kept_for_whoever_chose_them(filled: Engine, app: Flask, client: FlaskClient) -> None:
    chosen = {"column": ["name", "seed", "requested_by"], "back": "/admin/rounds?sort=done"}
    answer = client.post("/admin/lists/rounds/columns", data=chosen)
    assert (answer.status_code, answer.location) == (303, "/admin/rounds?sort=done")
    for browser in (client, signed_in(app)):  # the same experimenter elsewhere
        heads = re.findall(
            r'<th scope="col" role="columnheader"[^>]*>(?:<a[^>]*>)?([^<]+)', browser.get("/admin/rounds").text
        )
        assert heads == ["Round", "Seed", "Requested by"]
    assert "Seed</a></th>" not in client.get("/admin/rehearsals").text
    assert client.post("/admin/lists/rounds/columns", data={"back": "//elsewhere"}).location == "/admin/rounds"
    assert "Finished matches" in client.get("/admin/rounds").text
    assert client.post("/admin/lists/rounds/columns", data={"column": "colour"}).status_code == 400
    assert client.post("/admin/lists/nothing/columns").status_code == 404


def test_page_command_and_files_have_the_same_lines(filled: Engine, app: Flask, client: FlaskClient) -> None:
    for kind in JOB_KINDS:
        listing = list_of(kind)
        path = {"trainings": "jobs"}.get(kind.plural, kind.plural)
        number = listing.columns[1].name
        told = client.get(f"/admin/{path}?format=json&sort=-{number}")
        lines = json.loads(told.text)
        assert f'filename="{listing.name}.json"' in told.headers["Content-Disposition"]
        assert [*lines[0]] == [column.name for column in listing.columns]
        assert [line[number] for line in lines] == numbers_in(client.get(f"/admin/{path}").text)
        table = [*csv.DictReader(io.StringIO(client.get(f"/admin/{path}?format=csv&sort=-{number}").text))]
        assert [int(row[number]) for row in table] == [line[number] for line in lines]

        def flask(*line: str, name: str = kind.name) -> str:
            return app.test_cli_runner().invoke(args=[name, "list", *line]).stdout

        assert flask("--csv", "--sort", f"-{number}") == client.get(f"/admin/{path}?format=csv&sort=-{number}").text
        assert json.loads(flask("--json", "--columns", f"{number},status", "--sort", number, "--limit", "2")) == [
            {number: line[number], "status": line["status"]} for line in lines[::-1][:2]
        ]
        assert flask("--columns", "status").splitlines()[0] == "STATUS"


def test_a_wrong_column_of_a_command_names_the_right_ones(app: Flask) -> None:
    for option in ("--columns", "--sort"):
        refused = app.test_cli_runner().invoke(args=["round", "list", option, "colour"])
        assert (refused.exit_code, "expected name or round_id or status" in refused.stderr) == (2, True)


def test_the_reason_of_a_failure_is_on_the_page_and_in_the_command_of_every_kind(
    filled: Engine, app: Flask, client: FlaskClient
) -> None:
    for kind in JOB_KINDS:
        reason = f"the {kind.name} met <no> answer"
        with writing(filled) as session:
            fail(kind.get(session, 1), reason)
        with app.test_request_context():
            address = job_address(kind, 1)
        assert html.escape(reason) in client.get(address).text, kind.name
        shown = [app.test_cli_runner().invoke(args=[kind.name, "show", "1", *more]) for more in ([], ["--json"])]
        assert re.search(rf"^error +{reason}$", shown[0].stdout, re.MULTILINE), shown[0].output
        assert json.loads(shown[1].stdout)["error"] == reason


def test_a_running_job_keeps_its_list_fresh(filled: Engine, client: FlaskClient) -> None:
    assert "data-fresh" in client.get("/admin/jobs").text
    with writing(filled) as session:
        for row in session.query(TrainingJob):
            row.status = states.DONE
    assert "data-fresh" not in client.get("/admin/jobs").text


def test_jobs_of_every_kind_that_run_are_on_the_overview(filled: Engine, app: Flask, client: FlaskClient) -> None:
    with writing(filled) as session:
        for kind in JOB_KINDS:
            kind.get(session, 1).status = states.RUNNING
    page = client.get("/admin/")
    assert page.status_code == 200
    for kind in JOB_KINDS:
        with app.test_request_context():
            assert f'href="{job_address(kind, 1)}"' in page.text, kind.name


# Of lists that need one: a study, or a wave of it.
OF_WHAT = {"study versions": "two-models", "study people": "two-models:second"}


def add_test_notice(session: Session) -> None:
    user = session.scalars(select(User)).first()
    assert user is not None
    set_notices(user, "ada@example.org", ["jobs"])
    add_test(session, user, load_settings({"SMTP_HOST": "127.0.0.1"}))


def test_columns_of_printed_lists_never_touch(app: Flask) -> None:
    house = House(app)
    app.config["WTF_CSRF_ENABLED"] = False
    assert Program(app, RUN).post(f"/rounds/{house.round}/cancel").status_code == 200
    assert app.test_client().post("/s/me/P1/report", data={"reason": "stuck", "then": "leave"}).status_code == 303
    with writing() as session:
        add_test_notice(session)
        codings.create_coding(session, "Offers", "asks", "ann")
        add_prompt(session, "polite", "Be polite.", "ann")
    removed = app.test_cli_runner().invoke(args=["storage", "clean", f"round:{house.round}"], catch_exceptions=False)
    assert removed.exit_code == 0
    listed = json.loads(COMMANDS.read_text(encoding="utf-8"))
    commands = [(name, each) for name, said in listed.items() if name != "db" for each in said.get("commands", ())]
    lists = [" ".join(words) for words in commands if any(each.name == "columns" for each in load_below(*words).params)]
    assert {"round list", "model list", "study people", "study reports"} <= {*lists}
    for command in lists:
        printed = app.test_cli_runner().invoke(args=f"{command} {OF_WHAT.get(command, '')}".split())
        assert printed.exit_code == 0, (command, printed.exception)
        heads, *lines = printed.stdout.splitlines()
        assert lines, command
        across = zip_longest(heads, *lines, fillvalue=" ")
        columns = re.split(" {2,}", "".join("x" if set(each) != {" "} else " " for each in across))
        assert len(columns) >= len(heads.split()), printed.stdout


@needs_r
def test_r_reads_the_file_of_every_list(filled: Engine, tmp_path: Path) -> None:
    for number, table in enumerate(each for each in all_tables().values() if each.listing is not None):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert table.listing is not None
        with reading(filled) as session:
            lines = list(table.listing.lines(session, table.listing.columns, table.listing.order("")))
        (folder / table.file).write_bytes(b"".join(to_csv(table.columns, lines)))
        [(rows, frame)] = run_lines(folder, table.lines("r")).values()
        check_frame(folder / table.file, table.columns, rows, frame)
        assert rows == len(lines)
        assert f'import delimited using "{table.file}"' in table.lines("stata")
