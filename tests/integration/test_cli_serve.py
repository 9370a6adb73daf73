"""`flask model serve`: what it refuses, each in one line, and what it starts."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from flask import Flask
from sqlalchemy import Engine
from transformers import T5Config, T5ForConditionalGeneration

from tests.adapters import adapters_over
from tests.checkpoints import word_model
from tests.served_models import add_local, environment, served_of
from tests.shell import Shell
from tests.stub_openai import StubServer

pytestmark = [pytest.mark.usefixtures("vendor_environment"), pytest.mark.parametrize("database_url", [""])]

Run = Callable[..., Result]


@pytest.fixture
def run(app: Flask) -> Run:
    return lambda *arguments: app.test_cli_runner().invoke(args=arguments)


def refused(result: Result) -> str:
    """The one line of a command that has refused."""
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.output
    return str(result.stderr).removeprefix("Error: ").strip()


def test_what_cannot_be_served_is_refused_before_anything_is_loaded(engine: Engine, run: Run, stub: StubServer) -> None:
    add_local(engine)
    for arguments, line in (
        (("scripted",), "model: expected a local model, got 'scripted', which is scripted"),
        (("nobody",), "model: expected one of scripted"),
        (("mine", "--engine", "ollama"), "Invalid value for '--engine': 'ollama' is not one of 'transformers', 'vllm'"),
        (("mine", "--engine", "vllm"), "--engine: expected vLLM, got no program vllm here; pip install vllm"),
        (("mine", "--engine", "llama.cpp"), "--address: expected the address of llama.cpp's server, which is started"),
        (("mine", "--port", str(stub.port)), f"--port: expected a port that nothing listens on, got {stub.port}; name"),
        (("mine", "--host", "192.0.2.1"), "--host: expected an address of this machine, got '192.0.2.1' ("),
        (("mine", "--lora-rank", "8"), "--lora-rank: expected it with --engine vllm only, got transformers"),
        (("mine", "--model", "m"), "--model: expected it with an --address only, got 'm'"),
        (("mine", "--address", stub.url, "--port", "1"), "--address: expected it without --port and arguments of an"),
        (("mine", "--address", "ftp://host"), "base_url: expected an address such as https://host/v1, http or https,"),
        (("mine", "--address", "http://169.254.169.254/v1"), "base_url: expected the address of a model's server, got"),
        (("mine", "--address", stub.url), "--model: expected the name of the model at --address, got none, and the"),
    ):
        assert refused(run("model", "serve", *arguments)).startswith(line), arguments
    assert served_of(engine) is None


def test_a_model_of_a_host_that_the_operator_does_not_allow_is_not_served(
    app: Flask, engine: Engine, shell: Shell
) -> None:
    add_local(engine)
    line = "base_url: expected a host that API_HOSTS allows (api.openai.com), got '127.0.0.1'"
    result = shell.flask(("model", "serve", "mine"), env={**environment(app), "API_HOSTS": "api.openai.com"})
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {line}")


def without_tokenizer(folder: Path) -> str:
    for path in folder.glob("tokenizer*"):
        path.unlink()
    return "expected a tokenizer beside the weights, got none"


def half_written(folder: Path) -> str:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    return "expected a causal language model that can be loaded, got"


def of_another_kind(folder: Path) -> str:
    T5ForConditionalGeneration(
        T5Config(vocab_size=64, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    ).save_pretrained(folder)
    return "expected a causal language model that can be loaded, got"


@pytest.mark.parametrize(
    "broken",
    [half_written, *(pytest.param(each, marks=pytest.mark.long) for each in (without_tokenizer, of_another_kind))],
)
def test_a_checkpoint_that_cannot_play_is_refused_with_the_reason(
    engine: Engine, run: Run, tmp_path: Path, broken: Callable[[Path], str]
) -> None:
    folder = tmp_path / "small"
    sha256 = word_model(folder)
    (folder / "parlor.json").unlink()
    reason = broken(folder)
    add_local(engine, path=str(folder), sha256=sha256)
    assert refused(run("model", "serve", "mine")).startswith(f"path: {folder}: {reason}")
    assert served_of(engine) is None


def test_adapters_that_are_not_those_of_the_row_are_refused_and_not_left_merged(
    engine: Engine, run: Run, tmp_path: Path, home: Path
) -> None:
    word_model(tmp_path / "base")
    adapters_over(tmp_path / "base", tmp_path / "small")
    add_local(engine, path=str(tmp_path / "small"))
    assert refused(run("model", "serve", "mine")).startswith(
        f"{tmp_path / 'small'}: expected the checkpoint with hash 000000000000…, got "
    )
    assert list((home / "merged").iterdir()) == []
    assert served_of(engine) is None
