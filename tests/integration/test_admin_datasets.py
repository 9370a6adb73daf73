"""The admin pages of datasets: made from a round, looked at, led back to matches, and taken home."""

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, event, func, select

from app.analysis.themes import LIGHT, palette
from app.core.extensions import reading
from app.models import Dataset, RoundRow
from app.web.admin import datasets, datasets_new
from tests.datasets import cut, matches_of, rows_of, said, seat_of
from tests.experimenter import leafed_through, signed_in
from tests.rounds import make_round, play


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.fixture
def played(app: Flask, engine: Engine) -> Callable[..., int]:
    """Makes a round and plays it; gives its number."""

    def make(**wish: Any) -> int:
        number = make_round(engine, "scripted", **wish)
        play(engine, app.config["SETTINGS"], number)
        return number

    return make


def form(**fields: str) -> dict[str, str]:
    """The form as a browser sends it when nothing was changed."""
    return {"rounds": "", "game": "", "filter": "", "speakers": "both", "style": "full", **fields}


def counted() -> int:
    with reading() as session:
        return session.scalar(select(func.count()).select_from(Dataset)) or 0


def test_an_empty_list_leads_to_the_first_dataset(client: FlaskClient) -> None:
    page = client.get("/admin/datasets").text
    assert "There are none yet." in page
    assert 'href="/admin/datasets/new"' in page


def test_a_dataset_is_made_from_a_rounds_page(
    client: FlaskClient, engine: Engine, home: Path, played: Callable[..., int]
) -> None:
    number = played(matches=20)
    assert f'href="/admin/datasets/new?round={number}"' in client.get(f"/admin/rounds/{number}").text
    page = client.get(f"/admin/datasets/new?round={number}").text
    assert re.search(rf'name="rounds" type="text" value="{number}"', page)
    many = client.get("/admin/datasets/new?round=3&round=4&rewards=spag").text
    assert re.search('name="rounds" type="text" value="3, 4"', many)
    assert '<option value="spag" selected>' in many
    assert '<input type="checkbox" name="role_weights" value="1" checked>' in many
    answer = client.post("/admin/datasets/new", data=form(rounds=str(number)))
    assert (answer.status_code, answer.location) == (303, "/admin/datasets/1")
    shown = client.get("/admin/datasets/1").text
    with reading(engine) as session:
        row = session.get_one(Dataset, 1)
        assert (row.name, row.version, row.spec["filter"]) == (f"round {number} above_avg", 1, "above_avg")
        name = session.get_one(RoundRow, number).name
    called = f'<a href="/admin/rounds/{number}">{name}</a> <span class="soft small nowrap">round {number}</span>'
    for path in ("/admin/datasets", "/admin/datasets/1", "/admin/matches?source=selfplay"):
        assert called in client.get(path).text
    assert f"of {name}</a>" in client.get("/admin/datasets/1/rows").text
    [listed] = json.loads(client.get("/admin/datasets?format=json").text)
    assert listed["origin"] == [f"round {number}"]  # programs know it by its number
    assert row.sha256 in shown
    assert f'<dd class="figure">{row.rows}</dd>' in shown
    assert f'href="/admin/rounds/{number}"' in shown
    assert client.get("/admin/datasets").text.count(row.name) == 1
    assert 'name="filter" value="" checked' in page  # the same as on the command line: with rewards, all transcripts
    rewarded = client.post("/admin/datasets/new", data=form(rounds=str(number), rewards="spag"))
    with reading(engine) as session:
        assert session.get_one(Dataset, int(rewarded.location.rpartition("/")[2])).spec["filter"] == "all"
    downloaded = client.get("/admin/datasets/1.jsonl")
    assert downloaded.data == (home / "datasets" / f"{row.sha256}.jsonl").read_bytes()
    assert downloaded.headers["Content-Disposition"] == f'attachment; filename="dataset-1-{row.sha256[:12]}.jsonl"'


def test_a_dataset_is_made_of_the_matches_that_the_list_shows(
    client: FlaskClient, engine: Engine, home: Path, played: Callable[..., int]
) -> None:
    number = played(matches=20)
    given = "player=scripted&reason=deal&source=selfplay"
    listed = client.get(f"/admin/matches?{given}").text
    address = re.search(r'href="(/admin/datasets/new\?[^"]+)">Make a dataset</a>', listed)
    assert address
    assert ">Make a dataset of those outside rounds</a>" in client.get("/admin/matches?player=scripted").text
    page = client.get(html.unescape(address[1])).text
    assert all(f'<option value="{each}" selected>' in page for each in ("scripted", "deal", "selfplay"))
    assert "<details open>" in page
    assert "<details open>" not in client.get(f"/admin/datasets/new?round={number}").text
    chosen = {"player": "scripted", "reason": "deal", "source": "selfplay"}
    assert client.post("/admin/datasets/new", data=form(filter="all", **chosen)).status_code == 303
    with reading(engine) as session:
        row = session.get_one(Dataset, 1)
    deals = {match for match, each in matches_of(engine, number).items() if each.reason == "deal"}
    assert {seat_of(each)[0] for each in rows_of(home, row)} == deals
    assert row.spec["matches"] == {"player": "scripted", "source": "selfplay"}
    shown = client.get("/admin/datasets/1").text
    assert "<dt>Player</dt><dd>scripted</dd>" in shown
    refused = client.post("/admin/datasets/new", data=form(source="selfplay", campaign="9"))
    assert (refused.status_code, 'id="campaign"' in refused.text) == (404, True)
    assert re.search(r'id="campaign"[^>]* aria-invalid="true"', refused.text)
    assert "<details open>" in refused.text


def test_a_rounds_page_reads_no_more_for_many_datasets_and_long_material_than_it_shows(
    client: FlaskClient, engine: Engine, home: Path, played: Callable[..., int]
) -> None:
    first, second = played(matches=4), played(matches=4)
    cut(engine, home, "of the first", rounds=[first], filter="all")

    asked: list[str] = []

    def read(page: str) -> str:
        asked.clear()
        event.listen(engine, "before_cursor_execute", note)
        try:
            return client.get(page).text
        finally:
            event.remove(engine, "before_cursor_execute", note)

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        asked.append(statement)

    page = f"/admin/rounds/{first}?tab=settings"
    assert "5 from a test" in read(page)
    few = len(asked)
    for name in ("of both", "of the second"):
        cut(engine, home, name, rounds=[first, second][name == "of the second" :], filter="all")
    shown = read(page)
    assert ["of the first" in shown, "of both" in shown, "of the second" in shown] == [True, True, False]
    assert len(asked) == few
    assert [statement for statement in asked if "dataset.figures" in statement] == []
    assert [statement for statement in asked if "round_material.items AS" in statement] == []
    assert read("/admin/datasets").count('id="line-') == 3
    assert len([statement for statement in asked if "FROM dataset" in statement]) == 2  # one for what all are cut from
    read(f"/admin/rounds/{first}")
    assert [each for each in asked if re.search("(FROM|JOIN) (dataset|round_material)", each)] == []


def test_sample_rows_are_shown_as_conversations_with_the_kept_moves_marked(
    client: FlaskClient, engine: Engine, home: Path, played: Callable[..., int]
) -> None:
    number = played(matches=30)
    dataset = cut(engine, home, rounds=[number], filter="all")
    page = client.get(f"/admin/datasets/{dataset.id}").text
    assert page.count("<details") == datasets.SAMPLES + 3  # numbers of charts, and tags
    own = re.findall(r'<li class="own">.*?<pre[^>]*>(.*?)</pre>', page, re.DOTALL)
    rows = {row["group"]: row for row in rows_of(home, dataset)}
    matches = re.findall(r'class="press" href="/admin/matches/([\w-]+)"', page)
    assert set(matches) <= set(matches_of(engine, number))
    assert len(matches) == datasets.SAMPLES
    first = next(iter(rows.values()))
    assert own[: len(said(first))] == [text.replace("&", "&amp;").replace("'", "&#39;") for text in said(first)]


def test_numbers_have_the_signs_of_the_pages_language(
    client: FlaskClient, engine: Engine, home: Path, played: Callable[..., int]
) -> None:
    dataset = cut(engine, home, rounds=[played(matches=20)], rewards="spag", decay="0.5")
    page = client.get(f"/admin/datasets/{dataset.id}", headers={"Accept-Language": "de"}).text
    assert re.search(r"Belohnung −?0,\d", page)
    assert re.search(r"mittlere Belohnung −?[\d,]+, Gewicht [\d,]+</dd>", page)
    assert "γ = 0,5" in page
    assert re.search(r"<dd>\d+,\d kB</dd>", page)


def test_every_row_leads_to_its_match(
    client: FlaskClient, engine: Engine, home: Path, played: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "PAGE", 7)
    dataset = cut(engine, home, rounds=[played(matches=9)], filter="all")
    found = []
    for page in leafed_through(client, f"/admin/datasets/{dataset.id}/rows"):
        found += re.findall(r'href="/admin/matches/([\w-]+)".*?<td>(first|second) seat', page)
    assert [(match, int(seat == "second")) for match, seat in found] == [seat_of(row) for row in rows_of(home, dataset)]
    assert client.get(f"/admin/datasets/{dataset.id}/rows?from=18").status_code == 400


def test_charts_say_how_many_seats_were_kept(engine: Engine, home: Path, played: Callable[..., int]) -> None:
    dataset = cut(engine, home, rounds=[played(matches=20)])
    scores, lengths = datasets.charts_of(dataset)
    assert scores.described.sentence.startswith(
        f"Scores of all seats: {dataset.rows} of 40 were kept for mine, version 1."
    )
    assert sum(int(row[-1]) for row in scores.described.rows) == 40
    assert sum(int(row[-1]) for row in scores.described.rows if "kept" in row) == dataset.rows
    assert sum(int(row[-1]) for row in lengths.described.rows) == dataset.rows


def test_what_was_kept_has_the_same_colour_whatever_else_there_is(
    engine: Engine, home: Path, played: Callable[..., int]
) -> None:
    number = played(matches=20)
    colours = palette(LIGHT)
    some, lengths = (chart.spec() for chart in datasets.charts_of(cut(engine, home, rounds=[number])))
    scale = some["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == {
        "kept": colours.second,
        "left out": colours.strong,
    }
    every, _ = (chart.spec() for chart in datasets.charts_of(cut(engine, home, rounds=[number], filter="all")))
    assert every["encoding"]["color"] == {"value": colours.second}
    assert lengths["config"]["bar"]["color"] == colours.second


def test_a_round_and_a_match_lead_to_the_datasets_they_are_in(
    client: FlaskClient, engine: Engine, home: Path, played: Callable[..., int]
) -> None:
    number = played(matches=5)
    match = next(iter(matches_of(engine, number)))
    pages = (f"/admin/rounds/{number}?tab=settings", f"/admin/matches/{match}")
    for page in pages:
        assert 'href="/admin/datasets/1"' not in client.get(page).text
    cut(engine, home, rounds=[number], filter="all")
    for page in pages:
        assert 'href="/admin/datasets/1"' in client.get(page).text


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({}, 400, "Rounds: expected the number of a round or a campaign, or a game"),
        ({"rounds": "1, 77"}, 404, "Rounds: expected the number of one that exists, got 77"),
        ({"rounds": "one"}, 400, "Rounds: expected a whole number"),
        (
            {"rounds": "1", "filter": "best"},
            400,
            "Filter: expected above_avg or above_avg_nonzero or nonzero or all, got &#39;best&#39;",
        ),
        ({"rounds": "1", "models": "nobody"}, 404, "Models: expected one of scripted"),
        ({"rounds": "1", "since": "2026-02-01", "until": "2026-01-01"}, 400, "Until: expected 2026-02-01 or later"),
        ({"rounds": "1", "name": "x" * 81}, 400, "Name: expected 1 to 80 characters"),
        (
            {"rounds": "1", "speakers": "people"},
            400,
            "speakers people: expected to keep at least one transcript, got none",
        ),
        ({"game": "taboo"}, 400, "the matches of taboo outside rounds: expected matches that are over, got none"),
    ],
)
def test_what_cannot_be_made_is_said_on_the_form_as_it_was_filled_in(
    client: FlaskClient, played: Callable[..., int], fields: dict[str, str], status: int, says: str
) -> None:
    played(matches=4)
    answer = client.post("/admin/datasets/new", data=form(**fields))
    assert (answer.status_code, says in answer.text) == (status, True)
    for value in fields.values():
        assert f'"{value}"' in answer.text or value in ("best", "nobody")  # which are not among what can be ticked
    assert counted() == 0


def test_a_dataset_like_an_earlier_one_is_filled_in(
    client: FlaskClient, engine: Engine, home: Path, played: Callable[..., int]
) -> None:
    numbers = [played(matches=20), played(matches=20)]
    fields = {"rounds": ", ".join(map(str, numbers)), "player": "scripted", "wordings": "2", "seed": "7"}
    rewarded = {"rewards": "spag", "decay": "0.5", "positive_only": "1", "name": "mine"}
    first = client.post("/admin/datasets/new", data=form(**fields, **rewarded)).location
    assert 'href="/admin/datasets/new?like=1"' in client.get(first).text
    page = client.get("/admin/datasets/new?like=1").text
    assert 'Filled in as it was for <a href="/admin/datasets/1">mine</a>.' in page
    for name, value in {**fields, "decay": "0.5"}.items():
        shown = rf'id="{name}"[^>]*value="{value}"|name="{name}"[^>]*><[^/]*.*?<option value="{value}" selected'
        assert re.search(shown, page), name
    assert re.search('name="role_weights" value="1">', page)
    assert re.search('name="positive_only" value="1" checked>', page)
    assert re.search('name="filter" value="all" checked', page)
    again = client.post("/admin/datasets/new", data=form(**fields, **rewarded, filter="all", like="1")).location
    with reading(engine) as session:
        assert session.get_one(Dataset, 1).sha256 == session.get_one(Dataset, int(again.rpartition("/")[2])).sha256
    cut(engine, home, "by a campaign", rounds=numbers, models=["scripted"])
    assert "like=" not in client.get("/admin/datasets/3").text
    assert client.get("/admin/datasets/new?like=3").status_code == 409
    assert client.get("/admin/datasets/new?like=9").status_code == 404


def test_a_dataset_too_large_to_wait_for_is_left_to_the_command_line(
    client: FlaskClient, played: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets_new, "MOST", 3)
    number = played(matches=4)
    answer = client.post("/admin/datasets/new", data=form(rounds=str(number)))
    assert answer.status_code == 400
    assert f"<code>flask dataset build --round {number} --style full</code> has no such limit" in answer.text
    rewarded = {"rewards": "spag", "decay": "0.5", "positive_only": "1", "name": "a b"}
    answer = client.post("/admin/datasets/new", data=form(rounds=str(number), style="", **rewarded))
    told = "--rewards spag --decay 0.5 --no-role-weights --positive-only --name &#39;a b&#39;"
    assert f"<code>flask dataset build --round {number} {told}</code> has no such limit" in answer.text
    assert counted() == 0


def test_a_dataset_whose_file_is_gone_says_so(
    client: FlaskClient, engine: Engine, home: Path, played: Callable[..., int]
) -> None:
    dataset = cut(engine, home, rounds=[played(matches=4)], filter="all")
    (home / "datasets" / f"{dataset.sha256}.jsonl").unlink()
    page = client.get(f"/admin/datasets/{dataset.id}")
    assert page.status_code == 200
    assert "expected its file" in page.text
    assert client.get(f"/admin/datasets/{dataset.id}.jsonl").status_code == 404
    assert client.get("/admin/datasets/99").status_code == 404


def test_texts_of_rows_cannot_break_out_of_the_page(
    client: FlaskClient, engine: Engine, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "episodes.json"
    history = [{"role": "attacker", "content": "</pre><script>alert(1)</script>"}] * 1
    file.write_text(json.dumps([{"history": history, "target_word": "cat", "max_turns": 5}]))
    app = client.application
    assert app.test_cli_runner().invoke(args=["import", "spag", str(file)]).exit_code == 0
    dataset = cut(engine, home, rounds=[1], filter="all")
    page = client.get(f"/admin/datasets/{dataset.id}").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
