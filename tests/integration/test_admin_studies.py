"""The admin pages of studies: examples tried out, studies loaded, waves opened, watched, closed, paid and frozen."""

import html
import io
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, event, select
from sqlalchemy.orm import Session

from app.core.config import ROOT
from app.core.extensions import reading, writing
from app.models import Enrolment, GenerationRow, Payment, StudyEvent, StudyVersion, Submission, Wave
from app.registry import add_api_model, add_scripted_model
from app.studies import store, waves
from app.studies.endings import EndingName
from app.studies.monitor import funnel
from app.studies.participant_steps import steps
from app.studies.payments import record_owed
from app.studies.previews import preview_token
from app.studies.progress import advance, find_progress, log_event
from app.studies.reports import REPORT
from app.web.admin import study_uploads
from tests.enrolments import break_off, enrol, finish, load_example, open_wave, play
from tests.experimenter import signed_in
from tests.waves import changed, loaded_study

SHIPPED = ROOT / "data" / "studies"


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.fixture
def version(engine: Engine, tmp_path: Path) -> int:
    """A loaded example."""
    with writing(engine) as session:
        return load_example(session, tmp_path).id


@pytest.fixture
def wave(engine: Engine, version: int) -> int:
    """A wave at Prolific that nobody has entered."""
    with writing(engine) as session:
        return wave_of(session, version).id


def wave_of(session: Session, version: int, name: str = "main") -> Wave:
    row = open_wave(session, session.get_one(StudyVersion, version), name=name)
    row.settings = {**row.settings, "of": "two-models", "provider": {"prolific": {"study_id": "66f0c1"}},
                    "codes": {"completed": "C7RX94LM"}}  # fmt: skip
    return row


def words(page: str) -> str:
    """What stands on a page, in one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def come(engine: Engine, wave_id: int, code: str, done: int = 0, ending: EndingName | None = None) -> int:
    """A person who went on so many steps, and then ended."""
    with writing(engine) as session:
        row = session.get_one(Wave, wave_id)
        progress = enrol(session, row, code, session.get_one(StudyVersion, row.study_version_id))
        for _ in range(done):
            advance(session, progress, progress.step.key)
        if ending is not None:
            finish(session, progress, ending)
            session.flush()
            record_owed(session, progress)
        return progress.enrolment.id


# ---- Studies -----------------------------------------------------------------------


def test_pages_say_that_matches_go_beyond_a_budget_that_is_used_up(make_app: Callable[..., Flask]) -> None:
    app = make_app(SPENDING_LIMIT_USD=0.5)
    with app.app_context():
        client = signed_in(app)
        with writing() as session:
            options = {"model": "far", "base_url": "https://llm.example.org/v1", "price_in": 1, "price_out": 1}
            model = add_api_model(session, "far", None, ["negotiation"], options)
            add_scripted_model(session, "casual", None, {"manner": "casual"})
            loaded = {
                other: changed(loaded_study(), study=f"with-{other}", conditions={"model": {"a": other, "b": other}})
                for other in ("far", "casual")
            }
            versions = {other: store.load(session, each)[0] for other, each in loaded.items()}
            pages = {other: f"/admin/studies/{each.study_id}" for other, each in versions.items()}
            wave = f"/admin/studies/waves/{wave_of(session, versions['far'].id).id}"
            secret = app.config["SETTINGS"].secret_key
            previews = {other: f"/s/preview/{preview_token(secret, each.id)}" for other, each in versions.items()}
            session.add(
                GenerationRow(
                    attempt=0, language_model_id=model.id, model="far", prompt=[], text="", sampling={},
                    prompt_tokens=600_000, completion_tokens=0, latency=0.1, retries=0, at=datetime.now(UTC),
                )
            )  # fmt: skip
        note = "The budget for models is used up. $0.6000 of $0.5000 have been spent this month. "
        assert note + "Jobs stop at their next call" in words(client.get("/admin/").text)
        for page in (pages["far"], wave):
            assert note + "Matches of this study still start and continue" in words(client.get(page).text), page
        assert note not in words(client.get(pages["casual"]).text)
        refused = client.post(previews["far"])
        assert refused.status_code == 409
        for page in (refused, client.get(previews["far"])):
            assert "The budget for models is used up. Partners in this study cost money, so no preview of" in words(
                page.text
            )
        assert client.post(previews["casual"]).status_code == 303
    enough = make_app(SPENDING_LIMIT_USD=0.7)
    with enough.app_context():
        for page in ("/admin/", wave):
            assert note not in words(signed_in(enough).get(page).text)
        assert enough.test_client().post(previews["far"]).status_code == 303


def test_an_example_is_tried_with_one_press(make_app: Callable[..., Flask]) -> None:
    app = make_app(SMALL_MODELS=True)
    with app.app_context():
        client = signed_in(app)
        empty = client.get("/admin/studies").text
        assert "There are none yet." in empty
        assert empty.count("Try it") >= 2
        sent = client.post("/admin/studies", data={"example": "two-models"})
        assert sent.status_code == 303, words(sent.text)
        page = client.get(sent.location).text
        link = re.search(r'id="recruitment" type="text" value="([^"]+)"', page)
        assert link is not None
        assert link[1].endswith("/s/two-models/try")
        assert "of 10 places" in words(page)
        assert client.post("/admin/studies", data={"example": "two-models"}).location == sent.location
        listed = words(client.get("/admin/studies").text)
        assert "Sharing things two-models 1" in listed
        assert "try open 0 of 10 0 0" in listed


def test_an_example_that_is_none_is_refused(client: FlaskClient) -> None:
    sent = client.post("/admin/studies", data={"example": "../secrets"})
    assert sent.status_code == 400
    assert "expected two-models or taboo-roles" in words(sent.text)


def upload(client: FlaskClient, files: dict[str, bytes]) -> Any:
    return client.post(
        "/admin/studies/new", data={"files": [(io.BytesIO(content), name) for name, content in files.items()]}
    )


def scripted_files() -> dict[str, bytes]:
    """The files of an example, with scripted models alone."""
    files = {path.name: path.read_bytes() for path in (SHIPPED / "two-models").iterdir()}
    name = "two-models.yaml"
    return {**files, name: files[name].replace(b"b: tiny}", b"b: casual}")}


def packed(files: dict[str, bytes], folder: str = "") -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{folder}{name}", content)
    return whole.getvalue()


@pytest.mark.parametrize("how", ["files", "archive", "archive with a folder"])
def test_a_study_is_uploaded(client: FlaskClient, version: int, how: str) -> None:
    files = scripted_files()
    files["two-models.yaml"] = files["two-models.yaml"].replace(b"title: Sharing things", b"title: Sharing more")
    folder = "two-models/" if how.endswith("folder") else ""
    sent = upload(client, files if how == "files" else {"study.zip": packed(files, folder)})
    assert sent.status_code == 303, words(sent.text)
    page = words(client.get(sent.location).text)
    assert "Sharing more version 2" in page
    versions = page.partition("Versions of this study, the latest first")[2]
    assert 0 < versions.index("Version 2 Sharing more") < versions.index("Version 1 Sharing things")


def test_what_is_wrong_with_an_upload_is_said_with_its_line(client: FlaskClient) -> None:
    files = scripted_files()
    files["two-models.yaml"] = files["two-models.yaml"].replace(b"minutes: 25", b"minuts: 25")
    sent = upload(client, files)
    assert sent.status_code == 400
    assert "two-models.yaml:5: minuts: expected minutes, got minuts" in words(sent.text)
    assert "There are none yet." in client.get("/admin/studies").text


@pytest.mark.parametrize(
    ("files", "refusal"),
    [
        ({}, "expected the files of a study, got none"),
        ({"consent.md": b"# Purpose"}, "expected one .yaml file with the key study, got none"),
        (
            {"a.yaml": b"study: a", "b.yaml": b"study: b"},
            "expected one .yaml file with the key study, got a.yaml, b.yaml",
        ),
        ({"study.zip": b"no archive"}, "expected a zip archive"),
        ({"study.zip": packed({"../out.yaml": b"study: a"})}, "expected names of letters, digits, dots and hyphens"),
    ],
)
def test_files_that_are_no_study_are_refused(client: FlaskClient, files: dict[str, bytes], refusal: str) -> None:
    sent = upload(client, files)
    assert sent.status_code == 400
    assert refusal in words(sent.text)


def test_an_archive_that_unpacks_to_too_much_is_refused(client: FlaskClient) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.yaml", b"study: a\n" + b" " * study_uploads.MOST_BYTES)
    assert "at most 100 files of 5 MB together" in words(upload(client, {"study.zip": whole.getvalue()}).text)


def test_a_version_shows_arms_cost_and_previews(client: FlaskClient, engine: Engine, version: int) -> None:
    with reading(engine) as session:
        row = session.get_one(StudyVersion, version)
        study_id, sha256 = row.study_id, row.sha256
    page = client.get(f"/admin/studies/{study_id}?places=96&fee=0.333").text
    assert sha256 in page
    assert "coop then self, order 2 b, coop a, coop a, self b, self" in words(page)
    assert "96 places with the fee" in words(page)
    preview = re.search(r'href="(/s/preview/[^"]+)"', page)
    assert preview is not None
    refused = client.get(f"/admin/studies/{study_id}?places=none")
    assert refused.status_code == 400
    assert "expected a whole number" in words(refused.text)
    assert client.get("/admin/studies/999").status_code == 404


def test_the_files_of_a_version_load_again(client: FlaskClient, engine: Engine, version: int) -> None:
    with reading(engine) as session:
        study_id = session.get_one(StudyVersion, version).study_id
    whole = client.get(f"/admin/studies/{study_id}/files.zip").data
    assert whole == client.get(f"/admin/studies/{study_id}/files.zip").data
    sent = upload(client, {"again.zip": whole})
    assert sent.status_code == 303
    assert sent.location.endswith("?version=1")


@pytest.mark.parametrize("name", ["two-models", "taboo-roles"])
def test_all_texts_are_on_one_page(client: FlaskClient, engine: Engine, tmp_path: Path, name: str) -> None:
    with writing(engine) as session:
        loaded = load_example(session, tmp_path, name)
        study_id, design = loaded.study_id, store.design_of(loaded)
    page = words(client.get(f"/admin/studies/{study_id}/texts").text)
    assert "Purpose" in page
    assert "{" not in page
    assert design.quiz is not None
    for asked in (*(each.ask for each in design.quiz.questions), *(each.ask for each in design.survey.all)):
        assert asked in page
    for question in design.quiz.questions:
        assert all(other.ask in page for other in question.again)
    assert ("Instructions under “coop”" in page) == (name == "two-models")
    assert "What you are paid" in page
    assert "What you get when the study ends before its last page" in page
    assert "a trained model cannot forget what it has learned" in page
    assert "No person wrote to you: every partner was a computer program." in page
    assert "May your games and answers be used for research?" in page


def test_the_printed_consent_names_who_gets_what_people_write(
    client: FlaskClient, engine: Engine, tmp_path: Path
) -> None:
    with writing(engine) as session:
        add_api_model(session, "far", None, ["negotiation"], {"model": "far", "base_url": "https://llm.example.org/v1"})
        session.flush()
        loaded = changed(loaded_study(), conditions={"model": {"a": "scripted", "b": "far"}})
        study_id = store.load(session, loaded)[0].study_id
    page = words(client.get(f"/admin/studies/{study_id}/texts").text)
    assert "What you write is sent to llm.example.org" in page


# ---- The editor --------------------------------------------------------------------


def draft_of(page: str) -> dict[str, Any]:
    """The form of an editor as it was sent to a browser."""
    names = re.findall(r'<input type="hidden" name="name" value="([^"]+)">', page)
    texts = [html.unescape(text) for text in re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)]
    newest = re.findall(r'name="newest" value="(\d+)"', page)[0]
    return {"name": names, "text": texts, "newest": newest}


def edited(draft: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """A draft with another text in the file of the study, with lines as browsers send them."""
    text = draft["text"][0]
    assert old in text
    return {**draft, "text": [text.replace(old, new).replace("\n", "\r\n"), *draft["text"][1:]]}


def editor_of(client: FlaskClient, engine: Engine, version: int, **more: Any) -> dict[str, Any]:
    with reading(engine) as session:
        study_id = session.get_one(StudyVersion, version).study_id
    return draft_of(client.get(f"/admin/studies/{study_id}/edit", query_string=more).text)


def test_a_version_is_edited_and_saved_as_the_next_one(
    client: FlaskClient, engine: Engine, version: int, wave: int
) -> None:
    come(engine, wave, "P1")
    draft = editor_of(client, engine, version)
    unchanged = client.post("/admin/studies/editor", data={**draft, "action": "save"})
    assert unchanged.location.endswith("?version=1")  # the same texts, byte for byte
    changed = edited(draft, "title: Sharing things", "title: Sharing more")
    checked = client.post("/admin/studies/editor", data={**changed, "action": "check", "places": "40"})
    assert checked.status_code == 200
    page = words(checked.text)
    assert "1 person stays on the version that they began." in page
    assert "40 places with the fee" in page
    sent = client.post("/admin/studies/editor", data={**changed, "action": "save"})
    assert "Sharing more version 2" in words(client.get(sent.location).text)
    late = edited(draft, "title: Sharing things", "title: Sharing less")
    refused = client.post("/admin/studies/editor", data={**late, "action": "save"})
    assert refused.status_code == 409
    assert "expected a draft of the newest version, which is 2" in words(refused.text)
    assert draft_of(refused.text)["text"][0] == late["text"][0].replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("old", "new", "line", "fault"),
    [
        ("minutes: 25", "minuts: 25", "minutes: 25", "minuts: expected minutes, got minuts"),
        ("b: casual", "b: nobody", "  model:", "conditions.model: expected"),
        ("language: en", "title: again", "language: en", "expected"),
    ],
)
def test_what_is_wrong_with_a_draft_is_said_with_its_line_and_saves_nothing(
    client: FlaskClient, engine: Engine, version: int, old: str, new: str, line: str, fault: str
) -> None:
    draft = editor_of(client, engine, version)
    number = draft["text"][0].splitlines().index(next(each for each in draft["text"][0].splitlines() if line in each))
    for action, status in (("check", 200), ("save", 400)):
        refused = client.post("/admin/studies/editor", data={**edited(draft, old, new), "action": action})
        assert refused.status_code == status
        assert fault in words(refused.text)
        assert f'class="bad" data-line="{number + 1}"' in refused.text
    with reading(engine) as session:
        assert len(session.scalars(select(StudyVersion)).all()) == 1


def test_a_study_is_duplicated_and_an_example_begun_under_a_name_of_its_own(
    client: FlaskClient, engine: Engine, version: int
) -> None:
    for page in (
        editor_of(client, engine, version, copy=1),
        draft_of(client.get("/admin/studies/editor?example=two-models").text),
    ):
        assert page["name"][0] == "two-models-copy.yaml"
        assert "study: two-models-copy\n" in page["text"][0]
    draft = editor_of(client, engine, version, copy=1)
    sent = client.post("/admin/studies/editor", data={**draft, "action": "save"})
    assert "two-models-copy@1" in words(client.get(sent.location).text)
    assert editor_of(client, engine, version, copy=1)["name"][0] == "two-models-copy-2.yaml"


def test_a_draft_is_downloaded_as_files_that_load(client: FlaskClient, engine: Engine, version: int) -> None:
    draft = edited(editor_of(client, engine, version), "minutes: 25", "minutes: 30")
    whole = client.post("/admin/studies/editor", data={**draft, "action": "download"}).data
    sent = upload(client, {"study.zip": whole})
    assert sent.location.endswith("?version=2")


def test_a_file_with_a_name_that_leads_elsewhere_is_refused(client: FlaskClient, engine: Engine, version: int) -> None:
    draft = editor_of(client, engine, version)
    sent = client.post("/admin/studies/editor", data={**draft, "name": ["../../out.yaml"], "action": "check"})
    assert sent.status_code == 400
    assert "expected names of letters, digits, dots and hyphens" in words(sent.text)


# ---- Waves -------------------------------------------------------------------------


def wave_form(**fields: str) -> dict[str, str]:
    return {"wave": "main", "recruiter": "prolific", "recruiter_id": "66f0c1", "fee": "0.333", "places": "96",
            "pause_after": "10", "most_spent": "2200.00", "code_completed": "C7RX94LM",
            "not_if_took_part_in": "", **fields}  # fmt: skip


def test_a_wave_is_opened_from_a_form(client: FlaskClient, engine: Engine, version: int) -> None:
    with reading(engine) as session:
        study_id = session.get_one(StudyVersion, version).study_id
    assert 'name="most_spent"' in client.get(f"/admin/studies/{study_id}/waves/new").text
    sent = client.post(f"/admin/studies/{study_id}/waves/new", data=wave_form())
    assert sent.status_code == 303, words(sent.text)
    page = client.get(sent.location).text
    assert "/s/two-models/main?PROLIFIC_PID={{%PROLIFIC_PID%}}&amp;STUDY_ID" in page
    assert "technical without a code: nobody can submit it" in words(page)
    with reading(engine) as session:
        file = waves.settings_of(waves.find_wave(session, "two-models:main"))
    assert (file.places, file.start and file.start.first, file.codes) == (96, 10, {"completed": "C7RX94LM"})


@pytest.mark.parametrize(
    ("field", "value", "refusal"),
    [
        ("places", "many", "expected a whole number, got 'many'"),
        ("places", "0", "expected greater than or equal to 1, got '0'"),
        ("most_spent", "1.00", "expected at least"),
        ("most_spent", "a lot", "expected an amount such as 12.50, got 'a lot'"),
        ("wave", "Main Wave", "expected at most 40 small letters, digits and hyphens, got 'Main Wave'"),
        ("code_completed", "", "codes with one for completed, as prolific asks for it"),
        ("code_completed", "C7 RX", "Codes: expected text of at most 40 letters, digits and hyphens, got 'C7 RX'"),
        ("recruiter_id", "", "expected a value, got none"),
        ("recruiter_id", "https://app.prolific.com/x", "expected an id, not the address that it is in"),
        ("not_if_took_part_in", "nobody:knows", "expected existing studies and waves, got 'nobody:knows'"),
    ],
)
def test_a_wave_that_cannot_be_is_refused_at_its_field(
    client: FlaskClient, engine: Engine, version: int, field: str, value: str, refusal: str
) -> None:
    with reading(engine) as session:
        study_id = session.get_one(StudyVersion, version).study_id
    sent = client.post(f"/admin/studies/{study_id}/waves/new", data=wave_form(**{field: value}))
    assert sent.status_code == 400
    assert refusal in words(sent.text)
    assert re.search(rf'name="{field}"[^>]*aria-invalid="true"', sent.text)
    assert 'value="C7RX94LM"' in sent.text or field == "code_completed"
    with reading(engine) as session:
        assert session.scalars(select(Wave)).all() == []


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"code_completed": "CODE"}, "Codes: expected a value of your own, got codes.completed 'CODE'"),
        (
            {"recruiter_id": "STUDY_ID"},
            "Recruiter: expected a value of your own, got provider.prolific.study_id 'STUDY_ID'",
        ),
        (
            {"recruiter": "link", "recruiter_id": "id", "return_to": "https://uni.example.edu/credit?code={id}"},
            "Recruiter: expected a value of your own, got provider.link.return_to 'https://uni.example.edu'",
        ),
    ],
)
def test_a_wave_with_what_stands_for_something_of_ones_own_is_refused(
    client: FlaskClient, engine: Engine, version: int, fields: dict[str, str], refusal: str
) -> None:
    with reading(engine) as session:
        study_id = session.get_one(StudyVersion, version).study_id
    sent = client.post(f"/admin/studies/{study_id}/waves/new", data=wave_form(**fields))
    assert sent.status_code == 400
    assert refusal in words(sent.text)
    with reading(engine) as session:
        assert session.scalars(select(Wave)).all() == []


def test_a_study_that_is_not_filled_in_is_previewed_with_a_warning_and_opened_to_nobody(
    client: FlaskClient, engine: Engine, version: int
) -> None:
    assert upload(client, scripted_files()).status_code == 303
    with reading(engine) as session:
        study_id = session.get_one(StudyVersion, version).study_id
    page = client.get(f"/admin/studies/{study_id}").text
    assert "'Write your name here' is not your own, and no wave opens with it" in words(page)
    preview = re.search(r'href="(/s/preview/[^"]+)"', page)
    assert preview is not None
    assert client.get(preview[1]).status_code == 200
    sent = client.post(f"/admin/studies/{study_id}/waves/new", data=wave_form())
    assert sent.status_code == 400
    assert (
        "Study: expected a study in which everything is filled in, got contact.name 'Write your name here',"
        " contact.mail 'you@example.edu', privacy.controller 'Write your university here';"
    ) in words(sent.text)
    with reading(engine) as session:
        assert session.scalars(select(Wave)).all() == []


def test_the_funnel_counts_where_people_ended(client: FlaskClient, engine: Engine, wave: int) -> None:
    come(engine, wave, "P1")
    come(engine, wave, "P2", 0, "declined")
    come(engine, wave, "P3", 2, "quiz_failed")
    come(engine, wave, "P4", 4)
    come(engine, wave, "P5", 5, "withdrawn")
    with writing(engine) as session:
        row = session.get_one(Wave, wave)
        design = store.design_of(session.get_one(StudyVersion, row.study_version_id))
    come(engine, wave, "P6", len(steps(design)) - 1, "completed")
    page = words(client.get(f"/admin/studies/waves/{wave}").text)
    assert "Opened the link 6 4 1 1 1 declined" in page
    assert "Instructions and quiz 4 3 0 1 1 failed the quiz" in page
    assert "Together 6 1 completed 2 3" in page
    with reading(engine) as session:
        figures = funnel.wave_figures(session, session.get_one(Wave, wave), design)
    for count in figures.stages:
        assert count.reached == count.went_on + count.here + sum(count.ended.values())
    assert [count.reached for count in figures.stages] == sorted(
        (count.reached for count in figures.stages), reverse=True
    )


def test_a_base_is_held_against_the_least_pay_by_the_time_that_people_took(
    client: FlaskClient, engine: Engine, wave: int
) -> None:
    number = come(engine, wave, "P1", 5, "completed")
    with writing(engine) as session:
        row, person = session.get_one(Wave, wave), session.get_one(Enrolment, number)
        row.settings = {**row.settings, "provider": {"prolific": {"study_id": "66f0c1", "minimum_per_hour": 8.00}}}
        person.ended_at = person.enrolled_at + timedelta(minutes=25)  # 5.00 in 25 minutes are 12.00 an hour
    least = "less than 8.00 , the least of this wave"
    assert least not in words(client.get(f"/admin/studies/waves/{wave}").text)
    with writing(engine) as session:
        person = session.get_one(Enrolment, number)
        person.ended_at = person.enrolled_at + timedelta(minutes=50)
    page = words(client.get(f"/admin/studies/waves/{wave}").text)
    assert f"6.00 USD, by the median time {least}" in page


def test_people_are_filtered_and_leafed_through(
    client: FlaskClient, engine: Engine, wave: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.web.admin.lists.PAGE", 2)
    for number in range(3):
        come(engine, wave, f"Q{number}", 0, "declined" if number == 1 else None)
    first = client.get(f"/admin/studies/waves/{wave}").text
    assert re.findall(r">(Q\d)</a>", first) == ["Q2", "Q1"]
    older = html.unescape(re.findall(r'href="([^"]+)">Older', first)[0])
    assert re.findall(r">(Q\d)</a>", client.get(older).text) == ["Q0"]
    assert re.findall(r">(Q\d)</a>", client.get(f"/admin/studies/waves/{wave}?where=here").text) == ["Q2", "Q0"]
    assert re.findall(r">(Q\d)</a>", client.get(f"/admin/studies/waves/{wave}?person=q1").text) == ["Q1"]
    refused = client.get(f"/admin/studies/waves/{wave}?where=nowhere")
    assert refused.status_code == 400


def test_a_wave_is_paused_reopened_closed_and_frozen(client: FlaskClient, engine: Engine, wave: int) -> None:
    address = f"/admin/studies/waves/{wave}"
    for action, state in (("pause", "paused"), ("reopen", "open"), ("close", "closed"), ("freeze", "frozen")):
        assert client.post(address, data={"action": action}).status_code == 303
        assert f'">{state}</span>' in client.get(address).text
    again = client.post(address, data={"action": "reopen"})
    assert again.status_code == 409
    assert "expected a wave that is not frozen" in words(again.text)
    with reading(engine) as session:
        kinds = [(each.kind, each.body) for each in session.scalars(select(StudyEvent).order_by(StudyEvent.id))]
    assert [kind for kind, _ in kinds] == ["paused", "reopened", "closed", "frozen"]
    assert all(body["by"] for _, body in kinds)


def test_scores_and_models_are_hidden_until_the_wave_is_frozen(client: FlaskClient, engine: Engine, wave: int) -> None:
    number = come(engine, wave, "P1")
    with writing(engine) as session:
        progress = find_progress(session, number)
        play(session, progress, 0)
        finish(session, progress)
    address = f"/admin/studies/waves/{wave}"
    page = words(client.get(address).text)
    assert "Scores and models are hidden until this wave is frozen." in page
    assert "Download what came since the freeze" not in page
    assert "scripted" not in page
    assert "casual" not in page
    assert "hidden" in words(client.get(f"{address}/people/{number}").text)
    for action in ("close", "freeze"):
        assert client.post(address, data={"action": action}).status_code == 303
    frozen = words(client.get(address).text)
    assert "Model a scripted Model b casual" in frozen
    assert "Download what came since the freeze" in frozen
    assert re.search(r"order \d 1 0 0 2\.5 [\d.]+", frozen)


def test_reports_and_broken_matches_are_shown(client: FlaskClient, engine: Engine, wave: int) -> None:
    number = come(engine, wave, "P1")
    with writing(engine) as session:
        progress = find_progress(session, number)
        match_id = break_off(session, progress, 0)
        log_event(session, progress, "report", {"match": match_id, "text": "<b>It was rude.</b>"})
    page = client.get(f"/admin/studies/waves/{wave}").text
    assert "P1: something else" in words(page)
    assert "&lt;b&gt;It was rude.&lt;/b&gt;" in page
    assert f"/admin/matches/{match_id}" in page
    assert "Matches that were aborted" in words(page)


def test_many_reports_leave_room_for_the_rest_of_the_page(client: FlaskClient, engine: Engine, wave: int) -> None:
    for number in range(7):
        with writing(engine) as session:
            log_event(session, find_progress(session, come(engine, wave, f"P{number}")), REPORT, {})
    page = client.get(f"/admin/studies/waves/{wave}").text
    before, _, folded = page.partition("<summary>Earlier reports</summary>")
    assert re.findall(r"<strong>(P\d):", before) == ["P6", "P5", "P4", "P3", "P2"]
    assert re.findall(r"<strong>(P\d):", folded) == ["P1", "P0"]


def test_endings_are_held_against_what_the_recruiter_says(client: FlaskClient, engine: Engine, wave: int) -> None:
    done, here = come(engine, wave, "P1", 1, "completed"), come(engine, wave, "P2")
    come(engine, wave, "P3", 1, "withdrawn")
    with writing(engine) as session:
        for number, status in ((done, "timed_out"), (here, "active")):
            visit = session.scalars(select(Submission).where(Submission.enrolment_id == number)).one()
            visit.status = status
    page = client.get(f"/admin/studies/waves/{wave}").text
    table = words(page[page.index('id="against"') :])
    assert "Here active submitted approved approved in part screened out rejected returned timed out Together" in table
    assert "completed · · · · · · · 1 ! 1 withdrew 1 · · · · · · · 1 here now 1 · · · · · · · 1" in table


# ---- One person --------------------------------------------------------------------


def test_a_person_is_removed_with_a_reason(client: FlaskClient, engine: Engine, wave: int) -> None:
    number = come(engine, wave, "P1", 3)
    address = f"/admin/studies/waves/{wave}/people/{number}"
    assert client.post(address, data={"action": "remove", "reason": " "}).status_code == 400
    assert client.post(address, data={"action": "remove", "reason": "wrote to us"}).status_code == 303
    page = words(client.get(address).text)
    assert "removed" in page
    assert "ended: removed (wrote to us) by" in page
    assert client.post(address, data={"action": "remove", "reason": "again"}).status_code == 409
    with reading(engine) as session:
        assert session.get_one(Enrolment, number).ending == "removed"
        assert len(session.scalars(select(Payment)).all()) == 2


def test_a_sum_is_adjusted_with_a_reason(client: FlaskClient, engine: Engine, wave: int) -> None:
    number = come(engine, wave, "P1", 1, "technical")
    address = f"/admin/studies/waves/{wave}/people/{number}"
    refused = client.post(address, data={"action": "adjust", "amount": "much", "reason": "why"})
    assert refused.status_code == 400
    assert 'value="much"' in refused.text
    assert client.post(address, data={"action": "adjust", "amount": "0.50", "reason": "one too few"}).status_code == 303
    assert "Adjustment 0.50 one too few" in words(client.get(address).text)


def test_an_experimenter_withdraws_and_deletes_for_a_person(client: FlaskClient, engine: Engine, wave: int) -> None:
    number = come(engine, wave, "P1", 2)
    address = f"/admin/studies/waves/{wave}/people/{number}"
    for action in ("withdraw", "no training", "forget"):
        assert client.post(address, data={"action": action}).status_code == 303
    with reading(engine) as session:
        row = session.get_one(Enrolment, number)
        assert (row.ending, row.answers) == ("withdrawn", {})
    assert client.get(address).status_code == 200


def test_a_person_is_not_found_in_another_wave(client: FlaskClient, engine: Engine, version: int, wave: int) -> None:
    number = come(engine, wave, "P1")
    with writing(engine) as session:
        other = wave_of(session, version, "other").id
    assert client.get(f"/admin/studies/waves/{other}/people/{number}").status_code == 404
    assert client.post(f"/admin/studies/waves/{other}/people/{number}", data={"action": "forget"}).status_code == 404


# ---- Pay ---------------------------------------------------------------------------


def test_a_batch_is_drafted_downloaded_uploaded_and_confirmed(client: FlaskClient, engine: Engine, wave: int) -> None:
    come(engine, wave, "P1", 1, "technical")
    number = come(engine, wave, "P2", 1, "technical")
    address = f"/admin/studies/waves/{wave}/pay"
    person = f"/admin/studies/waves/{wave}/people/{number}"
    assert client.post(address, data={"action": "draft"}).status_code == 409  # approving pays the base
    client.post(address, data={"action": "adjust", "person": "P1", "amount": "1.25", "reason": "waited"})
    client.post(person, data={"action": "adjust", "amount": "0.75", "reason": "waited"})
    page = words(client.get(address).text)
    assert "P1 technical problem · · 1.25 1.25" in page
    assert "Together 2.00 USD" in page
    assert client.post(address, data={"action": "draft"}).status_code == 303
    file = client.get(f"{address}/1")
    assert file.data == b"p1id,1.25\np2id,0.75\n"
    assert "two-models-main-bonus-1.txt" in file.headers["Content-Disposition"]
    for action in ("uploaded", "confirmed"):
        assert client.post(address, data={"action": action, "batch": "1"}).status_code == 303
    assert "1 confirmed 2 2.00" in words(client.get(address).text)
    assert client.post(address, data={"action": "discard", "batch": "1"}).status_code == 409
    assert client.post(address, data={"action": "uploaded", "batch": "7"}).status_code == 404


def test_the_data_of_a_wave_are_an_archive_without_ids(client: FlaskClient, engine: Engine, wave: int) -> None:
    come(engine, wave, "P1", 1, "technical")
    sent = client.get(f"/admin/studies/waves/{wave}/data.zip")
    assert "two-models-main.zip" in sent.headers["Content-Disposition"]
    with zipfile.ZipFile(io.BytesIO(sent.data)) as archive:
        assert "P1" in archive.read("analysis.csv").decode()
        assert "ids.csv" not in archive.namelist()
        assert all(b"p1id" not in archive.read(name) for name in archive.namelist())


def test_the_data_of_a_wave_run_nothing_in_a_spreadsheet(client: FlaskClient, engine: Engine, wave: int) -> None:
    come(engine, wave, "=1+1", 1, "technical")
    address = f"/admin/studies/waves/{wave}/data.zip"
    for query, shown in (("", "'=1+1,"), ("?guard=0", "\n=1+1,")):
        with zipfile.ZipFile(io.BytesIO(client.get(f"{address}{query}").data)) as archive:
            tables = [archive.read(name).decode() for name in archive.namelist() if name.endswith(".csv")]
        assert any(shown in f"\n{table}" for table in tables)
        assert any("\n=1+1," in table for table in tables) is bool(query)


# ---- Many people -------------------------------------------------------------------


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    """The statements that are sent to a database meanwhile."""
    sent: list[str] = []

    def count(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        sent.append(statement)

    event.listen(engine, "before_cursor_execute", count)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", count)


def test_pages_take_as_many_queries_for_many_people_as_for_few(
    client: FlaskClient, engine: Engine, version: int, wave: int
) -> None:
    with reading(engine) as session:
        study_id = session.get_one(StudyVersion, version).study_id
    pages = [
        "/admin/studies",
        f"/admin/studies/{study_id}",
        f"/admin/studies/waves/{wave}",
        f"/admin/studies/waves/{wave}/pay",
    ]

    def queries() -> list[int]:
        found = []
        for page in pages:
            with counted(engine) as sent:
                assert client.get(page).status_code == 200
            found.append(len(sent))
        return found

    for number in range(10):
        come(engine, wave, f"A{number}", number % 5, "technical" if number % 2 else None)
    few = queries()
    with writing(engine) as session:
        row = session.get_one(Wave, wave)
        loaded = session.get_one(StudyVersion, row.study_version_id)
        for number in range(190):
            progress = enrol(session, row, f"B{number}", loaded)
            advance(session, progress, progress.step.key)
            if number % 2:
                finish(session, progress, "technical")
                record_owed(session, progress)
    assert queries() == few
