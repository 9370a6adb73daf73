"""Rounds against a real model server: `transformers serve`, which loads real checkpoints."""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from flask import Flask
from sqlalchemy import Engine, func, select
from tokenizers import AddedToken
from transformers import AutoModelForCausalLM, AutoTokenizer, MistralConfig, MistralForCausalLM

from app.core.config import ROOT, Settings
from app.core.extensions import reading, writing
from app.models import GenerationRow, MatchRow
from app.players import make_player
from app.players.base import ChatPlayer, ChatSampling, Generation
from app.players.local.engines import merged_folder
from app.players.local.serving import SERVER, STOPPED
from app.registry import add_api_model, get_model, player_spec
from app.registry.serving import set_play_with
from tests.adapters import adapters_over
from tests.checkpoints import register
from tests.datasets import cut, rows_of
from tests.rounds import check, make_round, play, row_of
from tests.served_models import engine_pid, environment, served_by_command, served_of
from tests.shell import Finished
from tests.stack import PATIENCE, alive, wait_until
from tests.transformers_server import TransformersServer
from training.hashes import checkpoint_hash

pytestmark = pytest.mark.usefixtures("vendor_environment")

TINY = ROOT / "data" / "models" / "tiny"
NOT_BY_THE_RULES = {"aborted", "timeout", "resigned"}  # nobody of these has played a match to its end
THOUGHT = "i think about it ."


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]


def add_served(engine: Engine, server: TransformersServer, **options: Any) -> None:
    full = {
        "model": server.model, "base_url": server.url, "key_env": "", "temperature": 0.5, "max_tokens": 48,
        "in_flight": 4, "timeout": 120, **options,
    }  # fmt: skip
    with writing(engine) as session:
        add_api_model(session, "served", "Served", ["negotiation"], full, prompt_style="compact")


def ends(engine: Engine, round_id: int) -> Counter[str]:
    with reading(engine) as session:
        return Counter(session.scalars(select(MatchRow.reason).where(MatchRow.round_id == round_id)))


def test_a_round_through_a_served_model_outlives_the_death_of_its_engine(
    app: Flask, engine: Engine, settings: Settings, flask: Callable[..., Finished], tmp_path: Path
) -> None:
    """The one test of the whole way with a real engine, whose libraries take seconds to load."""
    register(engine, "local", TINY, checkpoint_hash(TINY), temperature=0.5, max_tokens=48)
    with served_by_command(environment(app), tmp_path / "log", "local", "--every", "0.5") as process:
        wait_until(
            lambda: (
                "local is served by transformers serve at http://" in (tmp_path / "log").read_text()
                or process.poll() is not None
            ),
            "an engine that answers",
        )
        assert process.poll() is None, (tmp_path / "log").read_text()
        twice = flask("model", "serve", "local")
        assert twice.exit_code == 2
        assert "expected one that is not served yet, got 'local', which is at http://127.0.0.1" in twice.stderr
        with writing(engine) as session:
            set_play_with(session, "local", SERVER)
            number = get_model(session, "local").id
        first = engine_pid(settings.home, number)
        round_id = make_round(engine, "local", matches=5)

        def kill_once() -> bool:
            if row_of(engine, round_id).finished and alive(first):
                os.kill(first, signal.SIGKILL)
            return False

        play(engine, settings, round_id, until=kill_once)
        assert not alive(first)
        process.terminate()
        assert process.wait(PATIENCE) == 0
    check(engine, round_id, 5)
    assert NOT_BY_THE_RULES.isdisjoint(ends(engine, round_id))
    served = served_of(engine, "local")
    assert served is not None
    assert (served.state, served.restarts) == (STOPPED, 1)
    with reading(engine) as session:
        moves = session.scalars(select(GenerationRow).where(GenerationRow.outcome == "move")).all()
    assert {(call.model, call.sampling["engine"]) for call in moves} == {
        (f"local@{checkpoint_hash(TINY)[:12]}", "transformers")
    }
    assert all(call.prompt_tokens and call.token_ids is None for call in moves)


def test_adapters_are_served_merged_and_say_what_a_worker_has_them_say(
    app: Flask, engine: Engine, settings: Settings, tmp_path: Path
) -> None:
    sha256 = adapters_over(TINY, tmp_path / "lora")
    register(engine, "lora", tmp_path / "lora", sha256, temperature=0, dtype="float32")
    with reading(engine) as session:
        merged = merged_folder(settings.home, get_model(session, "lora").id, sha256)
    left = merged.with_name("999-of-a-model-that-is-gone")
    left.mkdir(parents=True)
    os.utime(left, (0, 0))

    def says() -> Generation:
        chat = [{"role": "user", "content": "books: 3, hats: 2, balls: 1"}]
        with reading(engine) as session:
            player = cast(ChatPlayer, make_player(player_spec(get_model(session, "lora")), settings.home))
        return asyncio.run(player.complete(chat, ChatSampling(max_tokens=12)))

    with served_by_command(environment(app), tmp_path / "log", "lora", "--every", "0.5") as process:
        wait_until(
            lambda: "lora is served" in (tmp_path / "log").read_text() or process.poll() is not None, "an engine"
        )
        assert process.poll() is None, (tmp_path / "log").read_text()
        assert (merged / "model.safetensors").is_file()
        assert not left.exists()
        here = says()
        with writing(engine) as session:
            set_play_with(session, "lora", SERVER)
        there = says()
        process.terminate()
        assert process.wait(PATIENCE) == 0
    assert not merged.exists()
    assert (there.text, there.completion_tokens) == (here.text, here.completion_tokens)
    assert (there.model, there.sampling["engine"]) == (f"lora@{sha256[:12]}", "transformers")
    assert (there.token_ids, there.log_probs) == (None, None)  # which it does not tell: such answers are learnt as text


# ---- The long form: three kinds of checkpoints, and a server that is killed twice ----------


def shipped(folder: Path, engine: Engine, settings: Settings) -> Path:
    """The small model that Parlor comes with: Llama's architecture."""
    return TINY


def as_mistral(folder: Path, engine: Engine, settings: Settings) -> Path:
    """Its weights in Mistral's architecture, with a window that its rules and a few moves fill."""
    llama = AutoModelForCausalLM.from_pretrained(TINY)
    kept = (
        "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "head_dim",
        "num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "rope_parameters", "tie_word_embeddings",
        "bos_token_id", "eos_token_id", "pad_token_id",
    )  # fmt: skip
    shape = {name: getattr(llama.config, name) for name in kept}
    mistral = MistralForCausalLM(MistralConfig(**shape, sliding_window=128))
    mistral.load_state_dict(llama.state_dict())
    mistral.generation_config = llama.generation_config
    mistral.save_pretrained(folder)
    AutoTokenizer.from_pretrained(TINY).save_pretrained(folder)
    return folder


def thinking(folder: Path, engine: Engine, settings: Settings) -> Path:
    """It again with a template that opens a block of reasoning, taught by its own moves to write a thought first."""
    model, tokenizer = AutoModelForCausalLM.from_pretrained(TINY), AutoTokenizer.from_pretrained(TINY)
    conversations = its_own_conversations(engine, settings)
    tokenizer.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in ("<think>", "</think>")])
    tokenizer.chat_template = tokenizer.chat_template.replace(
        "<|assistant|>{% endif %}", "<|assistant|><think>{% endif %}"
    )
    model.resize_token_embeddings(len(tokenizer))
    model.config.vocab_size = len(tokenizer)
    examples = [example for messages in conversations for example in examples_of(tokenizer, messages)]
    drawn = random.Random(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(150):
        batch = drawn.sample(examples, 8)
        longest = max(len(tokens) for tokens, _ in batch)
        tokens = torch.tensor([[*each, *[tokenizer.pad_token_id] * (longest - len(each))] for each, _ in batch])
        labels = torch.full_like(tokens, -100)
        for row, (each, prompt) in enumerate(batch):
            labels[row, prompt : len(each)] = tokens[row, prompt : len(each)]
        optimizer.zero_grad()
        model(input_ids=tokens, labels=labels).loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def its_own_conversations(engine: Engine, settings: Settings) -> list[list[dict[str, str]]]:
    """What `tiny` said to itself in the worker's own engine, as rows of a dataset."""
    register(engine, "local", TINY, checkpoint_hash(TINY), temperature=0.5, max_tokens=48)
    round_id = make_round(engine, "local", matches=60)
    play(engine, settings, round_id)
    rows = rows_of(settings.home, cut(engine, settings.home, rounds=[round_id], filter="all"))
    return [row["messages"] for row in rows]


def examples_of(tokenizer: Any, messages: list[dict[str, str]]) -> Iterator[tuple[list[int], int]]:
    """For each answer: the tokens of its prompt, a thought and the answer, and how many are the prompt's."""
    for place, message in enumerate(messages):
        if message["role"] == "assistant":
            prompt = tokenizer.apply_chat_template(messages[:place], add_generation_prompt=True, return_dict=False)
            answer = tokenizer(f"{THOUGHT} </think> {message['content']}<|end|>")["input_ids"]
            yield [*prompt, *answer], len(prompt)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("checkpoint", [shipped, as_mistral, thinking])
def test_two_hundred_matches_outlive_two_kills_of_the_server(
    engine: Engine, settings: Settings, tmp_path: Path, checkpoint: Callable[[Path, Engine, Settings], Path]
) -> None:
    thinks = checkpoint is thinking
    with TransformersServer(checkpoint(tmp_path / "checkpoint", engine, settings), tmp_path / "served") as server:
        add_served(engine, server, **({"reasoning_room": 40} if thinks else {}))
        round_id = make_round(engine, "served", matches=200, seed=11)

        def kill_twice() -> bool:
            if server.kills < 2 and row_of(engine, round_id).finished >= (60, 130)[server.kills]:
                server.kill_and_start()
            return False

        play(engine, settings, round_id, until=kill_twice)
    assert server.kills == 2
    check(engine, round_id, 200)
    ended = ends(engine, round_id)
    print(f"{checkpoint.__name__}: {dict(ended)}")
    assert sum(number for reason, number in ended.items() if reason not in NOT_BY_THE_RULES) >= 60
    with reading(engine) as session:
        kept = select(GenerationRow.text, GenerationRow.reasoning).where(GenerationRow.error.is_(None))
        answers = session.execute(kept.where(GenerationRow.model.startswith(server.model))).all()
        failed = session.scalar(select(func.count()).where(GenerationRow.error.is_not(None)))
    assert failed
    assert all("think>" not in (text or "") for text, _ in answers)
    assert any(reasoning for _, reasoning in answers) == thinks
