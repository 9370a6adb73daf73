"""A model from nothing: its words, its control tokens, and that it learns what it was shown."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.conftest import events_in
from training import checkpoints, trainer
from training.data import read_conversations
from training.errors import TrainingRefused
from training.tiny import make_tokenizer, words_of

SMALL = {"base": None, "width": 32, "layers": 2, "heads": 2, "length": 128, "min_count": 1, "batch": 8}


def test_a_tiny_model_learns_from_nothing_and_plays(
    config_file: Callable[..., Path], train: Callable[..., int], tmp_path: Path
) -> None:
    config = config_file(**SMALL, epochs=30, learning_rate=0.01, eval_share=0.1, log_every=50)
    assert train("tiny", config, tmp_path / "events.jsonl") == 0
    begun, *between, ended = events_in(tmp_path / "events.jsonl")
    assert begun["event"] == "started"
    assert begun["device"].startswith("cpu")
    steps = [each for each in between if each["event"] == "step"]
    assert [each["step"] for each in steps] == [50, 100, 150]
    assert steps[-1]["loss"] < 0.5 * steps[0]["loss"]
    assert all(each["tokens_per_second"] > 0 for each in steps)
    assert min(each["loss"] for each in between if each["event"] == "eval") == ended["metrics"]["eval_loss"]
    assert list((tmp_path / "config" / "model.run" / "tensorboard").glob("events.*"))

    model, tokenizer = checkpoints.load(Path(ended["output"]), ended["checkpoint_sha256"])
    chat = [{"role": "user", "content": "books 1 hats 2 balls 3. you begin"}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    torch.manual_seed(0)
    said = model.generate(**prompt, max_new_tokens=20)[0, prompt["input_ids"].shape[1] :]
    text = tokenizer.decode(said, skip_special_tokens=True)
    assert text.startswith(("[message] i want ", "[propose] ("))
    assert said[-1] == tokenizer.eos_token_id


def test_a_training_that_chooses_for_itself_tells_of_so_many_steps_at_most(
    config_file: Callable[..., Path], train: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "MOST_LOGGED", 10)
    assert train("tiny", config_file(**SMALL, max_steps=25, log_every="auto"), tmp_path / "events.jsonl") == 0
    told = [each["step"] for each in events_in(tmp_path / "events.jsonl") if each["event"] == "step"]
    assert told == [3, 6, 9, 12, 15, 18, 21, 24]


def test_the_same_config_on_the_same_rows_makes_the_same_model(
    config_file: Callable[..., Path], train: Callable[..., int], tmp_path: Path
) -> None:
    for name in ("one", "other"):
        assert train("tiny", config_file(name, **SMALL, max_steps=5), tmp_path / f"{name}.jsonl") == 0
    hashes = [events_in(tmp_path / f"{name}.jsonl")[-1]["checkpoint_sha256"] for name in ("one", "other")]
    assert hashes[0] == hashes[1]
    made = [(tmp_path / name / "model" / "parlor.json").read_text() for name in ("one", "other")]
    assert made[0] == made[1]
    assert str(tmp_path) not in made[0]


def test_training_stops_when_the_evaluation_no_longer_improves_and_keeps_the_best(
    config_file: Callable[..., Path], train: Callable[..., int], tmp_path: Path
) -> None:
    config = config_file(**SMALL, epochs=300, learning_rate=0.05, schedule="constant", eval_share=0.2, patience=2)
    assert train("tiny", config, tmp_path / "events.jsonl") == 0
    events = events_in(tmp_path / "events.jsonl")
    evaluations = [each for each in events if each["event"] == "eval"]
    best = min(evaluations, key=lambda each: each["loss"])
    assert evaluations[-1]["epoch"] < 300
    assert [each["loss"] > best["loss"] for each in evaluations[-2:]] == [True, True]
    assert events[-1]["step"] == best["step"]
    assert json.loads((tmp_path / "config/model/parlor.json").read_text())["metrics"]["eval_loss"] == best["loss"]


def test_words_are_found_however_people_type_them(tokenizer: Any) -> None:
    usual = tokenizer("[message] no, thanks")["input_ids"]
    assert tokenizer(" [Message]  NO ,THÀNKS ")["input_ids"] == usual
    assert tokenizer.decode(usual) == "[message] no, thanks"
    assert tokenizer.decode(tokenizer("[propose] (1 books, 2 hats, 0 balls)")["input_ids"]) == (
        "[propose] (1 books, 2 hats, 0 balls)"
    )


def test_quotes_close_around_what_they_quote() -> None:
    tokenizer = make_tokenizer([*'abcdefg"“”!,'], 64)
    for text in ('a b! c d "e"!', '"a", b "c"', '"a b"', "a “b c” d"):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_words_that_are_too_rare_are_left_out_and_none_at_all_is_refused(data: Path) -> None:
    rows = read_conversations(data)
    assert words_of(rows, 1, 3) == words_of(rows, 1, 1000)[:3]
    assert "thanks" in words_of(rows, 10, 1000)
    with pytest.raises(TrainingRefused, match="min_count: expected words that occur 9999 times in the rows, got none"):
        words_of(rows, 9999, 1000)


def test_weights_and_biases_gets_the_curves_where_somebody_has_set_it_up(
    config_file: Callable[..., Path], train: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="Weights & Biases, which Parlor can do without, is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert train("tiny", config_file(**SMALL, max_steps=2)) == 0
    assert list((tmp_path / "config" / "model.run" / "wandb").glob("offline-run-*/*.wandb"))
