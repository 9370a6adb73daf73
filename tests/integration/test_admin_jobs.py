"""The admin pages of training jobs: started from a dataset, followed, cancelled and resumed. No test trains here."""

import html
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, func, select

from app.core.extensions import db, reading, writing
from app.jobs import states
from app.models import Dataset, TrainingJob
from app.registry import add_api_model, add_local_model
from app.web.admin import lists
from tests.experimenter import labelled, leafed_through, signed_in
from tests.integration.test_admin_societies import texts
from tests.jobs import make_dataset, make_job, row_of, tell
from training import processor
from training.methods import all_methods

HASH = "0" * 64


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.fixture
def dataset(app: Flask, engine: Engine) -> Dataset:
    return make_dataset(engine, app.config["SETTINGS"])


@pytest.fixture
def base(app: Flask, engine: Engine) -> str:
    """A local model whose checkpoint is there."""
    (app.config["SETTINGS"].home / "checkpoints" / "mine-1").mkdir(parents=True)
    with writing(engine) as session:
        options = {"path": "checkpoints/mine-1", "sha256": HASH}
        return add_local_model(session, "mine-1", None, ["negotiation"], options, prompt_style="compact").name


def form(**fields: str) -> dict[str, str]:
    """The form as a browser sends it."""
    usual = {"dataset": "1", "method": "tiny", "base": "", "name": "small", "epochs": "3", "eval_share": "0.1"}
    return {**usual, "learning_rate": "", "batch": "", "seed": "", "config": "", **fields}


def counted(engine: Engine) -> int:
    with reading(engine) as session:
        return session.scalar(select(func.count()).select_from(TrainingJob)) or 0


def test_an_empty_list_leads_to_the_first_training(client: FlaskClient) -> None:
    page = client.get("/admin/jobs").text
    assert "There are none yet." in page
    assert 'href="/admin/jobs/new"' in page
    assert "There is no dataset to learn from yet." in client.get("/admin/jobs/new").text


def test_a_job_is_started_from_a_datasets_page(
    client: FlaskClient, engine: Engine, dataset: Dataset, base: str
) -> None:
    assert f'href="/admin/jobs/new?dataset={dataset.id}"' in client.get(f"/admin/datasets/{dataset.id}").text
    page = client.get(f"/admin/jobs/new?dataset={dataset.id}").text
    assert f'<option value="{dataset.id}" selected>rows, version 1</option>' in page
    assert re.search(r'value="sft" checked', page)
    assert f'<option value="{base}" selected>' not in page  # what is newest changes by itself
    unchosen = client.post("/admin/jobs/new", data=form(method="sft", name="mine-2"))
    assert unchosen.status_code == 400
    assert "Base: expected " in unchosen.text
    page = client.get(f"/admin/jobs/new?dataset={dataset.id}&base={base}").text
    assert f'<option value="{base}" selected>' in page
    assert 'name="name" type="text" value="mine-2"' in page
    further = "accumulation = 2\r\nschedule=linear\r\n"
    sent = form(method="sft", base=base, name="mine-2", learning_rate="1e-4", config=further)
    answer = client.post("/admin/jobs/new", data=sent)
    assert (answer.status_code, answer.location) == (303, "/admin/jobs/1")
    row = row_of(engine, 1)
    assert (row.name, row.method, row.status, row.queued) == ("mine-2", "sft", states.WAITING, True)
    assert row.config == {
        "epochs": 3, "eval_share": 0.1, "learning_rate": 1e-4, "accumulation": 2, "schedule": "linear",
    }  # fmt: skip
    page = client.get("/admin/jobs/1").text
    assert "It waits for a worker." in page
    assert "Trains mine-2 from mine-1 on " in texts(page)
    assert f'href="/admin/datasets/{dataset.id}"' in page
    assert 'href="/admin/jobs/1"' in client.get(f"/admin/datasets/{dataset.id}").text
    assert "mine-2" in client.get("/admin/jobs").text
    again = client.get("/admin/jobs/new?like=1").text
    assert "accumulation = 2\nschedule = linear</textarea>" in again
    assert 'value="0.0001"' in again


@pytest.mark.parametrize("lacks", [True, False])
def test_the_form_warns_of_bfloat16_where_the_processor_imitates_it(
    client: FlaskClient, dataset: Dataset, monkeypatch: pytest.MonkeyPatch, lacks: bool
) -> None:
    monkeypatch.setattr(processor, "lacks_bfloat16", lambda: lacks)
    page = client.get("/admin/jobs/new").text
    assert ("The processor of this machine has no instructions for bfloat16" in page) is lacks


def test_a_model_from_nothing_needs_no_base(client: FlaskClient, engine: Engine, dataset: Dataset, base: str) -> None:
    sent = form(base=base, config="width = 32\nheads = 2")
    assert client.post("/admin/jobs/new", data=sent).status_code == 303
    row = row_of(engine, 1)
    assert (row.method, row.base_id, row.config["width"]) == ("tiny", None, 32)
    assert "Trains small from scratch on " in texts(client.get("/admin/jobs/1").text)


def test_a_training_at_a_vendor_is_estimated_and_a_dear_one_is_asked_about(make_app: Callable[..., Flask]) -> None:
    app = make_app(CONFIRM_COST=0.01)
    with app.app_context():
        dataset = make_dataset(db.engine, app.config["SETTINGS"])
        with writing(db.engine) as session:
            options = {"model": "mini-2027", "base_url": "http://127.0.0.1:9/v1", "price_training": 25.0}
            add_api_model(session, "mini", None, ["negotiation"], options, prompt_style="compact")
    client = signed_in(app)
    sent = form(method="sft", backend="openai", base="mini", epochs="", eval_share="", **{"openai-n_epochs": "2"})
    estimated = texts(client.post("/admin/jobs/new", data={**sent, "action": "estimate"}).text)
    amounts = re.search(r"Rows (\d+) Epochs 2 Trained tokens, about ([\d,]+) Cost, about \$(\d\.\d+)", estimated)
    assert amounts, estimated[2000:]
    rows, tokens, cost = int(amounts[1]), int(amounts[2].replace(",", "")), float(amounts[3])
    assert rows == dataset.rows
    assert tokens > 2 * dataset.words  # in two epochs, no word is less than a token
    assert cost == pytest.approx(tokens * 25 / 1e6, abs=0.01)
    asked = client.post("/admin/jobs/new", data=sent)
    assert asked.status_code == 200
    assert "Press Start the training again to confirm." in texts(asked.text)
    agreed = re.search(r'name="agreed" value="([^"]+)"', asked.text)
    assert agreed
    other = client.post("/admin/jobs/new", data={**sent, "openai-n_epochs": "3", "agreed": html.unescape(agreed[1])})
    assert other.status_code == 200  # three epochs are not what was agreed to
    with app.app_context():
        assert counted(db.engine) == 0
    assert client.post("/admin/jobs/new", data={**sent, "agreed": html.unescape(agreed[1])}).status_code == 303


def test_a_training_here_costs_nothing(client: FlaskClient, engine: Engine, dataset: Dataset) -> None:
    estimated = texts(client.post("/admin/jobs/new", data=form(action="estimate")).text)
    assert f"Rows {dataset.rows} Cost, about none" in estimated
    assert counted(engine) == 0


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("fields", "status", "says", "at"),
    [
        ({"name": "a b"}, 400, "name: expected 1 to 80 letters", "name"),
        ({"name": "scripted"}, 409, "name: expected one that is not taken", "name"),
        ({"dataset": "7"}, 404, "dataset: expected the number of one that exists, got 7", "dataset"),
        ({"method": "sft"}, 400, "base: expected the local model that sft starts from, got none", "base"),
        ({"method": "sft", "base": "nobody"}, 404, "base: expected one of scripted", "base"),
        ({"learning_rate": "fast"}, 400, "learning_rate: expected a number above 0", "learning_rate"),
        ({"batch": "0"}, 400, "batch: expected a whole number from 1", "batch"),
        ({"config": "lr = 1"}, 400, "lr: expected a field of tiny", "config"),
        ({"config": "no mark"}, 400, "Further fields: expected a line such as width = 64", "config"),
        ({"config": "epochs = 1"}, 400, "Further fields: expected a field that has no box", "config"),
        ({"method": "ppo"}, 400, f"method: expected {' or '.join(all_methods())}", None),
    ],
)
def test_what_cannot_be_trained_is_said_on_the_form_as_it_was_filled_in(
    client: FlaskClient,
    engine: Engine,
    dataset: Dataset,
    fields: dict[str, str],
    status: int,
    says: str,
    at: str | None,
) -> None:
    answer = client.post("/admin/jobs/new", data=form(**fields))
    assert (answer.status_code, labelled(says) in answer.text) == (status, True)
    assert at is None or re.search(rf'id="{at}"[^>]*aria-invalid="true"', answer.text)
    for name, value in fields.items():
        assert name == "method" or f'"{value}"' in answer.text or f">{value}</textarea>" in answer.text
    assert counted(engine) == 0


def test_a_job_is_shown_with_its_figures_its_curve_and_its_log(
    client: FlaskClient, engine: Engine, dataset: Dataset
) -> None:
    job_id = make_job(engine, dataset, queued=True)
    until = datetime.now(UTC) + timedelta(seconds=60)
    tell(engine, job_id, 40, 100, status=states.RUNNING, lease_owner="it", lease_until=until)
    page = client.get(f"/admin/jobs/{job_id}").text
    for name, text in {
        "step": "40", "steps": "100", "loss": "1.075", "eval_loss": "2.075", "eval_step": "40", "epoch": "1.33",
        "lr": "0.000021", "gradient_norm": "0.5", "tokens_per_second": "812.3", "saved": "40", "left": "2:00",
    }.items():  # fmt: skip
        assert f'<span data-figure="{name}">{text}</span>' in page, name
    assert '<progress value="40" max="100"' in page
    assert "cpu (2 threads)" in page
    assert "step 40 of 100  loss 1.075  lr 2.1e-05  812 tokens/s" in page
    for fact, count in {"Shortened rows": 2, "Rows that were cut": 3, "Rows left out as too long": 1}.items():
        assert f"<dt>{fact}</dt><dd>{count}</dd>" in page
    assert "Loss of job 1: 4.0000 at step 1, 1.0750 at step 40." in page
    spec = client.get(f"/admin/jobs/{job_id}/charts/loss.json?theme=dark").json or {}
    assert len(spec["data"]["values"]) == 44
    assert client.get(f"/admin/jobs/{job_id}/charts/loss.json?theme=blue").status_code == 400
    assert client.get("/admin/jobs/77").status_code == 404


def test_what_the_loss_of_a_method_tells_is_shown_and_drawn(
    client: FlaskClient, engine: Engine, dataset: Dataset
) -> None:
    job_id = make_job(engine, dataset, queued=True)
    tell(engine, job_id, 4, 8, figures={"reward": 0.8, "kl": 0.04, "clip_fraction": 0.123456})
    page = client.get(f"/admin/jobs/{job_id}").text
    for name, text in {"reward": "0.2", "kl": "0.01", "clip_fraction": "0.03086", "memory_mb": "640"}.items():
        assert f'<span data-figure="{name}">{text}</span>' in page, name
    assert re.search('data-with="penalty" hidden', page)
    assert "Mean reward 0.8000 at first, 0.2000 now; Distance to the reference (KL) 0.0400 at first" in page
    spec = client.get(f"/admin/jobs/{job_id}/charts/method.json").json or {}
    assert [len(panel["data"]["values"]) for panel in spec["concat"]] == [4, 4, 4]
    other = make_job(engine, dataset, "plain", queued=True)
    assert client.get(f"/admin/jobs/{other}/charts/method.json").status_code == 404


def test_jobs_are_compared_by_their_losses_figures_and_the_settings_in_which_they_differ(
    client: FlaskClient, engine: Engine, dataset: Dataset
) -> None:
    jobs = [make_job(engine, dataset, name, queued=True, epochs=epochs) for name, epochs in (("a", 2), ("b", 5))]
    assert client.get("/admin/jobs").text.count('name="job"') == 2
    tell(engine, jobs[0], 10, 20)
    with writing(engine) as session:
        session.get_one(TrainingJob, jobs[0]).step = 12345
    page = client.get(f"/admin/jobs/compare?job={jobs[0]}&job={jobs[1]}").text
    assert "Last losses: job 1 training 1.3000; job 1 held out 2.3000." in page
    facts = re.sub(r"\s*(<[^>]*>\s*)+", "|", page)
    assert "|Loss, held out, best|2.3|–|" in facts
    assert "|Step|12,345|0|" in facts  # a count, to the last digit
    assert "|Epochs|epochs|–|5|" in facts  # as far as each is known: the first has told all its settings
    for wrong in ("", f"?job={jobs[0]}", f"?job={jobs[0]}&job=77", "?job=x&job=y"):
        assert client.get(f"/admin/jobs/compare{wrong}").status_code in (400, 404), wrong


def test_a_done_job_shows_which_step_was_registered_and_every_field_of_its_training(
    client: FlaskClient, engine: Engine, dataset: Dataset
) -> None:
    job_id = make_job(engine, dataset, queued=True)
    tell(engine, job_id, 84, 84, status=states.DONE, registered_step=70)
    page = client.get(f"/admin/jobs/{job_id}").text
    assert re.search(r"The model has the weights of step <span[^>]*>70</span>\.", page)
    assert "Loss, training, last step" in page
    spec = client.get(f"/admin/jobs/{job_id}/charts/loss.json").json or {}
    marked = [layer["data"]["values"] for layer in spec["layer"] if "data" in layer]
    assert [(each["step"], each["words"]) for each in marked[0]] == [(70, "step 70 is registered")]
    facts = re.sub(r"<[^>]*>", "|", page)
    for field in ("Schedule||schedule|||cosine |by default", "warmup|||0.03 |by default", "Batch||batch|||4|"):
        assert field in facts, field
    assert "Packing||packing|||no |by default" in facts


def test_a_job_that_nobody_runs_in_its_terminal_says_so(client: FlaskClient, engine: Engine, dataset: Dataset) -> None:
    job_id = make_job(engine, dataset)
    tell(engine, job_id, 3, 9, status=states.RUNNING)
    page = client.get(f"/admin/jobs/{job_id}").text
    assert "No terminal runs it now. If it has stopped there, Resume lets a worker" in page


def test_a_job_is_cancelled_and_resumed_by_its_buttons(client: FlaskClient, engine: Engine, dataset: Dataset) -> None:
    job_id = make_job(engine, dataset, queued=True)
    address = f"/admin/jobs/{job_id}"
    assert client.post(address, data={"action": "cancel"}).status_code == 303
    page = client.get(address).text
    assert ("cancelled" in page, 'value="cancel"' in page, 'value="resume"' in page) == (True, False, True)
    assert client.post(address, data={"action": "resume"}).status_code == 303
    assert row_of(engine, job_id).status == states.WAITING
    assert client.post(address, data={"action": "explode"}).status_code == 400
    error = "the disk is full; make room and start again"
    tell(engine, job_id, 3, 9, status=states.FAILED, error=error, ended_at=datetime.now(UTC))
    overview = client.get("/admin/").text
    assert f"{row_of(engine, job_id).name} (job {job_id}) stopped" in overview
    assert error in overview
    page = client.get(address).text
    assert "the disk is full; make room and start again" in page
    assert 'value="resume" type="submit">Resume<' in page
    refused = client.post(address, data={"action": "cancel"})
    assert refused.status_code == 409
    assert "expected one that is waiting or running, got one that is failed" in refused.text


def test_a_long_list_has_pages(
    client: FlaskClient, engine: Engine, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "PAGE", 2)
    numbers = [make_job(engine, dataset, f"small-{number}") for number in range(5)]
    seen = []
    for page in leafed_through(client, "/admin/jobs"):
        seen += [int(each) for each in re.findall(r'id="line-(\d+)"', page)]
    assert seen == numbers[::-1]
    assert client.get("/admin/jobs?before=x").status_code == 400


def test_what_a_training_prints_cannot_break_out_of_the_page(
    client: FlaskClient, engine: Engine, dataset: Dataset
) -> None:
    job_id = make_job(engine, dataset)
    evil = "</pre><script>alert(1)</script>"
    tell(engine, job_id, 1, 2, status=states.FAILED, log=evil, error=evil, device=evil)
    page = client.get(f"/admin/jobs/{job_id}").text
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert(1)") >= 3


def test_published_settings_of_a_method_fill_the_form_in(app: Flask) -> None:
    client = signed_in(app)
    page = client.get("/admin/jobs/new").text
    assert "method=stable-alignment&amp;preset=published" in page
    filled = client.get("/admin/jobs/new?method=stable-alignment&preset=code").text
    assert re.search(r'value="stable-alignment"[^>]* checked', filled)
    assert re.search(
        r"margin = 1\s+max_flow = false\s+max_length = 512\s+num_comp = 3\s+rating_scale = 7\s+ratio = 0.5"
        r"\s+too_long = truncate",
        filled,
    )
    assert not re.search(r'name="epochs"[^>]* value="\d', filled)  # as the method has it
    refused = client.get("/admin/jobs/new?method=sft&preset=code")
    assert refused.status_code == 400
    assert "none with sft, which has none" in html.unescape(refused.text)
