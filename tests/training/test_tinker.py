"""Trainings at Tinker: the same losses, steps and weights as here, on a server that really trains."""

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("tinker")

from tests.stub_tinker import KEY, OPEN_MODEL, StubTinker
from tests.training.conftest import events_in
from training import checkpoints
from training.tinker.__main__ import main

FIELDS = {"learning_rate": 0.003, "schedule": "constant", "warmup": 0, "max_steps": 6, "batch": 4, "accumulation": 2}
LOSSES = {"sft": {}, "sft-kl": {"kl": 0.3}, "offline-po": {"kl": 0.3, "sft_weight": 0.7}, "stable-alignment": {}}
Config = Callable[..., Path]


@pytest.fixture
def start(base: Path, tmp_path: Path) -> Path:
    """The base without dropout, which would draw other numbers there."""
    model, tokenizer = checkpoints.load(base)
    model.config.attention_dropout = 0.0
    folder = tmp_path / "start"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def tinker(start: Path) -> Iterator[StubTinker]:
    with StubTinker(start) as server:
        yield server


@pytest.fixture
def at_tinker(tinker: StubTinker, tmp_path: Path, train: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Trains there: takes a method, rows, the name of the host, and fields of the training."""
    monkeypatch.setenv("SOME_KEY", KEY)

    def run(method: str, data: Path, *, host: str = "127.0.0.1", **fields: Any) -> int:
        service = tinker.service.replace("127.0.0.1", host)
        place = {"service": service, "model": OPEN_MODEL, "key_env": "SOME_KEY", "tokenizer": None, "label": "m"}
        usual = {"data": str(data), "output": str(tmp_path / "result.json"), "run": str(tmp_path / "run")}
        config = tmp_path / "there.json"
        config.write_text(json.dumps({**usual, "lora_rank": 8, "save_every": 1, **fields, "at": place}))
        return main([method, "--config", str(config), "--progress", str(tmp_path / "there.jsonl")])

    return run


def rows_for(method: str, data: Path, data_of: dict[str, Path]) -> Path:
    return data_of.get(method, data)


@pytest.mark.parametrize("method", LOSSES)
def test_each_step_has_the_loss_that_it_has_here_and_comes_to_the_same_weights(
    method: str, start: Path, data: Path, data_of: dict[str, Path], config_file: Config, train: Callable[..., int],
    at_tinker: Callable[..., int], tinker: StubTinker, tmp_path: Path,
) -> None:  # fmt: skip
    rows, fields = rows_for(method, data, data_of), FIELDS | LOSSES[method]
    here = config_file(data=str(rows), base=str(start), max_grad_norm=0, **fields)
    assert train(method, here, tmp_path / "here.jsonl") == 0
    assert at_tinker(method, rows, max_grad_norm=0, **fields) == 0
    for name in ("loss", "kl", "reward", "clip_fraction", "penalty"):
        found = [
            [each[name] for each in events_in(tmp_path / events) if each["event"] == "step" and name in each]
            for events in ("here.jsonl", "there.jsonl")
        ]
        assert found[1] == pytest.approx(found[0], rel=1e-4, abs=1e-5), name
    made = json.loads((tmp_path / "result.json").read_text())
    there = tinker.saved[made["model"]]["model"]
    model, _ = checkpoints.load(tmp_path / "config" / "model")
    for name, weights in model.state_dict().items():
        assert torch.allclose(weights, there[name], atol=1e-4), name
    assert set(tinker.saved) == {made["model"], made["model"].replace("/sampler_weights/", "/weights/")}
    assert (tinker.paid(), len(tinker.adam)) == (6, 6)
    assert {each["learning_rate"] for each in tinker.adam} == {0.003}


@pytest.mark.parametrize("every", [None, 2])
@pytest.mark.parametrize("method", LOSSES)
def test_rows_that_are_kept_aside_are_evaluated_on_as_here(
    method: str, every: int | None, start: Path, data: Path, data_of: dict[str, Path], config_file: Config,
    train: Callable[..., int], at_tinker: Callable[..., int], tinker: StubTinker, tmp_path: Path,
) -> None:  # fmt: skip
    rows, fields = rows_for(method, data, data_of), FIELDS | LOSSES[method]
    fields |= {"max_grad_norm": 0, "eval_share": 0.25, "eval_every": every}
    assert train(method, config_file(data=str(rows), base=str(start), **fields), tmp_path / "here.jsonl") == 0
    assert at_tinker(method, rows, **fields) == 0
    found = []
    for events in (events_in(tmp_path / "here.jsonl"), events_in(tmp_path / "there.jsonl")):
        evaluated = [each for each in events if each["event"] == "eval"]
        where = [(each["step"], each["steps"]) for each in evaluated]
        aside = [each["eval_rows"] for each in events if each["event"] == "started"]
        finished = [(each["step"], set(each["metrics"])) for each in events if each["event"] == "finished"]
        found.append((where, aside, finished, [each["loss"] for each in evaluated]))
    here, there = found
    assert there[:2] == here[:2]
    assert len(there[0]) > 1
    assert there[3] == pytest.approx(here[3], abs=1e-4)
    assert there[2][0][0] == here[2][0][0]
    assert here[2][0][1] <= there[2][0][1]


def test_the_best_evaluation_becomes_the_result_and_patience_ends_the_training(
    start: Path, data: Path, config_file: Config, train: Callable[..., int], at_tinker: Callable[..., int],
    tinker: StubTinker, tmp_path: Path,
) -> None:  # fmt: skip
    """With so high a learning rate the first evaluations are worse again and again."""
    fields = FIELDS | {"learning_rate": 0.5, "max_steps": 20, "eval_share": 0.25, "eval_every": 1, "patience": 2}
    fields["max_grad_norm"] = 0
    assert train("sft", config_file(data=str(data), base=str(start), **fields), tmp_path / "here.jsonl") == 0
    kept: dict[str, Any] = {}
    for step in range(1, 21):
        tinker.on("save_weights", step, "after", lambda: kept.update(tinker.saved))
    assert at_tinker("sft", data, **fields) == 0
    found = [
        [(each["event"], each["step"]) for each in events_in(tmp_path / name) if each["event"] in ("eval", "finished")]
        for name in ("here.jsonl", "there.jsonl")
    ]
    assert found[1] == found[0]
    assert len(found[0]) < 20
    best = found[1][-1][1]
    assert best < found[1][-2][1]
    made = json.loads((tmp_path / "result.json").read_text())
    [at_best] = [state for path, state in kept.items() if path.endswith(f"/step-{best}")]
    there = tinker.saved[made["model"]]["model"]
    assert all(torch.equal(weights, there[name]) for name, weights in at_best["model"].items())
    assert made["step"] == best
    assert set(tinker.saved) == {made["model"], made["model"].replace("/sampler_weights/", "/weights/")}


# ---- Connections -----------------------------------------------------------------


def failure(tmp_path: Path) -> str:
    [message] = [each["message"] for each in events_in(tmp_path / "there.jsonl") if each["event"] == "failed"]
    assert KEY not in message
    return str(message)


def test_a_name_that_leads_to_a_metadata_service_by_the_time_of_a_call_is_not_called(
    data: Path, at_tinker: Callable[..., int], tinker: StubTinker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leads_to = ["127.0.0.1"]
    real = socket.getaddrinfo

    def look_up(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        return real(leads_to[-1] if host == "tinker.example" else host, port, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    tinker.on("optim_step", 1, "after", lambda: leads_to.append("169.254.169.254"))
    assert at_tinker("sft", data, host="tinker.example", **FIELDS) == 2
    assert failure(tmp_path) == (
        "tinker.example: expected the address of a model's server, got 169.254.169.254, a link-local or"
        " cloud metadata address, where no model is"
    )
    assert (tinker.paid(), len(tinker.adam)) == (1, 1)


@pytest.mark.parametrize("status", [302, 307])
def test_no_redirect_is_followed_with_the_key(
    status: int, start: Path, data: Path, at_tinker: Callable[..., int], tinker: StubTinker, tmp_path: Path
) -> None:
    with StubTinker(start) as other:
        tinker.refuse("get_server_capabilities", status, "moved", Location=f"{other.service}/api/v1/capabilities")
        assert at_tinker("sft", data, **FIELDS) == 2
        assert other.paths == []
    assert failure(tmp_path) == (
        f"127.0.0.1: expected an answer, got a redirect (HTTP {status}), and none is followed; add the base with the"
        " address where it is"
    )


@pytest.mark.parametrize("proxied", [False, True])
def test_a_proxy_of_the_environment_is_used(
    proxied: bool, data: Path, at_tinker: Callable[..., int], tinker: StubTinker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stub answers whoever asks it for the address of another host, as a proxy would."""
    monkeypatch.setenv("HTTP_PROXY", tinker.service.removesuffix("/services/tinker"))
    monkeypatch.setenv("NO_PROXY", "" if proxied else "127.0.0.1")
    host = "somewhere.invalid" if proxied else "127.0.0.1"
    assert at_tinker("sft", data, host=host, **FIELDS) == 0
    assert tinker.paid() == 6
