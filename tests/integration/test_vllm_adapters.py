"""Adapters that a running vLLM plays: handed to it under names of their own, taken from it again, refused in a line."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine

from app.assessments.job import ASSESSMENT
from app.benchmarks.job import BENCHMARK
from app.core.config import ROOT
from app.core.errors import Conflict, Invalid
from app.core.extensions import reading, writing
from app.matches import live
from app.matches.stored import StoredSeat
from app.model_calls import request_lifecycle
from app.models import ModelRequest
from app.players import make_player
from app.players.api.options import read_options as read_api_options
from app.players.base import ChatSampling, Generation, PlayerFailed
from app.players.local import vllm_adapters
from app.players.local.served_player import ServedPlayer
from app.players.local.serving import SERVER, STOPPED, VLLM, WORKER, ServedModel, TokenizerFacts
from app.registry import add_local_model, get_model, player_spec, serving
from app.registry.adapters import adapter_name, engine_of, play_as_base
from app.registry.changes import archive_model, clone_model, is_in_use
from app.registry.playing import playing
from app.registry.serving import set_play_with
from app.rounds.job import ROUND
from app.society.job import SOCIETY
from tests.adapters import adapters_over, cut_off
from tests.assessments import make_alignment, make_assessment
from tests.benchmarks import make_benchmark
from tests.campaigns import campaign_of, change
from tests.checkpoints import word_model
from tests.recipes import make_run
from tests.rounds import make_round
from tests.served_models import (
    WATCHER,
    add_local,
    begin,
    environment,
    row_named,
    served_by_command,
    served_model,
    served_of,
)
from tests.societies import make_society
from tests.stack import PATIENCE, wait_until
from tests.stub_vllm import VllmStub, log_prob_of
from training.check import facts
from workers import model_server
from workers.model_server import ModelServer, Timing

pytestmark = [pytest.mark.usefixtures("vendor_environment"), pytest.mark.parametrize("database_url", [""])]

CHAT = [{"role": "user", "content": "books: 3, hats: 2, balls: 1"}]


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no server had been handed anything by this process."""
    monkeypatch.setattr(vllm_adapters, "_loaded", {})


@pytest.fixture
def base(tmp_path: Path) -> Path:
    word_model(tmp_path / "base")
    return tmp_path / "base"


@pytest.fixture
def vllm(base: Path) -> Iterator[VllmStub]:
    with VllmStub(base, "base") as stub:
        yield stub


def add_base(engine: Engine, folder: Path, stub: VllmStub, name: str = "base", lora_rank: int | None = 16) -> None:
    """A base that a vLLM plays which takes adapters up to a rank."""
    found = facts(folder)
    add_local(engine, name, str(folder), found["sha256"])
    tokenizer = TokenizerFacts.model_validate(found["tokenizer"])
    begin(engine, name, vllm_of(stub, tokenizer=tokenizer, lora_rank=lora_rank))


def vllm_of(stub: VllmStub, **values: Any) -> ServedModel:
    usual: dict[str, Any] = {"engine": VLLM, "model": "base", "dtype": "float32", "lora_rank": 16}
    return served_model(stub.url, **{**usual, **values})


def add_adapters(engine: Engine, base: Path, name: str, seed: int = 1, play_with: str = "server") -> Path:
    """Adapters over the base as a model of their own; their folder."""
    folder = base.with_name(name)
    options = {"path": str(folder), "sha256": adapters_over(base, folder, seed)}
    with writing(engine) as session:
        add_local_model(session, name, None, [], options, adapter_of=facts(folder)["adapter_of"])
        set_play_with(session, name, play_with)
    return folder


def player_of(engine: Engine, name: str) -> ServedPlayer:
    with reading(engine) as session:
        player = make_player(player_spec(get_model(session, name)))
    assert isinstance(player, ServedPlayer)
    return player


def answers(*players: ServedPlayer, times: int = 1) -> list[Generation]:
    async def ask() -> list[Generation]:
        sampling = ChatSampling(max_tokens=40)
        return await asyncio.gather(*(each.complete(CHAT, sampling, "1") for each in players for _ in range(times)))

    return asyncio.run(ask())


def failure(player: ServedPlayer) -> PlayerFailed:
    with pytest.raises(PlayerFailed) as failed:
        answers(player)
    assert failed.value.message == failed.value.generation.error
    assert "\n" not in failed.value.message
    return failed.value


# ---- Played by the base's server -----------------------------------------------------------


def test_adapters_are_loaded_once_under_a_name_of_their_own_and_asked_by_it(
    engine: Engine, base: Path, vllm: VllmStub
) -> None:
    add_base(engine, base, vllm)
    one, two = add_adapters(engine, base, "one", 1), add_adapters(engine, base, "two", 2)
    found = answers(player_of(engine, "one"), player_of(engine, "two"), player_of(engine, "base"), times=8)
    answers(player_of(engine, "one"))
    with reading(engine) as session:
        names = {name: adapter_name(get_model(session, name)) for name in ("one", "two")}
        hashes = {name: get_model(session, name).options["sha256"][:12] for name in ("one", "two", "base")}
    assert names == {name: f"{name}@{hashes[name]}" for name in ("one", "two")}
    assert sorted(vllm.loads) == sorted(names.values())
    assert vllm.adapters == {names["one"]: str(one), names["two"]: str(two)}
    asked = [request.body["model"] for request in vllm.requests]
    assert {name: asked.count(name) for name in (*names.values(), "base")} == {
        names["one"]: 9, names["two"]: 8, "base": 8,
    }  # fmt: skip
    for call, name in zip(found, ["one"] * 8 + ["two"] * 8 + ["base"] * 8, strict=True):
        assert call.model == f"{name}@{hashes[name]}"
        assert (call.sampling["engine"], call.sampling["server"]) == ("vllm", vllm.url)
        assert call.token_ids
        assert call.log_probs == [log_prob_of(names.get(name, "base"))] * len(call.token_ids)


def test_a_server_that_has_forgotten_its_adapters_is_handed_them_again(
    engine: Engine, base: Path, vllm: VllmStub
) -> None:
    add_base(engine, base, vllm)
    add_adapters(engine, base, "one")
    player = player_of(engine, "one")
    answers(player)
    vllm.forget()
    assert all(
        each.text for each in answers(player, times=16)
    )  # the others are refused before the first has loaded them
    assert len(vllm.loads) == 2


def test_adapters_that_another_process_has_loaded_are_played_with(
    engine: Engine, base: Path, vllm: VllmStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_base(engine, base, vllm)
    add_adapters(engine, base, "one")
    answers(player_of(engine, "one"))
    monkeypatch.setattr(vllm_adapters, "_loaded", {})
    assert answers(player_of(engine, "one"))[0].text
    assert [status for _, _, status in vllm.calls] == [200, 400]


def without_updates(stub: VllmStub, _: Path) -> None:
    stub.updates = False


def of_small_rank(stub: VllmStub, _: Path) -> None:
    stub.most_rank = 1


def without_adapters(stub: VllmStub, _: Path) -> None:
    stub.most_rank = None


def elsewhere(stub: VllmStub, _: Path) -> None:
    stub.failing = 404, "Loading lora one failed: No adapter found for /data/one"


def ill(stub: VllmStub, _: Path) -> None:
    stub.failing = 500, "EngineCore encountered an issue."


def overloaded(stub: VllmStub, _: Path) -> None:
    stub.failing = 503, "The server is starting."


@pytest.mark.parametrize(
    ("harm", "kind", "line"),
    [
        (
            without_updates,
            "denied",
            "expected a vLLM that loads adapters as it runs, got one that does not",
        ),
        (of_small_rank, "denied", "LoRA rank 2 is greater than max_lora_rank 1.; raise --lora-rank of its command"),
        (without_adapters, "denied", "got HTTP 500: Call to add_lora method failed: LoRA is not enabled."),
        (
            elsewhere,
            "denied",
            "got HTTP 404: Loading lora one failed: No adapter found for /data/one; it needs",
        ),
        (ill, "busy", "got HTTP 500: EngineCore encountered an issue."),
        (overloaded, "busy", "got HTTP 503: The server is starting."),
        (lambda _, folder: cut_off(folder), "denied", "got others or none; put them back"),
    ],
    ids=["no updates", "rank", "no adapters", "not seen", "ill", "overloaded", "cut off"],
)
def test_why_adapters_are_not_loaded_is_said_in_a_line(
    engine: Engine, base: Path, vllm: VllmStub, harm: Callable[[VllmStub, Path], None], kind: str, line: str
) -> None:
    add_base(engine, base, vllm)
    folder = add_adapters(engine, base, "one")
    harm(vllm, folder)
    failed = failure(player_of(engine, "one"))
    assert line in failed.message
    assert f"at {vllm.url}: expected " in failed.message
    assert (failed.kind, failed.generation.outcome) == (kind, kind)
    assert not vllm.requests
    if harm in (ill, overloaded):
        vllm.failing = None
        assert answers(player_of(engine, "one"))[0].text


def test_a_server_that_is_away_is_waited_for(engine: Engine, base: Path, free_port: int) -> None:
    stub = VllmStub(base, "base", port=free_port)
    add_base(engine, base, stub)
    add_adapters(engine, base, "one")
    stub._server.server_close()
    assert failure(player_of(engine, "one")).kind == "busy"


def test_vllm_is_started_so_that_it_takes_adapters(app: Flask, engine: Engine, base: Path, tmp_path: Path) -> None:
    add_local(engine, "base", str(base), facts(base)["sha256"])
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tests.stub_vllm "$@"\n')
    program.chmod(0o755)
    env = environment(app)
    env |= {"PATH": f"{program.parent}:{env['PATH']}", "PYTHONPATH": str(ROOT)}
    log = tmp_path / "log"
    with served_by_command(env, log, "base", "--engine", "vllm", "--lora-rank", "3", "--every", "0.5") as process:
        wait_until(lambda: "base is served by vLLM" in log.read_text() or process.poll() is not None, "an engine")
        assert process.poll() is None, log.read_text()
        served = served_of(engine, "base")
        assert served is not None
        assert served.lora_rank == 8  # the least that vLLM has
        add_adapters(engine, base, "one")
        assert answers(player_of(engine, "one"))[0].text
        process.terminate()
        assert process.wait(PATIENCE) == 0


@pytest.mark.usefixtures("engine")
def test_adapters_are_unloaded_from_a_server_that_may_not_have_them(vllm: VllmStub) -> None:
    options = read_api_options({"model": "one@1", "base_url": vllm.url, "key_env": ""})
    asyncio.run(vllm_adapters.unload(options))
    assert vllm.calls == [("unload", "one@1", 404)]
    vllm.adapters["one@1"] = "/one"
    asyncio.run(vllm_adapters.unload(options))
    assert not vllm.adapters
    vllm.failing = 500, "Failed to remove lora adapter 'one@1' from the engine."
    with pytest.raises(
        vllm_adapters.AdaptersFailed, match=r"one@1 at .*: expected it to unload them, got HTTP 500: Fail"
    ):
        asyncio.run(vllm_adapters.unload(options))


# ---- Who plays them ------------------------------------------------------------------------


def test_adapters_play_with_workers_until_they_are_switched_and_again_when_switched_back(
    engine: Engine, base: Path, vllm: VllmStub
) -> None:
    add_base(engine, base, vllm)
    add_adapters(engine, base, "one", play_with="worker")
    with reading(engine) as session:
        assert player_spec(get_model(session, "one")).served is None
        assert get_model(session, "one").adapter_base is row_named(session, "base")
    with writing(engine) as session:
        set_play_with(session, "one", "server")
        spec = player_spec(get_model(session, "one"))
        assert spec.served is not None
        assert (spec.served["base_url"], spec.served["is_adapter"]) == (vllm.url, True)
        clone = clone_model(session, "one", "calm", options={"temperature": 0.2})
        assert clone.adapter_base is row_named(session, "base")
        assert adapter_name(clone) != adapter_name(get_model(session, "one"))
        assert is_in_use(session, row_named(session, "base"))


def test_adapters_cannot_be_switched_to_a_server_that_would_not_play_them(
    engine: Engine, base: Path, vllm: VllmStub
) -> None:
    add_base(engine, base, vllm, lora_rank=None)
    add_adapters(engine, base, "one", play_with="worker")
    line = "expected a model that was served, got 'one', which never was"
    with writing(engine) as session, pytest.raises(Conflict, match=line):
        set_play_with(session, "one", "server")
    with writing(engine) as session:
        archive_model(session, "base")
        row_named(session, "base").served = vllm_of(vllm).model_dump(mode="json")
    with writing(engine) as session, pytest.raises(Conflict, match="'base', which is; `flask model restore base`"):
        set_play_with(session, "one", "server")


def test_adapters_whose_base_lost_its_server_say_so(engine: Engine, base: Path, vllm: VllmStub) -> None:
    add_base(engine, base, vllm)
    add_adapters(engine, base, "one")
    with writing(engine) as session:
        row_named(session, "base").served = served_model(vllm.url).model_dump(mode="json")
    line = "expected a server of its own, or a vLLM that serves its base and takes adapters, got neither; `flask model"
    with reading(engine) as session, pytest.raises(Invalid, match=line):
        make_player(player_spec(get_model(session, "one")))


def test_a_server_of_the_adapters_own_goes_first_until_it_is_stopped(
    engine: Engine, base: Path, vllm: VllmStub
) -> None:
    add_base(engine, base, vllm)
    add_adapters(engine, base, "one")
    begin(engine, "one", served_model("http://127.0.0.1:1/v1", engine="transformers"))
    with writing(engine) as session:
        row = get_model(session, "one")
        own = engine_of(row)
        assert own is not None
        assert (own.base_url, own.is_adapter) == ("http://127.0.0.1:1/v1", False)
        serving.update(session, row.id, WATCHER, state=STOPPED)
        shared = engine_of(row)
        assert shared is not None
        assert (shared.base_url, shared.is_adapter) == (vllm.url, True)


@pytest.mark.parametrize(
    ("served", "rank", "archived", "expected"),
    [
        ({"lora_rank": 16}, 16, False, SERVER),
        ({"lora_rank": 16}, 17, False, WORKER),
        ({"lora_rank": 16}, 16, True, WORKER),
        ({"lora_rank": None}, 8, False, WORKER),
        ({"engine": "transformers", "lora_rank": None}, 8, False, WORKER),
    ],
    ids=["taken", "of a larger rank", "of an archived base", "of a vLLM without adapters", "of transformers serve"],
)
def test_what_is_trained_plays_as_what_it_was_trained_from_where_that_is_possible(
    engine: Engine, vllm: VllmStub, served: dict[str, Any], rank: int, archived: bool, expected: str
) -> None:
    add_local(engine, "base", sha256="1" * 64)
    begin(engine, "base", vllm_of(vllm, **served))
    with writing(engine) as session:
        if archived:
            archive_model(session, "base")
        before = get_model(session, "base")
        for number in (2, 3):  # the second goes on from the first, over the same base
            options = {"path": f"lora-{number}", "sha256": f"{number}" * 64}
            row = add_local_model(
                session, f"lora-{number}", None, [], options, adapter_of="1" * 64, trained_from=before
            )
            play_as_base(row, before, rank)
            assert (row.play_with, row.adapter_base) == (expected, get_model(session, "base"))
            before = row


# ---- Unloaded when nothing plays -----------------------------------------------------------


def test_adapters_with_which_nothing_plays_are_unloaded_and_loaded_for_the_next_call(
    app: Flask, engine: Engine, base: Path, vllm: VllmStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_server, "UNLOAD_EVERY", 0.05)
    add_base(engine, base, vllm)
    add_adapters(engine, base, "one", 1)
    add_adapters(engine, base, "two", 2)
    answers(player_of(engine, "one"), player_of(engine, "two"))
    one, two = sorted(vllm.adapters)
    vllm.adapters["of somebody else"] = "/elsewhere"
    round_id = make_round(engine, "one", "base", matches=1)
    with reading(engine) as session:
        row = row_named(session, "base")
        session.expunge_all()
    server = ModelServer(engine, app.config["SETTINGS"], row, Timing(0.1, 5, PATIENCE), ())

    async def until(gone: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while gone in vllm.adapters:
                await asyncio.sleep(0.01)

    async def watch() -> None:
        running = asyncio.create_task(server.run())
        await until(two)
        await asyncio.sleep(0.3)
        assert one in vllm.adapters
        with writing(engine) as session:
            ROUND.cancel(session, round_id)
        await until(one)
        server.stop()
        await running

    asyncio.run(watch())
    assert vllm.unloads == [two, one]
    assert list(vllm.adapters) == ["of somebody else"]
    assert answers(player_of(engine, "two"))[0].text
    assert vllm.loads[-1] == two


def test_whoever_plays_or_waits_is_known(app: Flask, engine: Engine, base: Path, vllm: VllmStub, home: Path) -> None:
    names = (
        "match", "asked", "agent", "observer", "rated", "rater", "scored", "learner", "partner", "aligned",
        "recipe", "idle",
    )  # fmt: skip
    numbers = {}
    for at, name in enumerate(names):
        numbers[name] = add_local(engine, name, sha256=f"{at:064d}")

    def play() -> set[str]:
        with reading(engine) as session:
            found = playing(session)
        return {name for name, number in numbers.items() if number in found}

    assert play() == set()
    with writing(engine) as session:
        for name in names:
            row_named(session, name).prompt_style = "compact"
        seats = StoredSeat("person"), StoredSeat.of(row_named(session, "match"))
        live.create(session, "negotiation", {}, seats, seed=3, source="live", instant=True)
        asked = request_lifecycle.create(session, row_named(session, "asked"), request_lifecycle.QUESTION, CHAT).id
    assert play() == {"match", "asked"}
    societies = make_society(engine, "agent", observers=["observer"])
    assessment = make_assessment(engine, "rated", "idle", "rater")
    benchmark = make_benchmark(engine, "scored")
    campaign = campaign_of(engine, "idle", partners=["partner"])
    change(engine, campaign, 0, model_id=numbers["idle"])
    change(engine, campaign, 1, model_id=numbers["learner"])
    make_alignment(engine, "idle", "alignment", raters=["aligned"])
    make_run(engine, player="recipe")
    assert play() == set(names)
    with writing(engine) as session:
        session.get_one(ModelRequest, asked).status = "done"
        SOCIETY.cancel(session, societies)
        ASSESSMENT.cancel(session, assessment)
        BENCHMARK.cancel(session, benchmark)
    assert play() == {"match", "learner", "partner", "aligned", "recipe"}
