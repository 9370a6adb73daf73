"""The codebook as page and command, and that R reads what else is written as CSV by the lines that it prints."""

from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine

from app.codebook import all_tables
from app.web.admin.lists import _PAGES
from tests.experimenter import signed_in
from tests.integration.test_codings import coded, finish, give
from tests.integration.test_export import add_call, begin
from tests.integration.test_search import talk
from tests.r_programs import check_frame, needs_r, run_lines
from tests.rounds import make_round, play
from tests.shell import Finished

Run = Callable[..., Finished]


def test_the_page_shows_the_columns_of_a_table_and_what_the_command_prints(app: Flask, flask: Run) -> None:
    client = signed_in(app)
    for name in ("moves", "list of rounds"):
        page = client.get("/admin/codebook", query_string={"table": name})
        assert page.status_code == 200
        for program in ("r", "stata"):
            printed = flask("export", "codebook", "--lines", program, "--table", name).stdout
            assert printed == all_tables()[name].lines(program)
            assert printed.replace('"', "&#34;").replace("'", "&#39;").replace("<", "&lt;") in page.text
    assert "Who sat in that seat." in client.get("/admin/codebook?table=moves").text
    assert "Columns, and code for R and Stata" in client.get("/admin/matches").text


@pytest.mark.usefixtures("app")
def test_every_list_of_a_page_is_in_the_codebook() -> None:
    listed = {table.listing.name for table in all_tables().values() if table.listing is not None}
    assert {page.listing.name for page in _PAGES.values()} <= listed


def test_without_a_table_the_lines_of_all_are_printed(flask: Run, tmp_path: Path) -> None:
    written = flask("export", "codebook", "--lines", "stata", "--out", str(tmp_path / "read.do"))
    assert (written.exit_code, written.stdout) == (0, "")
    text = (tmp_path / "read.do").read_text(encoding="utf-8")
    assert text.count("import delimited using") == len(all_tables())
    rows = flask("export", "codebook", "--table", "moves", "--table", "spend").stdout.splitlines()[1:]
    assert {row.partition(",")[0] for row in rows} == {"moves", "spend"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--table", "nothing"], "table: expected matches or moves"),
        (["--lines", "spss"], "spss"),
        (["--lines", "r", "--guard"], "--lines: expected it without --guard"),
    ],
)
def test_what_the_codebook_does_not_have_is_refused_in_one_line(
    app: Flask, flask: Run, arguments: list[str], said: str
) -> None:
    refused = flask("export", "codebook", *arguments)
    assert (refused.exit_code, refused.stderr.count("\n"), refused.stdout) == (2, 1, "")
    assert said in refused.stderr
    assert signed_in(app).get("/admin/codebook?table=nothing").status_code == 404


@pytest.mark.parametrize("name", [*all_tables()])
def test_stata_converts_each_column_once_and_labels_it(name: str) -> None:
    table = all_tables()[name]
    lines = table.lines("stata")
    loops = [line.split("{")[0].split() for line in lines.replace(" ///\n", " ").splitlines() if "foreach" in line]
    converted = [column for loop in loops for column in loop[3:]]
    kept = {column.name for column in table.columns if column.type in ("text", "json") and not column.levels}
    assert sorted(converted) == sorted(column.name for column in table.columns if column.name not in kept)
    assert all(f'label variable {column.name} "' in lines for column in table.columns)
    assert all(len(line) <= 140 for line in lines.splitlines())


@needs_r
def test_r_reads_figures_codings_spending_and_the_codebook_itself(
    app: Flask, engine: Engine, flask: Run, tmp_path: Path
) -> None:
    number = make_round(engine, "scripted", matches=12)
    play(engine, app.config["SETTINGS"], number)
    match_id = talk(engine, "[message] all for me", "[message] no")
    add_call(engine, begin(engine, against="scripted").id)
    coding = coded(engine, match_id)
    give(engine, coding, "admin", (match_id, 1, 1), (match_id, 0, 2))
    finish(engine, coding, "admin")
    commands = {
        "analysis": ("analyze", "--round", str(number), "--csv"),
        "leaderboard": ("model", "leaderboard", "--csv"),
        "codings": ("export", "codings", "Offers"),
        "codebook": ("export", "codebook", "--bom"),
    }
    done = {name: flask(*command) for name, command in commands.items()}
    assert all(each.exit_code == 0 for each in done.values()), done
    written = {name: each.stdout_bytes for name, each in done.items()}
    written["spend"] = signed_in(app).get("/admin/spend?format=csv&period=all").data
    for name, content in written.items():
        (tmp_path / f"{name}.csv").write_bytes(content)
    frames = run_lines(tmp_path, "\n".join(all_tables()[name].lines("r") for name in written))
    for name in written:
        rows, frame = frames[name]
        assert rows > 0, name
        columns = [column for column in all_tables()[name].columns if column.name in frame]
        check_frame(tmp_path / f"{name}.csv", columns, rows, frame)
    assert frames["spend"][1]["day"][0] == "Date"
