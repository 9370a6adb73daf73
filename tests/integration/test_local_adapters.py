"""Adapters in the worker's own engine: they share their base's weights, and say what their merged checkpoint says."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine

from app.cli.model_checks import models
from app.core.extensions import reading
from app.core.failures import DENIED
from app.inference import loading, scheduler
from app.inference.requests import Checkpoint, Completion, GenerationFailure, GenerationRequest, Sampling
from app.inference.runner import ModelRunner
from app.inference.weights import parameters
from app.registry import get_model, list_models
from tests.adapters import adapters_over, cut_off, merged_into, of_other_hash, removed
from tests.checkpoints import bytes_model, register
from tests.experimenter import signed_in

GREEDY = Sampling(0, None, None)
CHATS = [[{"role": "user", "content": f"{'I want 2 books and the hats. ' * number}{number}"}] for number in range(1, 7)]


@pytest.fixture(autouse=True)
def fresh_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_engines", type(scheduler._engines)())
    monkeypatch.setattr(scheduler, "_figures", {})
    monkeypatch.setattr(loading, "_whole", type(loading._whole)())


def over(tmp_path: Path, kind: str) -> dict[str, Checkpoint]:
    """A base, two adapters over it, and the checkpoints into which these are merged."""
    base = tmp_path / "base"
    hashes = {"base": bytes_model(base, kind)}
    for seed, name in enumerate(("one", "two"), 1):
        hashes[name] = adapters_over(base, tmp_path / name, seed)
        hashes[f"merged {name}"] = merged_into(base, tmp_path / name, tmp_path / f"merged {name}")
    return {name: Checkpoint(tmp_path / name, sha256, "cpu", "float32") for name, sha256 in hashes.items()}


async def say(checkpoint: Checkpoint, chat: list[dict[str, str]]) -> Completion:
    answer = await ask(checkpoint, chat)
    assert isinstance(answer, Completion), answer
    return answer


async def ask(checkpoint: Checkpoint, chat: list[dict[str, str]]) -> Completion | GenerationFailure:
    loop = asyncio.get_running_loop()
    request = GenerationRequest(chat, GREEDY, 12, None, loop, loop.create_future())
    return await scheduler.complete(checkpoint, request, 8)


def together(*checkpoints: Checkpoint) -> list[list[Completion]]:
    """What each says to all chats, all of them asked at once."""

    async def everybody() -> list[Completion]:
        return await asyncio.gather(*(say(one, chat) for one in checkpoints for chat in CHATS))

    said = asyncio.run(everybody())
    return [said[at : at + len(CHATS)] for at in range(0, len(said), len(CHATS))]


def ids(answers: Sequence[Completion]) -> list[list[int]]:
    return [each.ids for each in answers]


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2"])
def test_adapters_say_what_their_merged_checkpoint_says_alone_and_beside_others(tmp_path: Path, kind: str) -> None:
    """gemma2 is answered by the library's own loop."""
    found = over(tmp_path, kind)
    merged = {name: together(found[f"merged {name}"])[0] for name in ("one", "two")}
    alone = together(found["one"])[0]
    base, one, two = together(found["base"], found["one"], found["two"])
    assert ids(alone) == ids(one) == ids(merged["one"])
    assert ids(two) == ids(merged["two"])
    assert ids(one) != ids(two) != ids(base) != ids(one)
    for answer, of_merged in zip([*one, *two], [*merged["one"], *merged["two"]], strict=True):
        assert answer.log_probs == pytest.approx(of_merged.log_probs, abs=1e-4)
        assert answer.prompt_sha256 == of_merged.prompt_sha256


def test_all_adapters_over_a_base_compute_with_one_copy_of_its_weights(tmp_path: Path) -> None:
    found = over(tmp_path, "llama")
    runners = [ModelRunner(found[name], lambda: 1 << 24) for name in ("base", "one", "two")]
    shared = [{each.data_ptr() for each in runner._model.parameters()} for runner in runners]
    assert shared[0] < shared[1]
    assert shared[0] < shared[2]
    assert shared[1] & shared[2] == shared[0]
    assert len(loading._whole) == 1
    del runners
    assert len(loading._whole) == 0


def test_the_base_counts_once_among_the_memory_of_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = over(tmp_path, "llama")
    base, one = (4 * (parameters(found[name].folder) or 0) for name in ("base", "one"))
    assert base < one < 2 * base
    monkeypatch.setattr(scheduler, "_model_bytes", base + 2 * (one - base))
    together(found["base"], found["one"])
    assert scheduler.has_room(found["two"])
    assert not scheduler.has_room(found["merged one"])
    together(found["two"])
    assert set(scheduler._engines) == {found[name] for name in ("base", "one", "two")}
    assert [each.weights for each in scheduler.engine_figures()] == [base, one, one]
    together(found["merged one"])
    assert found["base"] not in scheduler._engines


@pytest.mark.parametrize("database_url", [""])
@pytest.mark.parametrize(
    ("harm", "line"),
    [
        (lambda base, _: of_other_hash(base), "base: expected the checkpoint with hash "),
        (lambda base, _: removed(base), "one: expected the base of its adapters in "),
        (lambda _, adapters: cut_off(adapters), "one: expected the checkpoint with hash "),
    ],
    ids=["another base", "no base", "cut off"],
)
def test_adapters_that_cannot_play_are_not_registered(
    app: Flask, engine: Engine, tmp_path: Path, harm: Callable[[Path, Path], Any], line: str
) -> None:
    base, adapters = tmp_path / "base", tmp_path / "one"
    bytes_model(base, "llama")
    adapters_over(base, adapters)
    harm(base, adapters)
    result = app.test_cli_runner().invoke(args=["model", "add-local", "one", "--path", str(adapters)])
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.output
    assert line in result.stderr
    with reading(engine) as session:
        assert "one" not in {row.name for row in list_models(session)}


@pytest.mark.parametrize("database_url", [""])
def test_adapters_know_the_model_of_their_base_and_show_it(app: Flask, engine: Engine, tmp_path: Path) -> None:
    base, adapters = tmp_path / "base", tmp_path / "one"
    register(engine, "base", base, bytes_model(base, "llama"))
    adapters_over(base, adapters)
    run = app.test_cli_runner()
    added = run.invoke(args=["model", "add-local", "one", "--path", str(adapters), "--json"])
    assert added.exit_code == 0, added.output
    assert json.loads(added.stdout)["adapters_over"] == "base"
    assert "adapters over" in run.invoke(args=["model", "show", "one"]).stdout
    with reading(engine) as session:
        number = get_model(session, "one").id
    page = signed_in(app).get(f"/admin/models/{number}").get_data(as_text=True)
    assert re.search(r"Adapters \(LoRA\) over <a [^>]*>base</a>", page)

    def doctor() -> str:
        return next(each.detail for each in models(engine, tmp_path, lambda _: None) if each.subject == "model one")

    assert doctor() == f"{adapters} is there"
    removed(base)
    assert doctor() == f"the base of {adapters} is not here"


@pytest.mark.parametrize(
    ("harm", "line"),
    [
        (lambda base, _: of_other_hash(base), "base: expected the checkpoint with hash "),
        (lambda base, _: removed(base), "one: expected the base of its adapters in "),
        (lambda _, adapters: cut_off(adapters), "it was changed"),
        (lambda _, adapters: (adapters / "adapter_model.safetensors").unlink(), "expected weights as "),
        (lambda _, adapters: (adapters / "parlor.json").write_text("{}"), "expected adapters whose parlor.json names"),
    ],
    ids=["another base", "no base", "cut off", "no weights", "of no base"],
)
def test_adapters_that_cannot_be_played_with_say_why_in_a_line(
    tmp_path: Path, harm: Callable[[Path, Path], Any], line: str
) -> None:
    base, adapters = tmp_path / "base", tmp_path / "one"
    bytes_model(base, "llama")
    checkpoint = Checkpoint(adapters, adapters_over(base, adapters), "cpu", "float32")
    harm(base, adapters)
    found = asyncio.run(ask(checkpoint, CHATS[0]))
    assert isinstance(found, GenerationFailure)
    assert (found.kind, found.what.count("\n")) == (DENIED, 0)
    assert line in found.what
