"""A training at Together: as one at OpenAI, with the vendor's own states, rows and fields."""

import json
import threading
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine

from app.core.config import Settings
from app.core.errors import AppError
from app.core.extensions import reading, writing
from app.core.queues import BATCH
from app.finetuning import lifecycle as jobs
from app.finetuning.backends import backend_of
from app.finetuning.job import TRAINING
from app.jobs import states
from app.lineage import origin_of
from app.models import Dataset, TrainingJob
from app.registry import add_api_model, add_local_model, get_model
from tests.datasets import import_rows
from tests.experimenter import signed_in
from tests.integration.test_jobs_openai import (
    cancel,
    charges_of,
    due,
    is_over,
    look,
    resume,
    resumed_in_terminal,
    wait_for_end_of_lease,
    write_dataset,
)
from tests.jobs import events_of, model_of, models, row_of, run
from tests.rounds import make_round, play
from tests.stack import running_parlor, wait_until
from tests.stub_fine_tuning import LATE, LOST
from tests.stub_openai import KEY, Reply, StubServer, negotiator, rate_limited
from tests.stub_together import OUTPUT, StubTogether
from tests.tables import database, settings_of

ADDRESS, KEY_VARIABLE, OPEN_MODEL = "http://api.together.xyz/v1", "TOGETHER_API_KEY", "Qwen/Qwen3-8B"
PAIR = {"query": "Which?", "responses": ["The hat.", "No.", "Well."], "scores": [1, 0, 0]}


@pytest.fixture
def database_url() -> str:
    """SQLite: all that speaks to a database is shared with trainings at OpenAI, which are tested on both."""
    return ""


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"].model_copy(update={"TRAIN_POLL": 0.01})


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.fixture
def vendor(stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> StubTogether:
    """What answers in Together's place, as the environment's proxy."""
    for name in ("API_HOSTS", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment_of(stub).items():
        monkeypatch.setenv(name, value)
    stub.key, stub.fine_tuning = KEY, StubTogether()
    return stub.fine_tuning


def environment_of(stub: StubServer) -> dict[str, str]:
    """That of a worker whose calls go to the stub."""
    return {KEY_VARIABLE: KEY, "http_proxy": f"http://127.0.0.1:{stub.port}", "OPENAI_ORG_ID": "org-elsewhere"}


@pytest.fixture
def dataset(engine: Engine, settings: Settings) -> Dataset:
    return write_dataset(engine, settings, "rows", [1, 0, 1, 1])


def add_base(engine: Engine, name: str = "open", **options: Any) -> str:
    """An API model at Together."""
    given = {"model": OPEN_MODEL, "base_url": ADDRESS, "key_env": KEY_VARIABLE, "price_training": 2, **options}
    with writing(engine) as session:
        return add_api_model(session, name, None, ["negotiation"], given, prompt_style="compact").name


@pytest.fixture
def base(engine: Engine, vendor: StubTogether) -> str:
    return add_base(engine)


def make_job(engine: Engine, name: str = "tuned", *, queued: bool = True, **wish: Any) -> int:
    usual = {"method": "sft", "dataset": "rows", "name": name, "base": "open", "backend": "together"}
    with writing(engine) as session:
        return jobs.create(session, jobs.TrainingSpec.read(usual | wish), queued=queued).id


# ---- As it should go --------------------------------------------------------------


def test_a_worker_looks_and_lets_go_through_all_states_until_the_model_plays(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, vendor: StubTogether, stub: StubServer
) -> None:
    job_id = make_job(engine, config={"n_epochs": "2", "learning_rate": "1e-4", "batch_size": "8", "lora_rank": "16"})
    assert due(engine) == [(job_id, BATCH)]
    seen = []
    while not is_over(row_of(engine, job_id)):
        assert run(engine, settings.model_copy(update={"TRAIN_POLL": 3600}), job_id)
        row = row_of(engine, job_id)
        seen.append(row.remote_status)
        assert row.lease_owner is None
        assert (row.remote_model is None, row.trained_tokens is None) == (not is_over(row), not is_over(row))
        assert due(engine) == []  # not before it is time
    assert seen == ["pending", "queued", "running", "compressing", "uploading", "succeeded"]

    token = row_of(engine, job_id).remote_token
    [sent] = vendor.asked
    assert sent == {
        "model": OPEN_MODEL, "training_file": "file-1", "suffix": f"parlor-{token}", "n_epochs": 2,
        "learning_rate": 1e-4, "batch_size": 8, "training_method": {"method": "sft", "train_on_inputs": False},
        "training_type": {"type": "Lora", "lora_r": 16, "lora_alpha": 32}, "n_checkpoints": 1, "n_evals": 0,
        "warmup_ratio": 0.0, "max_grad_norm": 1.0, "weight_decay": 0.0,
    }  # fmt: skip
    move = {"role": "assistant", "content": "Yes", "weight": 1}
    assert vendor.rows_of("file-1") == [{"messages": [{"role": "user", "content": "Hi"}, move]}] * 3
    assert vendor.files == {}  # what was said does not stay there
    assert (settings.home / "training" / str(job_id) / "together.jsonl").read_bytes() == vendor.contents["file-1"]
    sent_headers = {name for headers in vendor.headers for name in headers}
    assert not [name for name in sent_headers if name.startswith(("x-stainless", "openai-"))]

    row, made = row_of(engine, job_id), model_of(engine, "tuned")
    assert made is not None
    assert (row.status, row.model_id, row.trained_tokens, row.step, row.steps) == (states.DONE, made.id, 5000, 2, 2)
    assert (made.kind, made.games, made.prompt_style) == ("api", ["negotiation"], "compact")
    assert made.options["model"] == f"{OUTPUT}-parlor-{token}-ft-1" == row.remote_model
    assert (made.options["base_url"], made.options["key_env"]) == (ADDRESS, KEY_VARIABLE)
    with reading(engine) as session:
        assert origin_of(made, session.get_one(TrainingJob, job_id)) == "trained"
        assert backend_of(made) == "together"
    assert [(each["step"], each["loss"]) for each in events_of(engine, job_id, "step")] == [(1, 2.0), (2, 1.0)]
    assert [each["message"] for each in events_of(engine, job_id, "vendor")] == ["Job created", "Training started"]
    assert charges_of(engine, job_id) == [(5000, False)]

    stub.script(made.options["model"], negotiator)
    number = make_round(engine, "tuned", matches=2, game="negotiation")
    play(engine, settings, number)
    assert stub.requests_of(made.options["model"])


def test_preferences_are_trained_on_by_dpo_and_a_model_that_was_made_there_is_gone_on_from(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, vendor: StubTogether
) -> None:
    first = make_job(engine)
    look(engine, settings, first, is_over)
    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
    number = import_rows(engine, settings.home, "parlor", {**PAIR, "history": history}, name="pairs")
    wish = {"method": "dpo", "dataset": str(number), "base": "tuned", "config": {"dpo_beta": "0.2"}}
    job_id = make_job(engine, "preferred", **wish)
    look(engine, settings, job_id, is_over)
    assert (row_of(engine, job_id).status, row_of(engine, job_id).error) == (states.DONE, None)
    asked = [*history, {"role": "user", "content": "Which?"}]
    assert vendor.rows_of("file-2") == [
        {
            "input": {"messages": asked},
            "preferred_output": [{"role": "assistant", "content": "The hat."}],
            "non_preferred_output": [{"role": "assistant", "content": worse}],
        }
        for worse in ("No.", "Well.")
    ]
    sent = vendor.asked[1]
    assert sent["training_method"] == {"method": "dpo", "dpo_beta": 0.2}
    assert (sent["batch_size"], "training_type" in sent) == ("max", False)  # the vendor's own
    made = model_of(engine, "tuned")
    assert made is not None
    assert (sent["from_checkpoint"], "model" in sent) == (made.options["model"], False)
    # Each pair is two chats of four messages: 3 tokens a chat, 4 a message, and one for 3.5 bytes of what was said.
    chats = [len("HiYes?Which?" + answer) for answer in ("The hat.", "No.", "The hat.", "Well.")]
    tokens = sum(3 + 4 * 4 + round(size / 3.5) for size in chats)
    assert f"estimate: about {tokens} trained tokens in 1 epoch" in row_of(engine, job_id).log


def test_a_terminal_stays_until_the_job_is_over_and_says_what_it_cost(
    app: Flask, engine: Engine, dataset: Dataset, base: str, vendor: StubTogether, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(app.config, "SETTINGS", app.config["SETTINGS"].model_copy(update={"TRAIN_POLL": 0.01}))
    flask = app.test_cli_runner()
    line = "training run sft --backend together --dataset rows --base open --name tuned --config n_epochs=1"
    result = flask.invoke(args=line.split())
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(
        f"Job 1 made tuned, step 2 of 2, loss 1, which api.together.xyz calls {OUTPUT}-parlor-"
    )
    assert result.stdout.endswith(". It trained 5000 tokens, $0.01.\n")
    told = json.loads(flask.invoke(args=["training", "show", "1", "--json"]).stdout)
    assert (told["backend"], told["remote_job"], told["cost"]) == ("together", "ft-1", 0.01)
    helped = flask.invoke(args=["training", "run", "--help"]).stdout
    for method in ("sft", "dpo"):
        assert f"{method} with --backend together has these fields" in helped
    assert "dpo_beta" in helped


# ---- What is lost, killed or refused on the way -------------------------------------------


@pytest.mark.parametrize(
    ("call", "answers"),
    [
        ("upload", [LOST]),
        ("upload", [rate_limited(0.01), Reply("down", status=503)]),
        ("create", [LOST]),
        ("create", [Reply("down", status=500), LOST]),
        ("events", [Reply("down", status=502)]),
        ("metrics", [Reply("down", status=502)]),
        ("delete_file", [Reply("down", status=500)]),
    ],
)
def test_one_file_and_one_job_come_of_whatever_was_lost(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, vendor: StubTogether, call: str, answers: list[Any]
) -> None:
    vendor.answer(call, *answers)
    vendor.answer("list_jobs", Reply("down", status=500))
    job_id = make_job(engine)
    look(engine, settings, job_id, is_over)
    row = row_of(engine, job_id)
    assert (row.status, row.error, row.remote_failures) == (states.DONE, None, 0)
    assert (len(vendor.contents), len(vendor.jobs), models(engine)) == (1, 1, 3)
    assert vendor.files == {}
    assert len(events_of(engine, job_id, "vendor")) == 2  # each once
    assert [each["step"] for each in events_of(engine, job_id, "step")] == [1, 2]


def test_a_job_that_was_created_by_a_late_request_as_well_is_cancelled(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, vendor: StubTogether
) -> None:
    vendor.answer("create", LATE)
    job_id = make_job(engine)
    look(engine, settings, job_id, lambda row: row.remote_status == "running")
    vendor.arrive()
    look(engine, settings, job_id, is_over)
    assert row_of(engine, job_id).status == states.DONE
    assert [body["status"] for body in vendor.bodies()] == ["completed", "cancelled"]
    assert "ft-2 was created beside ft-1, cancelling it" in row_of(engine, job_id).log


def test_a_job_of_another_one_on_the_same_file_is_not_taken_for_ours(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, vendor: StubTogether
) -> None:
    vendor.answer("create", Reply("down", status=500))
    job_id = make_job(engine)
    look(engine, settings, job_id, lambda row: row.remote_file_id)
    look(engine, settings, job_id, lambda row: row.remote_failures)
    theirs = {"model": OPEN_MODEL, "training_file": "file-1", "suffix": "parlor-another"}
    vendor.handle("POST", "/fine-tunes", {}, json.dumps(theirs).encode())
    look(engine, settings, job_id, is_over)
    assert row_of(engine, job_id).remote_job_id == "ft-2"


def test_a_file_is_trained_on_when_it_was_processed(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, vendor: StubTogether
) -> None:
    vendor.processed = 2
    job_id = make_job(engine)
    look(engine, settings, job_id, lambda row: row.error)
    assert (row_of(engine, job_id).error or "").startswith(
        "api.together.xyz: expected file-1 to be processed, got one that is not yet; asking again"
    )
    look(engine, settings, job_id, is_over)
    assert (row_of(engine, job_id).status, len(vendor.jobs), len(vendor.contents)) == (states.DONE, 1, 1)


def test_a_server_without_metrics_trains_as_well(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, vendor: StubTogether
) -> None:
    vendor.answer("metrics", *[Reply("no such page", status=404)] * 20)
    job_id = make_job(engine)
    look(engine, settings, job_id, is_over)
    row = row_of(engine, job_id)
    assert (row.status, row.step, events_of(engine, job_id, "step")) == (states.DONE, None, [])


@pytest.mark.parametrize(
    ("statuses", "says"),
    [
        (["pending", "error"], "api.together.xyz has ended ft-1: Line 7: messages[1] must contain a role field"),
        (["running", "user_error"], "api.together.xyz has ended ft-1: it gave no reason"),
        (["running", "cancelled"], "ft-1 was cancelled at api.together.xyz; resume it to train again"),
    ],
)
def test_a_job_that_fails_there_fails_here_with_its_reason_and_begins_anew_when_it_is_resumed(
    engine: Engine,
    settings: Settings,
    dataset: Dataset,
    base: str,
    vendor: StubTogether,
    statuses: list[str],
    says: str,
) -> None:
    vendor.statuses, vendor.error = statuses, {"message": "Line 7: messages[1] must contain a role field"}
    job_id = make_job(engine)
    look(engine, settings, job_id, is_over)
    first = row_of(engine, job_id)
    assert (first.status, (first.error or "").startswith(says)) == (states.FAILED, True), first.error
    vendor.statuses = ["running", "completed"]
    resume(engine, job_id)
    look(engine, settings, job_id, is_over)
    assert row_of(engine, job_id).status == states.DONE
    assert [body["status"] for body in vendor.bodies()] == [statuses[-1], "completed"]
    assert len({body["suffix"] for body in vendor.bodies()}) == 2


def test_a_job_is_cancelled_when_the_vendor_says_so(
    client: FlaskClient, engine: Engine, settings: Settings, dataset: Dataset, base: str, vendor: StubTogether
) -> None:
    vendor.statuses = ["pending"] + ["running"] * 50
    job_id = make_job(engine)
    look(engine, settings, job_id, lambda row: row.remote_status == "running")
    assert cancel(engine, job_id) == states.CANCELLING
    assert "It counts as cancelled once Together confirms." in client.get(f"/admin/jobs/{job_id}").text
    look(engine, settings, job_id, lambda row: row.remote_status == "cancel_requested")
    assert row_of(engine, job_id).status == states.CANCELLING
    look(engine, settings, job_id, lambda row: row.status != states.CANCELLING)
    row = row_of(engine, job_id)
    assert (row.status, row.remote_status, row.error) == (states.CANCELLED, "cancelled", None)
    assert (models(engine), vendor.files) == (2, {})
    assert charges_of(engine, job_id) == [(5000, False)]  # the vendor charges for what it has trained


@pytest.mark.parametrize("call", ["upload", pytest.param("create", marks=pytest.mark.long)])
def test_a_terminal_that_is_killed_before_it_has_an_answer_leaves_one_file_and_one_job(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, vendor: StubTogether, call: str
) -> None:
    vendor.late[call] = threading.Event()
    job_id = make_job(engine, queued=False)
    terminal = resumed_in_terminal(engine, settings, job_id, TRAIN_POLL="0.1")
    wait_until(lambda: vendor.files if call == "upload" else vendor.jobs, "a file or a job there")
    terminal.kill()
    terminal.wait()
    vendor.late.pop(call).set()
    wait_for_end_of_lease(engine, job_id)
    with writing(engine) as session:
        TRAINING.resume(session, job_id, queued=True)
    look(engine, settings, job_id, is_over)
    row = row_of(engine, job_id)
    assert (row.status, row.error, row.remote_job_id) == (states.DONE, None, "ft-1")
    assert (len(vendor.jobs), len(vendor.contents), vendor.files) == (1, 1, {})


@pytest.mark.long
def test_a_worker_that_is_killed_while_the_job_is_created_leaves_one_job_there() -> None:
    environment = {"TRAIN_LEASE": "2", "TRAIN_POLL": "0.3", "UPKEEP_EVERY": "0.4", "WORKER_QUEUES": "batch"}
    with StubServer(key=KEY) as stub:
        vendor = stub.fine_tuning = StubTogether()
        with running_parlor(**environment, **environment_of(stub)) as parlor, database(parlor) as engine:
            vendor.late["create"] = threading.Event()
            write_dataset(engine, settings_of(parlor), "rows", [1, 1])
            add_base(engine)
            job_id = make_job(engine)
            wait_until(lambda: vendor.jobs, "a job at the vendor")
            parlor.kill("batch")
            vendor.late.pop("create").set()
            wait_until(lambda: is_over(row_of(engine, job_id)), "the end of the job")
            row = row_of(engine, job_id)
            assert (row.status, row.error, row.remote_job_id) == (states.DONE, None, "ft-1")
            assert (len(vendor.jobs), len(vendor.contents)) == (1, 1)


# ---- What it costs, and what cannot be ---------------------------------------------------


def test_a_training_that_would_exceed_its_budget_stops_before_anything_is_sent(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, vendor: StubTogether
) -> None:
    tokens = 3 * 3 * (1 + 2 * 4 + 3)  # three rows in three epochs
    job_id = make_job(engine, config={"n_epochs": 3}, budget={"tokens": tokens - 1})
    look(engine, settings, job_id, is_over)
    assert row_of(engine, job_id).error == (
        f"budget of {tokens - 1} tokens would be exceeded: the training would take about {tokens} trained tokens in 3"
        " epochs, $0.000216 at $2.00 a million; resume with a higher budget"
    )
    assert (vendor.calls, charges_of(engine, job_id)) == ([], [])


@pytest.mark.parametrize(
    ("wish", "line"),
    [
        ({"method": "offline-po"}, "method: expected sft or dpo, which is all that Together trains with, got 'offl"),
        ({"base": None}, "base: expected the API model at Together that sft starts from, got none"),
        ({"base": "small"}, "base: expected an API model, which Together can start from, got small, which is local"),
        (
            {"base": "elsewhere"},
            "base: expected an API model at Together (api.together.xyz or api.together.ai), got elsewhere, which is",
        ),
        ({"backend": "openai"}, "base: expected an API model at OpenAI, got open, which is at Together; set backend"),
        ({"backend": "local", "method": "dpo"}, "method: expected sft or tiny or offline-po or sft-kl or stable-align"),
        ({"dataset": "pairs"}, "dataset: expected a dataset of conversations, as sft needs, got pairs@1, which"),
        ({"method": "dpo"}, "dataset: expected a dataset of comparisons, as dpo needs, got rows@1, which holds"),
        ({"config": {"epochs": 3}}, "config.epochs: expected a field of together (n_epochs, learning_rate, batch_size"),
        ({"config": {"dpo_beta": 1}}, "config.dpo_beta: expected a field of together "),
        ({"config": {"batch_size": "0"}}, "config.batch_size: expected max or a whole number from 1 to 10000, got '0'"),
        (
            {"config": {"lora_rank": 8, "training_type": "full"}},
            "config.lora_rank: expected none beside training_type full, got 8",
        ),
        ({"dataset": "weighted"}, "row 1 of weighted@1: weight: expected 0 or 1, the only weights that Together acc"),
        ({"dataset": "doubled"}, "row 1 of doubled@1: messages[1].role: expected assistant, got 'user'"),
        ({"dataset": "begun"}, "row 1 of begun@1: messages[0].role: expected system or user, got 'assistant'"),
    ],
)  # fmt: skip
def test_a_wish_that_cannot_be_is_refused_in_one_line(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, wish: dict[str, Any], line: str
) -> None:
    write_dataset(engine, settings, "weighted", [0.5, 1])
    import_rows(engine, settings.home, "parlor", PAIR, name="pairs")
    user, move = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}
    write_dataset(engine, settings, "doubled", [1], before=[user, user])
    write_dataset(engine, settings, "begun", [1], before=[move, user])
    add_base(engine, "elsewhere", base_url="http://together.xyz.example/v1", key_env="OTHER_API_KEY")
    with writing(engine) as session:
        add_local_model(session, "small", None, ["taboo"], {"path": "checkpoints/small", "sha256": "0" * 64})
    usual = {"method": "sft", "dataset": "rows", "name": "tuned", "base": "open", "backend": "together"}
    with pytest.raises(AppError) as refused, writing(engine) as session:
        jobs.create(session, jobs.TrainingSpec.read(usual | wish), queued=False, home=settings.home)
    assert refused.value.message.startswith(line), refused.value.message
    assert "\n" not in refused.value.message


# ---- The pages ----------------------------------------------------------------------


def test_the_form_offers_together_and_the_page_shows_what_became_of_it(
    client: FlaskClient, engine: Engine, settings: Settings, dataset: Dataset, base: str, vendor: StubTogether
) -> None:
    number = import_rows(engine, settings.home, "parlor", PAIR, name="pairs")
    page = client.get(f"/admin/jobs/new?base=open&dataset={number}").text
    for part in ('value="together" checked', "open (At Together)", "together-dpo_beta", 'value="dpo" checked'):
        assert part in page, part
    with writing(engine) as session:
        add_local_model(session, "small", None, ["taboo"], {"path": "checkpoints/small", "sha256": "0" * 64})
    assert 'value="stable-alignment" checked' in client.get(f"/admin/jobs/new?base=small&dataset={number}").text
    form = {"dataset": str(number), "method": "dpo", "backend": "together", "base": "open", "name": "tuned"}
    refused = client.post("/admin/jobs/new", data=form | {"together-dpo_beta": "none"})
    assert refused.status_code == 400
    assert "Beta (β): expected a number above 0" in refused.text
    assert client.post("/admin/jobs/new", data=form | {"together-dpo_beta": "0.3"}).status_code == 303
    row = row_of(engine, 1)
    assert (row.backend, row.method, row.config, row.queued) == ("together", "dpo", {"dpo_beta": 0.3}, True)
    look(engine, settings, 1, lambda row: row.remote_status == "queued")
    assert "Together checks the dataset, and then trains" in client.get("/admin/jobs/1").text
    look(engine, settings, 1, is_over)
    page = client.get("/admin/jobs/1").text
    assert "Status at Together" in page
    for name, text in {"remote_status": "succeeded", "trained_tokens": "5,000", "cost": "$0.0100"}.items():
        assert f'<span data-figure="{name}">{text}</span>' in page, name
    with reading(engine) as session:
        assert get_model(session, "tuned").options["model"] in page
