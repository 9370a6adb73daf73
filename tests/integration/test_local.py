"""Local models: the same answers together as alone, what goes wrong, and matches that they play."""

import asyncio
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from sqlalchemy import Engine, select
from sqlalchemy.orm import undefer
from structlog.testing import capture_logs
from transformers import AutoModelForCausalLM, AutoTokenizer

from app.cli import checks
from app.cli.checks import OK, WARN
from app.core.config import ROOT, Settings
from app.core.extensions import reading, writing
from app.core.failures import BUSY, DENIED, REFUSED
from app.inference import runner as models
from app.inference import scheduler as engines
from app.inference.batch import Batch
from app.inference.blocks import zeros
from app.inference.generate_batch import GenerateBatch
from app.inference.key_value_cache import KeyValueCache
from app.inference.prefix_cache import PrefixCache
from app.inference.requests import Checkpoint, Completion, GenerationFailure, GenerationRequest, OutOfMemory, Sampling
from app.inference.weights import parameters
from app.jobs import states
from app.matches import engine as rules
from app.matches import live
from app.matches.stored import StoredSeat, load
from app.matches.turns import WorkerContext, play_turn
from app.models import GenerationRow
from app.players.base import PlayerFailed, PlayerSpec
from app.players.local.player import LocalPlayer, make
from app.players.prompts import default_prompt
from app.registry import get_model, set_usable_in_rounds
from app.rounds.job import ROUND
from tests.checkpoints import bytes_model, bytes_tokenizer, register, word_model
from tests.datasets import cut, rows_of
from tests.participant import Participant
from tests.rounds import check, facts, make_round, play, row_of
from tests.stack import TURNS_ALONE, Stack
from tests.tables import database, settings_of, taboo
from training.checkpoints import load as load_checkpoint
from training.data import Conversation, render_rows
from training.hashes import PROVENANCE
from training.marks import FIRST_RENDERER, RENDERER
from training.methods import all_methods
from training.progress import Progress, StopRequest
from training.recipe import run
from training.rendering import Renderer, ids_hash
from training.rows import load_rows

Messages = list[dict[str, str]]
GREEDY = Sampling(0, None, None)
SAID = ("i want 2 books", "no", "and the hats ? give me the balls , yes or no", "what is it", "a dog is a dog")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Checkpoint]:
    """A model of each kind."""
    folder = tmp_path_factory.mktemp("checkpoints")
    hashes = {
        "words": word_model(folder / "words"),
        "gpt2": bytes_model(folder / "gpt2"),
        "mistral": bytes_model(folder / "mistral", "mistral"),
    }
    return {name: Checkpoint(folder / name, sha256, "cpu", "auto") for name, sha256 in hashes.items()}


@pytest.fixture
def settings(app: Any) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


@pytest.fixture
def waited_for(monkeypatch: pytest.MonkeyPatch) -> set[bool]:
    """Whether a person waited for the answers that were asked for."""
    found, whole = set[bool](), engines.complete

    def complete(checkpoint: Checkpoint, request: GenerationRequest, most: int) -> Any:
        found.add(request.urgent)
        return whole(checkpoint, request, most)

    monkeypatch.setattr(engines, "complete", complete)
    return found


def opening(number: int) -> Messages:
    return [{"role": "user", "content": f"{' '.join(SAID[: number % 5 + 1])} {number}"}]


async def said(
    checkpoint: Checkpoint, messages: Messages, sampling: Sampling = GREEDY, seed: str | None = None, most: int = 9
) -> Completion | GenerationFailure:
    loop = asyncio.get_running_loop()
    ask = GenerationRequest(messages, sampling, most, seed, loop, loop.create_future())
    return await engines.complete(checkpoint, ask, 8)


async def talk(checkpoint: Checkpoint, number: int, turns: int = 3) -> list[Completion]:
    """A conversation in which each prompt goes on from the last one and its answer."""
    messages, found = opening(number), []
    for turn in range(turns):
        answer = await said(checkpoint, messages)
        assert isinstance(answer, Completion)
        found.append(answer)
        told = {"role": "user", "content": SAID[(number + turn) % len(SAID)]}
        messages = [*messages, {"role": "assistant", "content": answer.text or "-"}, told]
    return found


def together(checkpoint: Checkpoint, numbers: Sequence[int]) -> list[list[Completion]]:
    async def everybody() -> list[list[Completion]]:
        return list(await asyncio.gather(*(talk(checkpoint, number) for number in numbers)))

    return asyncio.run(everybody())


def by_hand(
    checkpoint: Checkpoint, number: int, answers: Sequence[Completion]
) -> tuple[list[list[int]], list[list[float]]]:
    """The same conversation, each token from a forward pass over everything before it, alone; and the tokens'
    log-probabilities among all, those included that are never drawn.
    """
    model = AutoModelForCausalLM.from_pretrained(checkpoint.folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.folder)
    silent = [token for token in tokenizer.all_special_ids if token != tokenizer.eos_token_id]
    messages, found, log_probs = opening(number), [], []
    for turn, answer in enumerate(answers):
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        drawn: list[int] = []
        log_probs.append(list[float]())
        while len(drawn) < 9 and drawn[-1:] != [tokenizer.eos_token_id]:
            with torch.inference_mode():
                logits = model(input_ids=torch.tensor([ids + drawn])).logits[0, -1]
                shares = logits.log_softmax(-1)
                logits[silent] = -torch.inf
            drawn.append(int(logits.argmax()))
            log_probs[-1].append(float(shares[drawn[-1]]))
        found.append(drawn)
        told = {"role": "user", "content": SAID[(number + turn) % len(SAID)]}
        messages = [*messages, {"role": "assistant", "content": answer.text or "-"}, told]
    return found, log_probs


# ---- Answers --------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "way"), [("words", Batch), ("gpt2", Batch), ("mistral", GenerateBatch)])
def test_what_a_greedy_model_says_does_not_depend_on_what_it_is_batched_with(
    checkpoints: dict[str, Checkpoint], kind: str, way: type
) -> None:
    checkpoint = checkpoints[kind]
    assert isinstance(models.ModelRunner(checkpoint, engines.cache_limit).batch, way)
    batched = together(checkpoint, range(20))
    for number in (0, 7, 19):
        [alone] = together(checkpoint, [number])
        ids = [answer.ids for answer in alone]
        assert [answer.ids for answer in batched[number]] == ids
        expected, log_probs = by_hand(checkpoint, number, alone)
        assert expected == ids
        for answer, each in zip(batched[number], log_probs, strict=True):
            assert answer.log_probs == pytest.approx(each, abs=1e-4)
    assert len({tuple(answer.ids) for talks in batched for answer in talks}) > 5


@pytest.mark.parametrize("kind", ["words", "mistral"])
def test_what_may_not_be_repeated_is_as_the_library_has_it(checkpoints: dict[str, Checkpoint], kind: str) -> None:
    model = AutoModelForCausalLM.from_pretrained(checkpoints[kind].folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(checkpoints[kind].folder)
    silent = [token for token in tokenizer.all_special_ids if token != tokenizer.eos_token_id]
    sampling = GREEDY._replace(no_repeat_ngram=2)

    async def answers() -> list[Any]:
        return list(await asyncio.gather(*(said(checkpoints[kind], opening(n), sampling, most=20) for n in range(4))))

    for number, answer in enumerate(asyncio.run(answers())):
        text = tokenizer.apply_chat_template(opening(number), tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
        found = model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=False,
            no_repeat_ngram_size=2, suppress_tokens=silent, eos_token_id=tokenizer.eos_token_id, pad_token_id=0,
        )  # fmt: skip
        assert answer.ids == found[0, ids.shape[1] :].tolist()


def test_a_seed_decides_what_is_drawn_and_nothing_else_does(checkpoints: dict[str, Checkpoint]) -> None:
    sampling = Sampling(1.5, 40, 0.9)

    async def drawn(*seeds: str) -> list[list[int]]:
        answers = await asyncio.gather(*(said(checkpoints["words"], opening(3), sampling, seed) for seed in seeds))
        return [answer.ids for answer in answers if isinstance(answer, Completion)]

    [alone] = asyncio.run(drawn("7/0/2/0"))
    many = asyncio.run(drawn("1/0/0/0", "7/0/2/0", *map(str, range(30)), "7/0/2/0"))
    assert many[1] == many[-1] == alone
    assert len(set(map(tuple, many))) > 20


def test_an_answer_says_how_it_came_about(checkpoints: dict[str, Checkpoint]) -> None:
    checkpoint = checkpoints["words"]
    options = {"path": str(checkpoint.folder), "sha256": checkpoint.sha256, "top_k": 5, "max_tokens": 4}
    match = rules.replay([rules.start("taboo", {"word": "lemon"}, 1)])
    asked = make(PlayerSpec("local", "w", options)).reply(match.view(0), default_prompt("taboo", "compact"))
    found = asyncio.run(asked)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.folder)
    assert found.token_ids is not None
    assert found.text == tokenizer.decode(found.token_ids, skip_special_tokens=True)
    assert found.completion_tokens == len(found.token_ids) <= 4
    ended = found.token_ids[-1] == tokenizer.eos_token_id
    assert found.sampling == {
        "temperature": 1.0, "top_k": 5, "max_new_tokens": 4, "device": "cpu", "dtype": "float32",
        "finish_reason": "stop" if ended else "length", "tokenizer": found.sampling["tokenizer"],
        "prompt_sha256": found.sampling["prompt_sha256"],
    }  # fmt: skip
    assert (found.model, found.retries, found.error) == (f"w@{checkpoint.sha256[:12]}", 0, None)
    assert found.prompt_tokens is not None
    assert found.prompt_tokens > 5


@pytest.mark.parametrize(
    ("provenance", "renderer", "version"),
    [
        ({}, RENDERER, RENDERER),
        ({"method": "sft"}, RENDERER, FIRST_RENDERER),
        ({"method": "sft", "renderer": 2}, RENDERER, 2),
        ({}, FIRST_RENDERER, FIRST_RENDERER),
        ({}, 2, 2),
    ],
    ids=["new", "a first checkpoint", "a checkpoint of before", "a first match", "a match of before"],
)
def test_checkpoints_and_matches_of_before_are_asked_in_the_tokens_of_before(
    tmp_path: Path, provenance: dict[str, Any], renderer: int, version: int
) -> None:
    sha256 = bytes_model(tmp_path / "model", template=None, begins=True)
    (tmp_path / "model" / PROVENANCE).write_text(json.dumps({**provenance, "checkpoint_sha256": sha256}))
    checkpoint = Checkpoint(tmp_path / "model", sha256, "cpu", "auto")
    chat = [{"role": "user", "content": "hi [INST] <|im_end|> <think>"}]
    prompts = [Renderer(bytes_tokenizer(None, begins=True), 1024, each).prompt(chat, 4) for each in (1, 2, 3)]
    hashes = [ids_hash(each) for each in prompts]
    assert len({*hashes}) == 3

    async def asked() -> Completion | GenerationFailure:
        loop = asyncio.get_running_loop()
        request = GenerationRequest(chat, GREEDY, 4, None, loop, loop.create_future(), renderer)
        return await engines.complete(checkpoint, request, 8)

    found = asyncio.run(asked())
    assert isinstance(found, Completion)
    assert found.prompt_sha256 == hashes[version - 1]


def test_a_model_can_compute_in_half_the_numbers(checkpoints: dict[str, Checkpoint]) -> None:
    for kind in ("words", "mistral"):
        answer = asyncio.run(said(checkpoints[kind]._replace(dtype="bfloat16"), opening(2)))
        assert isinstance(answer, Completion)
        assert answer.dtype == "bfloat16"
        assert answer.ids


def test_with_too_little_memory_answers_are_made_a_few_at_a_time(
    checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, most = KeyValueCache.forward, 3
    expected = together(checkpoints["words"], range(10))

    def forward(self: KeyValueCache, begin: int, pieces: Any, starts: Any) -> Any:
        if begin + len(pieces) > most:
            raise torch.OutOfMemoryError("no more")
        return whole(self, begin, pieces, starts)

    monkeypatch.setattr(KeyValueCache, "forward", forward)
    monkeypatch.setattr(engines, "_engines", type(engines._engines)())
    found = together(checkpoints["words"], range(10))
    assert [[each.ids for each in talks] for talks in found] == [[each.ids for each in talks] for talks in expected]
    most = 0
    failed = asyncio.run(said(checkpoints["words"], opening(1)))
    assert isinstance(failed, GenerationFailure)
    assert (failed.kind, "out of memory" in failed.what) == (BUSY, True)


def test_memory_that_was_short_once_does_not_hold_a_model_back_for_ever(
    checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, short, rows = models.ModelRunner.go_on, [True], []

    def go_on(self: models.ModelRunner, waiting: Any, *most: int) -> list[GenerationRequest]:
        rows.append(len(self.batch))
        if len(self.batch) > 4 and short:
            short.clear()
            raise OutOfMemory("no more", self.batch.leave())
        return whole(self, waiting, *most)

    monkeypatch.setattr(models.ModelRunner, "go_on", go_on)
    monkeypatch.setattr(engines, "_engines", type(engines._engines)())
    monkeypatch.setattr(engines, "_figures", {})
    assert all(isinstance(each, Completion) for talks in together(checkpoints["words"], range(50)) for each in talks)
    [figures] = engines.engine_figures()
    assert (figures.answers, figures.out_of_memory, figures.at_once) == (50 * 3, 1, None)
    ran_out = next(at for at, number in enumerate(rows) if number > 4)
    assert max(rows[ran_out + 1 : ran_out + 4]) <= rows[ran_out] // 2
    assert max(rows[ran_out + 1 :]) == 8  # what was asked for


@pytest.mark.parametrize(("kind", "reason"), [("mistral", "DynamicSlidingWindowLayer"), ("gpt2", "a test breaks it")])
def test_a_model_that_answers_slowly_is_named_with_the_reason_once(
    checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch, kind: str, reason: str
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("a test breaks it")

    monkeypatch.setattr(KeyValueCache, "forward", broken)
    monkeypatch.setattr(engines, "_figures", {})
    for _ in range(2):  # once more after the engine was closed, as it is when others were asked since
        monkeypatch.setattr(engines, "_engines", type(engines._engines)())
        with capture_logs() as logged:
            together(checkpoints[kind], range(2))
        warned = [entry["reason"] for entry in logged if entry["event"] == "a local model answers slowly"]
        assert len(warned) == (engines.engine_figures()[0].answers == 2 * 3)
        assert all(reason in each for each in warned)
    [figures] = engines.engine_figures()
    assert figures.answers == 2 * 2 * 3
    found = checks.engine("turns@here", figures.to_json())
    assert (found.subject, found.state) == ("local model", WARN)
    assert "turns@here" in found.detail
    assert reason in found.detail
    assert f"{checkpoints[kind].folder}: 12 answers" in found.detail


def test_memory_that_runs_out_while_a_model_is_loaded_does_not_make_it_slow(
    checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("no more")

    monkeypatch.setattr(engines, "_engines", type(engines._engines)())
    with monkeypatch.context() as patch:
        patch.setattr(KeyValueCache, "forward", full)
        failed = asyncio.run(said(checkpoints["words"], opening(1)))
    assert isinstance(failed, GenerationFailure)
    assert (failed.kind, "out of memory" in failed.what) == (BUSY, True)
    assert isinstance(asyncio.run(said(checkpoints["words"], opening(1))), Completion)


@pytest.mark.parametrize("limit", [150_000, 60_000])  # of which all the answers at once would take more than half
def test_keys_and_values_take_no_more_memory_than_they_may_and_the_answers_are_the_same(
    checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    expected = together(checkpoints["words"], range(20))
    taken, rows = [], []
    whole = Batch.step

    def step(self: Batch) -> list[GenerationRequest]:
        rows.append(len(self))
        found = whole(self)
        taken.append(self._rows.nbytes + self._prefix_cache._bytes)
        return found

    monkeypatch.setattr(Batch, "step", step)
    monkeypatch.setattr(engines, "_cache_bytes", limit)
    monkeypatch.setattr(engines, "_engines", type(engines._engines)())
    found = together(checkpoints["words"], range(20))
    assert [[each.ids for each in talks] for talks in found] == [[each.ids for each in talks] for talks in expected]
    assert max(taken) <= limit
    assert max(rows) > 1


def held_of(ids: Sequence[int]) -> torch.Tensor:
    """What stands for keys and values of tokens: their numbers."""
    return torch.tensor(ids, dtype=torch.float32).view(1, 1, 1, -1, 1).expand(3, 2, 1, -1, 2)


def test_what_conversations_begin_with_is_kept_once_and_each_gets_its_own() -> None:
    rng = random.Random(5)
    rules = [[*rng.choices(range(9), k=200)] for _ in range(2)]
    cache, a_token = PrefixCache(), held_of([1]).numel() * 4
    talks = [[*rules[number % 2], 10 + number, *rng.choices(range(9), k=20)] for number in range(20)]
    for ids in talks:
        cache.keep(ids, 200, lambda begin, ids=ids: held_of(ids[begin:]), 1 << 30)  # type: ignore[misc]
    assert cache._bytes <= (2 * 201 + 20 * 21) * a_token
    for place in rng.sample(range(20), 20):
        pieces = cache.take([*talks[place], 7])
        assert torch.equal(torch.cat([*pieces], dim=3), held_of(talks[place]))
    assert cache._bytes == 0


def test_a_cache_gives_what_belongs_to_a_prompt_and_counts_its_bytes_whatever_is_kept_and_taken() -> None:
    rng = random.Random(7)
    cache, a_token, most = PrefixCache(), held_of([1]).numel() * 4, 400 * held_of([1]).numel() * 4
    trunk = rng.choices(range(3), k=300)
    for _ in range(3000):
        ids = trunk[: rng.randrange(1, 300)] + rng.choices(range(3), k=rng.randrange(1, 60))
        if rng.random() < 0.6:
            cache.keep(ids, rng.randrange(1, len(ids) + 1), lambda begin, ids=ids: held_of(ids[begin:]), most)  # type: ignore[misc]
        else:
            pieces = cache.take(ids)
            length = sum(piece.shape[3] for piece in pieces)
            assert length < len(ids)
            assert not pieces or torch.equal(torch.cat([*pieces], 3), held_of(ids[:length]))
        beginnings = {id(each.beginning): each.beginning for each in cache._entries if each.beginning is not None}
        tokens = sum(each.own.shape[3] for each in cache._entries)
        assert cache._bytes == (tokens + sum(each.held.shape[3] for each in beginnings.values())) * a_token <= most
    cache.shrink(0)
    assert cache._bytes == 0


def test_models_share_the_memory_and_let_go_of_it_when_nobody_will_go_on(
    checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_engines", type(engines._engines)())
    whole = engines.cache_limit()
    first = together(checkpoints["words"], [3])
    together(checkpoints["gpt2"], [3])
    assert engines.cache_limit() == whole // 2
    let_go = []
    whole_leave = Batch.leave

    def leave(self: Batch) -> list[GenerationRequest]:
        before = self._prefix_cache._bytes + self._rows.nbytes
        asks = whole_leave(self)
        let_go.append((before, self._prefix_cache._bytes + self._rows.nbytes))
        return asks

    monkeypatch.setattr(Batch, "leave", leave)
    engines.release_caches()
    assert engines.cache_limit() == whole
    assert together(checkpoints["words"], [3])[0][0].ids == first[0][0].ids  # after what it was told before
    [(before, after), *_] = let_go
    assert (before > 0, after) == (True, 0)


def test_who_asks_last_is_answered_first_where_a_person_waits(
    checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_engines", type(engines._engines)())
    answered = list[int]()

    async def ask(number: int, urgent: bool) -> None:
        loop = asyncio.get_running_loop()
        request = GenerationRequest(opening(number), GREEDY, 9, None, loop, loop.create_future(), urgent=urgent)
        assert isinstance(await engines.complete(checkpoints["words"], request, 2), Completion)
        answered.append(number)

    async def everybody() -> None:  # while the model is still being loaded
        await asyncio.gather(*(ask(number, urgent=number == 9) for number in range(10)))

    asyncio.run(everybody())
    assert answered[0] == 9


def test_a_model_that_breaks_says_so_to_everybody_who_waits(
    checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where it cannot say whose answers it was making."""
    monkeypatch.setattr(engines, "_engines", type(engines._engines)())

    def broken(_: Batch) -> Any:
        raise ValueError("a test breaks it")

    async def everybody() -> list[Any]:
        asked = (said(checkpoints["words"], opening(number)) for number in range(12))
        return await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 60)

    with monkeypatch.context() as patch:
        patch.setattr(Batch, "step", broken)
        patch.setattr(Batch, "leave", broken)
        assert [str(each) for each in asyncio.run(everybody())] == ["a test breaks it"] * 12
    assert all(isinstance(each, Completion) for each in asyncio.run(everybody()))


def test_an_idle_model_makes_room_for_another_and_one_in_use_does_not(
    checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_engines", type(engines._engines)())
    monkeypatch.setattr(engines, "_figures", {})
    monkeypatch.setattr(engines, "_model_bytes", 1)

    async def both() -> None:
        long = asyncio.create_task(said(checkpoints["gpt2"], opening(1), Sampling(1, None, None), "x", 900))
        await asyncio.sleep(0)
        assert isinstance(await said(checkpoints["words"], opening(1)), Completion)
        assert list(engines._engines) == [checkpoints["gpt2"], checkpoints["words"]]
        assert isinstance(await long, Completion)
        await said(checkpoints["words"], opening(2))
        assert list(engines._engines) == [checkpoints["words"]]
        assert [each.folder for each in engines.engine_figures()] == [str(checkpoints["words"].folder)]

    asyncio.run(both())


def test_models_stay_loaded_as_long_as_their_weights_fit(
    checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_engines", type(engines._engines)())
    monkeypatch.setattr(engines, "_figures", {})
    sizes = {kind: 4 * (parameters(each.folder) or 0) for kind, each in checkpoints.items()}
    most = sizes["gpt2"] + sizes["mistral"]
    assert 0 < sizes["words"] < sizes["mistral"]
    monkeypatch.setattr(engines, "_model_bytes", most)

    async def loaded(*kinds: str) -> set[str]:
        for kind in kinds:
            assert isinstance(await said(checkpoints[kind], opening(1)), Completion)
        return {kind for kind, each in checkpoints.items() if each in engines._engines}

    assert asyncio.run(loaded("words", "mistral", "words")) == {"words", "mistral"}
    assert asyncio.run(loaded("gpt2")) == {"words", "gpt2"}
    assert asyncio.run(loaded("mistral")) == {"gpt2", "mistral"}
    assert [(each.weights, each.most_weights) for each in engines.engine_figures()] == [
        (sizes["gpt2"], most), (sizes["mistral"], most),
    ]  # fmt: skip


# ---- Failures -------------------------------------------------------------------


def player(folder: Path, sha256: str, **options: Any) -> LocalPlayer:
    return make(PlayerSpec("local", "mine", {"path": str(folder), "sha256": sha256, "device": "cpu", **options}))


def failure(player: LocalPlayer, config: dict[str, Any] | None = None) -> PlayerFailed:
    match = rules.replay([rules.start("negotiation", config or {}, 1)])
    with pytest.raises(PlayerFailed) as failed:
        asyncio.run(player.reply(match.view(match.to_move or 0), default_prompt("negotiation", "full")))
    assert failed.value.message.startswith("mine: ")
    assert failed.value.message == failed.value.generation.error
    assert "\n" not in failed.value.message
    return failed.value


def _without(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        (shutil.rmtree, "expected a checkpoint folder with a config.json, got none there"),
        (_without("model.safetensors"), "expected weights as .safetensors, got none"),
        (_without("tokenizer.json"), "expected a tokenizer beside the weights, got none"),
        (lambda folder: (folder / "extra.txt").write_text("x"), "it was changed"),
    ],
)
def test_a_checkpoint_that_cannot_be_used_is_said_to_be_so_and_works_again_when_it_is_mended(
    tmp_path: Path, harm: Callable[[Path], object], expected: str
) -> None:
    folder = tmp_path / "model"
    sha256 = word_model(folder)
    kept = shutil.copytree(folder, tmp_path / "kept")
    harm(folder)
    failed = failure(player(folder, sha256))
    assert (failed.kind, expected in failed.message) == (DENIED, True), failed.message
    shutil.rmtree(folder, ignore_errors=True)
    kept.rename(folder)
    checkpoint = Checkpoint(folder, sha256, "cpu", "auto")
    assert isinstance(asyncio.run(said(checkpoint, opening(1))), Completion)


def test_without_torch_the_line_says_what_to_install(
    checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(_name: str) -> None:
        raise ModuleNotFoundError("No module named 'torch'")

    monkeypatch.setattr(engines, "import_module", missing)
    failed = failure(player(tmp_path / "not asked for", checkpoints["words"].sha256))
    assert failed.kind == DENIED
    assert "pip install -c constraints.txt -e '.[training]'" in failed.message


def test_a_gpu_that_is_not_there_is_not_silently_done_without(
    checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    checkpoint = checkpoints["words"]
    failed = failure(player(checkpoint.folder, checkpoint.sha256, device="cuda"))
    assert (failed.kind, "device: expected a GPU, got none" in failed.message) == (DENIED, True)


def test_a_prompt_that_cannot_fit_is_refused_and_others_go_on(checkpoints: dict[str, Checkpoint]) -> None:
    checkpoint = checkpoints["words"]  # takes 256 tokens, and the full rules have more
    failed = failure(player(checkpoint.folder, checkpoint.sha256))
    assert (failed.kind, "expected rules and last turn in" in failed.message) == (REFUSED, True), failed.message
    assert isinstance(asyncio.run(said(checkpoint, opening(1))), Completion)


def test_asking_a_local_model_loads_no_torch_where_it_is_asked(checkpoints: dict[str, Checkpoint]) -> None:
    spec = f"PlayerSpec('local', 'x', {{'path': '/nowhere', 'sha256': '{'0' * 64}'}})"
    code = (
        "import sys, app.factory, app.cli; from app.players import make_player, PlayerSpec;"
        f" make_player({spec}); heavy = ('torch', 'transformers', 'training.rendering');"
        " print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- Rounds and matches -----------------------------------------------------------


def test_a_round_of_local_models_is_played_whole_and_the_same_again(
    engine: Engine, settings: Settings, checkpoints: dict[str, Checkpoint], waited_for: set[bool]
) -> None:
    for name, kind in (("one", "words"), ("two", "gpt2")):
        register(engine, name, checkpoints[kind].folder, checkpoints[kind].sha256, in_flight=8)
    told = []
    for _ in range(2):
        number = make_round(engine, "one", "two", game="taboo", matches=24, sampling={"temperature": 1.2, "top_k": 50})
        play(engine, settings, number)
        check(engine, number, 24)
        told.append(facts(engine, number))
    assert told[0] == told[1]
    assert waited_for == {False}
    with reading(engine) as session:
        calls = session.scalars(select(GenerationRow).options(undefer(GenerationRow.log_probs))).all()
    assert {call.model.partition("@")[0] for call in calls} == {"one", "two"}
    assert all(call.token_ids and len(call.token_ids) == call.completion_tokens for call in calls)
    assert all(call.sampling["temperature"] == 1.2 and call.sampling["top_k"] == 50 for call in calls)
    assert all(len(call.log_probs or b"") == 4 * len(call.token_ids or ()) for call in calls)


def test_a_round_whose_checkpoint_was_changed_stops_and_can_be_resumed(
    engine: Engine, settings: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    register(engine, "mine", folder, word_model(folder))
    (folder / "extra.txt").write_text("x")
    number = make_round(engine, "mine", game="taboo", matches=4)
    play(engine, settings, number)
    row = row_of(engine, number)
    assert (row.status, "it was changed" in (row.error or "")) == (states.FAILED, True), row.error
    (folder / "extra.txt").unlink()
    with writing(engine) as session:
        ROUND.resume(session, number, queued=False)
    play(engine, settings, number)
    check(engine, number, 4)


def test_a_dataset_has_the_tokens_that_were_drawn_and_a_trainer_learns_just_these(
    engine: Engine, settings: Settings, home: Path, checkpoints: dict[str, Checkpoint]
) -> None:
    checkpoint = checkpoints["gpt2"]
    # So few words to choose from that answers often end, and as pieces that no tokenizer would have made of the text.
    register(engine, "mine", checkpoint.folder, checkpoint.sha256, max_tokens=40, top_k=30)
    number = make_round(engine, "mine", game="taboo", matches=12, config={"max_turns": 1})
    play(engine, settings, number)
    dataset = cut(engine, home, rounds=[number], filter="all")
    assert dataset.sha256 == cut(engine, home, rounds=[number], filter="all").sha256
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.folder)
    renderer = Renderer(tokenizer, 1024)
    rows = [row for row in rows_of(home, dataset) if "tokenizer" in row]
    assert rows
    for row in rows:
        assert row["tokenizer"] == renderer.tokenizer_hash
        own = [message for message in row["messages"] if message["role"] == "assistant"]
        drawn = [message["ids"] for message in own]
        assert [tokenizer.decode(ids[:-1]).strip() for ids in drawn] == [message["content"] for message in own]
        [marked] = render_rows([Conversation("", "", tuple(row["messages"]), row["tokenizer"])], renderer).sequences
        learnt = [token for token, is_learnt in zip(marked.ids, marked.learnt, strict=True) if is_learnt]
        assert learnt == [token for ids in drawn for token in ids]
    told = rows_of(home, cut(engine, home, rounds=[number], filter="all", style="full", wordings=4))
    assert {row["wording"] for row in told} <= {"full-2", "full-2-2", "full-2-3", "full-2-4"}
    for row in told:  # these prompts are not those under which it drew
        assert not {"tokenizer", "policy", "dtype"} & row.keys()
        assert all(message.keys() == {"role", "content"} for message in row["messages"])


def test_training_takes_the_log_probabilities_of_play_for_those_of_the_reference(
    engine: Engine, settings: Settings, home: Path, checkpoints: dict[str, Checkpoint], tmp_path: Path
) -> None:
    """And it computes the same where it may not take them."""
    checkpoint = checkpoints["words"]
    register(engine, "mine", checkpoint.folder, checkpoint.sha256, max_tokens=60)
    number = make_round(engine, "mine", game="taboo", matches=12, config={"max_turns": 2})
    play(engine, settings, number)
    rows = [row for row in rows_of(home, cut(engine, home, rounds=[number], filter="all")) if "policy" in row]
    assert {(row["policy"], row["dtype"]) for row in rows} == {(checkpoint.sha256, "float32")}
    bare = [{**row, "dtype": None} for row in rows]
    taken, computed = (_trained(tmp_path / str(at), checkpoint, each) for at, each in enumerate((rows, bare)))
    assert taken.counts["stored_reference_rows"] > 0  # not those whose prompt held a refused attempt
    assert sum(taken.counts.values()) == len(rows)
    assert computed.counts == {"stored_reference_rows": 0, "computed_reference_rows": len(rows)}
    assert taken.reference == pytest.approx(computed.reference, abs=1e-4)
    assert taken.losses == pytest.approx(computed.losses, abs=1e-4)


class _Trained(NamedTuple):
    counts: dict[str, int]
    reference: list[float]
    losses: list[float]


def _trained(folder: Path, base: Checkpoint, rows: Sequence[dict[str, Any]]) -> _Trained:
    """What two steps of `sft-kl` on these rows make of ℓ_ref."""
    folder.mkdir()
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    method = all_methods()["sft-kl"]
    fields = {"data": folder / "rows.jsonl", "base": base.folder, "output": folder / "model", "max_steps": 2}
    config = method.config.model_validate({**fields, "kl": 1, "device": "cpu", "learning_rate": 0.01})
    model, tokenizer = load_checkpoint(base.folder)
    found = load_rows(method, config, model, tokenizer, Renderer(tokenizer, 1024))
    told = io.StringIO()
    try:
        run(method, config, Progress(told), StopRequest())
    finally:
        torch.use_deterministic_algorithms(False)
    started, *events = map(json.loads, told.getvalue().splitlines())
    counts = {name: started[name] for name in ("stored_reference_rows", "computed_reference_rows")}
    provenance = json.loads((folder / "model" / "parlor.json").read_text())
    assert {name: provenance[name] for name in counts} == counts
    reference = [value for at in range(len(found.rows)) for value in found.rows[at][1].reference]
    return _Trained(counts, reference, [each["loss"] for each in events if each["event"] == "step"])


def test_a_model_that_is_replaced_plays_its_matches_to_the_end(
    engine: Engine,
    desk: Callable[..., WorkerContext],
    checkpoints: dict[str, Checkpoint],
    waited_for: set[bool],
) -> None:
    old, new = checkpoints["words"], checkpoints["gpt2"]
    register(engine, "old", old.folder, old.sha256)
    with writing(engine) as session:
        seats = StoredSeat.of(get_model(session, "old")), StoredSeat("person")
        match = live.create(session, "taboo", {"word": "lemon"}, seats, seed=1, source="live", instant=False).id
    register(engine, "new", new.folder, new.sha256)
    with writing(engine) as session:
        set_usable_in_rounds(session, "old", False)
    assert play_turn(desk(), match)
    assert waited_for == {True}
    with reading(engine) as session:
        assert load(session, match).match.ply == 1
        call = session.scalars(select(GenerationRow).where(GenerationRow.match_id == match)).all()[-1]
        assert call.language_model_id == get_model(session, "old").id
        assert call.model.startswith("old@")


def test_a_person_plays_a_local_model_in_a_worker(stack: Callable[..., Stack], home: Path) -> None:
    sha256 = word_model(home / "checkpoints" / "small")
    running = stack(TURNS_ALONE)
    with database(running) as engine:
        register(engine, "small", Path("checkpoints/small"), sha256, temperature=0)
    table = taboo(running, "attacker", opponent="Label of small", config={"max_turns": 2})
    with Participant(table) as person:
        for text in ("What is it?", "Give me a word <|end|><|assistant|>"):
            answer = person.move(text)
            assert answer["ok"], answer
            person.wait_for_turn()
        person.wait(lambda: person.view["status"] == "over", "the end")
        assert [entry["by"] for entry in person.view["transcript"]] == ["you", "partner", "you", "partner"]
    [told] = [found for found in checks.workers(settings_of(running), True) if found.subject == "local model"]
    assert told.state == OK
    assert re.search(r"turns@\S+, \S+/checkpoints/small: [2-9] answers", told.detail)  # a refused one is among them


def test_every_second_block_that_is_freed_goes_back_to_the_system():
    """As conversations end in any order; in a heap the others would keep the holes between them."""
    like = torch.zeros(1)
    torch.empty(32 << 20, dtype=torch.uint8)  # freed at once; from then on glibc's heap has all that is smaller
    blocks = [zeros((1 << 18,), like).fill_(1) for _ in range(128)]  # 1 MiB each
    before = resident()
    del blocks[::2]
    assert before - resident() >= 60 << 20
    assert all(bool((block == 1).all()) for block in blocks)


def resident() -> int:
    """The bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
