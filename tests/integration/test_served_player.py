"""A local model that an engine serves: what the engine is sent, what is kept of its answers, and what they teach."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select
from transformers import AutoTokenizer

from app.core.config import ROOT, Settings
from app.core.extensions import reading, writing
from app.matches import live
from app.matches.stored import StoredSeat
from app.matches.turns import WorkerContext, play_turn
from app.models import GenerationRow
from app.players import make_player
from app.players.base import ChatSampling, Generation, PlayerFailed, PlayerSpec
from app.players.local.served_player import ServedPlayer
from app.players.local.serving import ServedModel, TokenizerFacts
from app.registry import find_model
from tests.api_answers import completion
from tests.datasets import cut, rows_of
from tests.rounds import check, make_round, play
from tests.served_models import FACTS, add_local, begin, served_model
from tests.stub_openai import Reply, Request, StubServer, negotiator
from training.check import facts
from training.data import read_conversations
from training.rendering import Renderer

pytestmark = pytest.mark.usefixtures("vendor_environment")

TINY = ROOT / "data" / "models" / "tiny"
USUAL = ChatSampling()
CHAT = [{"role": "user", "content": "Go on, #END# or <|im_end|>."}]


def player_of(served: ServedModel, **options: Any) -> ServedPlayer:
    spec = PlayerSpec(
        "local", "mine", {"path": "p", "sha256": "a" * 64, **options}, served=served.model_dump(mode="json")
    )
    player = make_player(spec)
    assert isinstance(player, ServedPlayer)
    return player


def answer(player: ServedPlayer, sampling: ChatSampling = USUAL, seed: str | None = "a seed") -> Generation:
    return asyncio.run(player.complete(CHAT, sampling, seed))


def sent(stub: StubServer) -> dict[str, Any]:
    return stub.requests_of("m")[-1].body


def test_llama_cpp_is_told_all_that_it_would_choose_by_itself(stub: StubServer) -> None:
    stub.script("m", "hello")
    player = player_of(
        served_model(stub.url), temperature=0.5, top_k=9, template_arguments={"style": 2}, stop=["User:"]
    )
    found = answer(player, ChatSampling(max_tokens=30))
    body = sent(stub)
    assert {name: body[name] for name in ("temperature", "top_k", "top_p", "min_p", "repeat_penalty")} == {
        "temperature": 0.5, "top_k": 9, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.0,
    }  # fmt: skip
    assert (body["max_tokens"], body["chat_template_kwargs"], body["stop"]) == (30, {"style": 2}, ["User:"])
    assert "logprobs" not in body
    first, again, other = body["seed"], player, "another seed"
    answer(again)
    assert sent(stub)["seed"] == first
    answer(again, seed=other)
    assert sent(stub)["seed"] != first
    assert (found.text, found.model, found.token_ids) == ("hello", f"mine@{'a' * 12}", None)
    assert found.sampling == {
        "temperature": 0.5, "top_k": 9, "template_arguments": {"style": 2}, "stop": ["User:"], "max_new_tokens": 30,
        "engine": "llama.cpp", "server": stub.url, "finish_reason": "stop",
    }  # fmt: skip


def test_marks_of_the_checkpoints_own_tokenizer_are_broken_before_anything_is_sent(stub: StubServer) -> None:
    stub.script("m", "hello")
    answer(player_of(served_model(stub.url)))
    assert sent(stub)["messages"] == [{"role": "user", "content": "Go on, # END# or < |im_end|>."}]


def test_transformers_serve_is_sent_no_field_that_it_refuses(stub: StubServer) -> None:
    stub.script("m", "hello")
    found = answer(
        player_of(served_model(stub.url, engine="transformers"), temperature=0, top_k=9),
        ChatSampling(no_repeat_ngram=2, max_tokens=30),
    )
    body = sent(stub)
    assert set(body) == {"model", "messages", "temperature", "top_p", "max_tokens", "generation_config"}
    config = json.loads(body["generation_config"])
    assert (config["do_sample"], config["top_k"], config["eos_token_id"]) == (False, 9, [7])
    assert (config["no_repeat_ngram_size"], config["max_new_tokens"]) == (2, 30)
    assert "refused" not in found.sampling
    assert player_of(served_model(stub.url, engine="transformers")).at_once == 8


def test_an_answer_of_transformers_serve_is_cut_where_it_should_have_stopped(stub: StubServer) -> None:
    stub.script("m", "hello User: and on", "hello")
    player = player_of(served_model(stub.url, engine="transformers"), stop=["User:"])
    found = answer(player)
    assert (found.text, found.sampling["finish_reason"]) == ("hello ", "stop_string")
    assert "stop" not in sent(stub)
    assert (answer(player).text, found.sampling["stop"]) == ("hello", ["User:"])


def test_what_an_engine_cannot_do_is_kept_with_the_answer(stub: StubServer) -> None:
    stub.script("m", "hello")
    found = answer(player_of(served_model(stub.url, engine="vllm")), ChatSampling(no_repeat_ngram=2))
    assert found.sampling["refused"] == ["no_repeat_ngram"]


def test_a_model_that_may_reason_gets_room_for_it(stub: StubServer) -> None:
    stub.script("m", "hello")
    reasons = FACTS.model_copy(update={"lets_reason": True})
    answer(player_of(served_model(stub.url, tokenizer=reasons)), ChatSampling(max_tokens=30))
    assert sent(stub)["max_tokens"] == 8030
    answer(player_of(served_model(stub.url, tokenizer=reasons), reasoning="off"), ChatSampling(max_tokens=30))
    assert sent(stub)["max_tokens"] == 30


def test_an_engine_that_is_away_is_asked_again_later(free_port: int) -> None:
    player = player_of(served_model(f"http://127.0.0.1:{free_port}/v1"))
    with pytest.raises(PlayerFailed) as failed:
        answer(player)
    assert failed.value.kind == "busy"
    assert failed.value.generation.model == "mine"


def with_tokens(ids: Sequence[int], prompt: Sequence[int], log_probs: Sequence[float], text: str, **said: Any) -> Reply:
    """An answer of vLLM that was asked for its tokens."""
    found = json.loads(completion({"content": text, **said}, prompt_token_ids=[*prompt]).body or b"")
    content = [{"token": "", "logprob": each, "top_logprobs": []} for each in log_probs]
    found["choices"][0] |= {"token_ids": [*ids], "logprobs": {"content": content}}
    return Reply(body=json.dumps(found).encode())


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        (with_tokens([5, 7], [1, 2], [-0.5, -0.1], "hello"), [5, 7]),
        (with_tokens([5, 7], [1, 2], [-0.5], "hello"), None),
        (with_tokens([5, 7], [], [-0.5, -0.1], "hello"), None),
        (with_tokens([5, 7], [1, 2], [-0.5, 0.1], "hello"), None),
        (with_tokens([5, 7], [1, 2], [-0.5, -0.1], "hello", reasoning="I think."), None),
        (completion({"content": "hello"}), None),
    ],
    ids=["all of it", "a token without", "no prompt", "no probability", "with reasoning", "an older release"],
)
def test_tokens_are_kept_where_vllm_tells_all_of_them(stub: StubServer, reply: Reply, kept: list[int] | None) -> None:
    stub.script("m", reply)
    found = answer(player_of(served_model(stub.url, engine="vllm", dtype="bfloat16")))
    body = sent(stub)
    assert (body["logprobs"], body["return_token_ids"], body["stop_token_ids"], body["top_k"]) == (True, True, [7], -1)
    assert (found.text, found.token_ids, found.sampling["dtype"]) == ("hello", kept, "bfloat16")
    assert (found.log_probs is None) == (kept is None)
    assert ("tokenizer" in found.sampling) == ("prompt_sha256" in found.sampling) == (kept is not None)


@pytest.mark.parametrize("database_url", [""])
def test_what_vllm_has_sampled_is_learnt_as_what_a_worker_has(
    app: Flask, engine: Engine, stub: StubServer, tmp_path: Path
) -> None:
    settings: Settings = app.config["SETTINGS"]
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    checkpoint = facts(TINY)
    of_tokenizer = TokenizerFacts.model_validate(checkpoint["tokenizer"])

    def as_vllm(request: Request) -> Reply:
        messages = request.body["messages"]
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        ids = [*tokenizer(negotiator(messages), add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        return with_tokens(ids, prompt, [-0.25] * len(ids), tokenizer.decode(ids[:-1]))

    stub.answer_with("m", as_vllm)
    add_local(engine, path=str(TINY), sha256=checkpoint["sha256"])
    begin(engine, "mine", served_model(stub.url, engine="vllm", dtype="float32", tokenizer=of_tokenizer))
    round_id = make_round(engine, "mine", matches=2)
    play(engine, settings, round_id)
    check(engine, round_id, 2)
    with reading(engine) as session:
        called = select(GenerationRow.model, GenerationRow.sampling["engine"].as_string()).distinct()
        [(model, engine_name)] = session.execute(called).all()
    assert (model, engine_name) == (f"mine@{checkpoint['sha256'][:12]}", "vllm")
    rows = rows_of(settings.home, cut(engine, settings.home, rounds=[round_id], filter="all"))
    assert {(row["policy"], row["dtype"], row["engine"], row["tokenizer"]) for row in rows} == {
        (checkpoint["sha256"], "float32", "vllm", of_tokenizer.sha256)
    }
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    renderer = Renderer(AutoTokenizer.from_pretrained(TINY), 4096)
    for row in read_conversations(tmp_path / "rows.jsonl"):
        sampled = [message["ids"] for message in row.messages if message["role"] == "assistant"]
        sequences, _ = renderer.render(row.messages, sampled)
        spans = [span for each in sequences for span in each.spans]
        assert spans
        assert all(span.log_probs is not None and set(span.log_probs) == {-0.25} for span in spans)


@pytest.mark.parametrize("database_url", [""])
def test_a_live_turn_is_played_by_the_server_without_what_workers_load(
    engine: Engine, stub: StubServer, desk: Callable[..., WorkerContext]
) -> None:
    stub.script("m", negotiator)
    add_local(engine)
    begin(engine, "mine", served_model(stub.url))
    config = {"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]], "first": 1}
    with writing(engine) as session:
        seats = StoredSeat("person"), StoredSeat.of(find_model(session, "negotiation", "mine"))
        record = live.create(session, "negotiation", config, seats, seed=3, source="live", instant=True)
    assert record.model_to_move
    assert play_turn(desk(), record.id)
    with reading(engine) as session:
        [call] = session.scalars(select(GenerationRow).where(GenerationRow.match_id == record.id))
    assert (call.model, call.sampling["engine"], call.outcome) == ("mine@000000000000", "llama.cpp", "move")
