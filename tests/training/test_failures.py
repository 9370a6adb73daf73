"""What goes wrong is one line that says what to do, and nothing lies under the output's name."""

import contextlib
import json
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from tests.training.conftest import events_in, rows_of, write_rows
from training import processor
from training.trainer import TokenTrainer

Train = Callable[..., int]
ConfigFile = Callable[..., Path]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"learning_rate": "fast"}, "learning_rate: expected a valid number"),
        ({"learning_rate": -1}, "learning_rate: expected greater than 0, got -1"),
        ({"lr": 1}, "lr: expected one of data, output,"),
        ({"log_every": "often"}, "log_every: expected a valid integer"),
        ({"base": None}, "base: expected a value, got none"),
        ({"patience": 2}, "patience: expected eval_data or eval_share beside it, got neither; name one"),
        ({"eval_every": 5}, "eval_every: expected eval_data or eval_share beside it"),
        ({"eval_share": 0.1, "eval_data": "x"}, "expected eval_data or eval_share, got both"),
        ({"schedule": "steep"}, "schedule: expected 'cosine', 'linear' or 'constant', got 'steep'"),
        ({"data": "none.jsonl"}, "none.jsonl: expected a dataset file, got none"),
        ({"base": "nowhere"}, "nowhere: expected a checkpoint folder with a config.json"),
        ({"chat_template": "none.jinja"}, "chat_template: expected a file, got none.jinja"),
        (
            {"max_length": 20, "too_long": "refuse"},
            "line 1 (0:0): expected rules and a turn in 20 tokens, which is max_length, got 2",
        ),
        (
            {"max_length": 20, "too_long": "refuse"},
            "in the shortest form; raise max_length (the model can take 128), or set too_long to truncate or skip",
        ),
        ({"too_long": "cut"}, "too_long: expected 'truncate', 'skip' or 'refuse', got 'cut'"),
        ({"max_length": 8}, "expected a row to learn from, got 48 that do not fit into 8 tokens and no other; raise"),
    ],
)
def test_a_config_that_cannot_be_used_is_refused(
    fields: dict[str, Any], complaint: str, config_file: ConfigFile, refusal: Callable[..., str]
) -> None:
    assert complaint in refusal(config_file(**fields))


def test_a_precision_that_the_processor_imitates_is_warned_of_before_the_weights_are_loaded(
    config_file: ConfigFile, train: Train, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processor, "lacks_bfloat16", lambda: True)
    assert train("sft", config_file(base="nowhere", precision="bfloat16", device="cpu")) == 2
    warning, failed = map(json.loads, capsys.readouterr().out.splitlines())
    assert (warning["event"], failed["event"]) == ("warning", "failed")
    assert warning["message"].startswith("precision: the processor of this machine has no instructions for bfloat16")


@pytest.mark.parametrize("text", ["- a list", "a: [unclosed", "{"])
def test_a_config_that_is_no_config_is_refused(text: str, tmp_path: Path, refusal: Callable[..., str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    assert "config.yaml: expected" in refusal(path)


def test_an_output_that_is_there_already_is_not_overwritten(
    config_file: ConfigFile, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    (tmp_path / "model").mkdir()
    assert "expected a folder that is not there yet" in refusal(config_file(output=str(tmp_path / "model")))


def test_an_output_that_cannot_be_written_is_refused_before_anything_is_trained(
    config_file: ConfigFile, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    (tmp_path / "file").write_text("")
    line = refusal(config_file(output=str(tmp_path / "file" / "model")))
    assert "output: expected a folder that can be written, got" in line


def change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def grow(folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["another"])
    tokenizer.save_pretrained(folder)


@pytest.mark.parametrize(
    ("harm", "complaint"),
    [
        (lambda folder: [path.unlink() for path in folder.glob("token*")], "expected a tokenizer beside the weights"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "weights as .safetensors"),
        (
            lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 99),
            "model that can be loaded, got",
        ),
        (lambda folder: (folder / "parlor.json").write_text('{"checkpoint_sha256": "abc"}'), "it was changed"),
        (
            lambda folder: change(folder / "config.json", num_hidden_layers=3),
            "expected all weights of the model, got none",
        ),
        (lambda folder: grow(folder), "expected a tokenizer of at most"),
        (lambda folder: (folder / "parlor.json").write_text("{"), "parlor.json: expected an object of JSON"),
    ],
)
def test_a_base_that_is_not_whole_or_could_run_code_is_refused(
    harm: Callable[[Path], Any],
    complaint: str,
    base: Path,
    config_file: ConfigFile,
    tmp_path: Path,
    refusal: Callable[..., str],
) -> None:
    harmed = tmp_path / "harmed"
    shutil.copytree(base, harmed)
    harm(harmed)
    assert complaint in refusal(config_file(base=str(harmed)))


def test_a_base_with_another_hash_than_was_named_is_refused(
    config_file: ConfigFile, refusal: Callable[..., str]
) -> None:
    line = refusal(config_file(base_sha256="0" * 64))
    assert "expected the checkpoint with hash 000000000000…, got " in line


def test_code_in_a_checkpoint_is_never_run(
    base: Path, config_file: ConfigFile, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    folder = tmp_path / "own-code"
    shutil.copytree(base, folder)
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    own = {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Own"}
    change(folder / "config.json", model_type="own", auto_map=own)
    assert "expected a causal language model that can be loaded" in refusal(config_file(base=str(folder)))
    assert not (tmp_path / "ran").exists()


def test_a_loss_that_is_no_number_stops_names_its_rows_and_keeps_the_last_checkpoint(
    config_file: ConfigFile, train: Train, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = TokenTrainer.check_step

    def spoilt(trainer: TokenTrainer) -> None:
        if trainer.state.global_step == 1:
            trainer.losses_of_step[-1] = trainer.losses_of_step[-1] * float("nan")
        check(trainer)

    monkeypatch.setattr(TokenTrainer, "check_step", spoilt)
    config = config_file(save_every=1, batch=2, epochs=1)
    assert train("sft", config, tmp_path / "events.jsonl") == 1
    last = events_in(tmp_path / "events.jsonl")[-1]
    [line] = capsys.readouterr().err.splitlines()
    assert (last["event"], last["message"]) == ("failed", line.removeprefix("error: "))
    assert "step 2: expected a loss that is a number, got NaN or infinity on" in line
    named = line.split(" on ")[1].split(";")[0].split(", ")
    assert set(named) <= {row["group"] for row in rows_of(24)}
    assert len(named) == 2
    run = tmp_path / "config" / "model.run"
    assert f"the last good checkpoint is {run / 'checkpoint-1'}" in line
    assert json.loads((run / "checkpoint-1" / "parlor.json").read_text())["step"] == 1
    assert not (tmp_path / "config" / "model").exists()


@pytest.mark.parametrize("max_grad_norm", [1, 0])
def test_gradients_too_long_for_a_number_stop_and_leave_nothing(
    max_grad_norm: int, data_of: dict[str, Path], config_file: ConfigFile, train: Train, tmp_path: Path, capsys: Any
) -> None:
    """Each of their numbers is finite, and shortened they would be 0: it would train nothing, and say that it had."""
    fields = {"data": str(data_of["stable-alignment"]), "ratio": 1e30, "max_grad_norm": max_grad_norm, "batch": 2}
    assert train("stable-alignment", config_file(**fields), tmp_path / "events.jsonl") == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: step 1: expected a gradient norm that is a number, got NaN or infinity on line ")
    assert "; no checkpoint was saved before it; lower learning_rate or look at these rows" in line
    assert [each["event"] for each in events_in(tmp_path / "events.jsonl")] == ["started", "failed"]
    assert list(tmp_path.glob("config/**/*.safetensors")) == []


@pytest.mark.parametrize("save_every", [1, None])
def test_weights_that_are_no_numbers_are_not_saved(
    save_every: int | None, config_file: ConfigFile, train: Train, tmp_path: Path, capsys: Any
) -> None:
    config = config_file(learning_rate=1e39, warmup=0, max_steps=1, save_every=save_every)
    assert train("sft", config, tmp_path / "events.jsonl") == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: step 1: expected weights that are numbers, got NaN or infinity; no checkpoint was")
    assert list(tmp_path.glob("config/**/*.safetensors")) == []


@contextlib.contextmanager
def small_disk(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes. Not for longer than need be: pytest may be writing to a file as well."""
    usual, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual, most))
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("every", [1, None])
def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(
    every: int | None, config_file: ConfigFile, train: Train, tmp_path: Path, capsys: Any
) -> None:
    config = config_file(max_steps=2, save_every=every)
    with small_disk(8_000):  # the weights do not fit
        assert train("sft", config) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "the disk is full" in line
    assert "make room and start again" in line
    assert list(tmp_path.glob("config/**/*.safetensors")) == []
    assert list(tmp_path.glob("config/**/.*.part")) == []
    assert not (tmp_path / "config" / "model").exists()


def test_a_disk_too_full_for_logs_and_events_is_one_line_too(
    config_file: ConfigFile, train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_file(max_steps=2)
    with small_disk(0):
        assert train("sft", config, tmp_path / "events.jsonl") == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "the disk is full" in line


def test_want_of_room_for_the_libraries_is_one_line_too(config_file: ConfigFile, tmp_path: Path) -> None:
    ended = subprocess.run(
        ["/bin/bash", "-c", 'ulimit -v 300000; exec "$@"', "bash", sys.executable, "-m", "training", "sft", "--config",
         str(config_file())],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    [line] = ended.stderr.splitlines()
    assert (ended.returncode, line.startswith("error: out of memory (")) == (1, True)
    [failed] = map(json.loads, ended.stdout.splitlines())
    assert failed["event"] == "failed"
    assert not (tmp_path / "config" / "model").exists()


def test_rows_too_long_are_counted(config_file: ConfigFile, train: Train, tmp_path: Path) -> None:
    assert train("sft", config_file(max_length=40, max_steps=1), tmp_path / "events.jsonl") == 0
    begun, *_, ended = events_in(tmp_path / "events.jsonl")
    assert 0 < begun["shortened"] < 48
    assert begun["sequences"] > begun["rows"] == 48
    made = json.loads((Path(ended["output"]) / "parlor.json").read_text())
    assert made["shortened"] == begun["shortened"]


def test_a_training_of_one_step_has_its_learning_rate(config_file: ConfigFile, train: Train, tmp_path: Path) -> None:
    config = config_file(max_steps=1, learning_rate=0.01, batch=2)
    assert train("sft", config, tmp_path / "events.jsonl") == 0
    [step] = [each for each in events_in(tmp_path / "events.jsonl") if each["event"] == "step"]
    assert step["lr"] == 0.01


def test_a_data_file_without_rows_is_refused(
    config_file: ConfigFile, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    assert "expected rows, got none" in refusal(config_file(data=str(write_rows(tmp_path / "rows.jsonl", []))))
