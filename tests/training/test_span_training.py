"""Trainings whose losses count spans: steps, figures, the reference's log-probabilities, resuming."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.training.conftest import comparisons_of, events_in, rewarded, rows_of, write_rows
from tests.training.test_gradients import Keep
from training import checkpoints
from training.config import read_config
from training.data import read_conversations, render_rows
from training.log_probs import span_log_probs
from training.methods import all_methods
from training.recipe import prepare, renderer
from training.rendering import Renderer, ids_hash
from training.rows import load_rows
from training.span_data import SUPERVISED, SpanCollator
from training.span_trainer import SpanTrainer

METHODS = ("sft-kl", "offline-po", "stable-alignment")
LEARN = {"epochs": 6, "learning_rate": 0.01, "schedule": "constant", "warmup": 0}
Train = Callable[..., int]
ConfigFile = Callable[..., Path]


def steps(events: Path) -> list[dict[str, Any]]:
    return [each for each in events_in(events) if each["event"] == "step"]


@pytest.mark.parametrize("method", METHODS)
def test_a_short_training_lowers_its_loss_and_makes_a_model_that_loads(
    method: str, data_of: dict[str, Path], config_file: ConfigFile, train: Train, tmp_path: Path
) -> None:
    config = config_file(data=str(data_of[method]), eval_share=0.2, **LEARN)
    assert train(method, config, tmp_path / "events.jsonl") == 0
    events = events_in(tmp_path / "events.jsonl")
    evaluations = [each["loss"] for each in events if each["event"] == "eval"]
    assert min(evaluations[1:]) < evaluations[0]  # the best becomes the output
    losses = [each["loss"] for each in events if each["event"] == "step"]
    assert sum(losses[-5:]) < sum(losses[:5])
    model, _ = checkpoints.load(Path(events[-1]["output"]), events[-1]["checkpoint_sha256"])
    assert model.num_parameters() == events[0]["parameters"]
    provenance = json.loads((tmp_path / "config" / "model" / "parlor.json").read_text())
    assert provenance["method"] == method
    assert ("reference_sha256" in provenance) == (method != "stable-alignment")


def test_offline_po_tells_reward_kl_and_clip_fraction_from_the_first_step(
    data_of: dict[str, Path], config_file: ConfigFile, train: Train, tmp_path: Path
) -> None:
    config = config_file(data=str(data_of["offline-po"]), log_every=7, **LEARN)
    assert train("offline-po", config, tmp_path / "events.jsonl") == 0
    told = steps(tmp_path / "events.jsonl")
    assert [each["step"] for each in told] == [1, 7, 14, 21, 28, 35]
    assert all(each.keys() >= {"loss", "reward", "kl", "clip_fraction"} for each in told)
    assert abs(told[0]["kl"]) < 0.05  # the model is its own reference yet, but for dropout
    assert told[0]["clip_fraction"] == 0
    assert told[-1]["clip_fraction"] > 0
    rewards = [
        message["reward"]
        for row in rewarded(rows_of(24))
        if row["type"] is None
        for message in row["messages"]
        if message["role"] == "assistant"
    ]
    assert min(rewards) < told[0]["reward"] < max(rewards)


def test_offline_po_makes_moves_with_high_rewards_more_likely_than_those_with_low_ones(
    base: Path, data_of: dict[str, Path], config_file: ConfigFile, train: Train, tmp_path: Path
) -> None:
    path = config_file(data=str(data_of["offline-po"]), sft_weight=0, kl=0, **LEARN)
    assert train("offline-po", path, tmp_path / "events.jsonl") == 0
    model, tokenizer = checkpoints.load(tmp_path / "config" / "model")
    model.eval()
    described = all_methods()["offline-po"]
    config = read_config(described.config, path)
    rows = load_rows(described, config, model, tokenizer, renderer(config, model, tokenizer)).rows
    gains: dict[bool, list[float]] = {True: [], False: []}
    reference, _ = checkpoints.load(base)
    reference.eval()
    for at in range(len(rows)):
        batch = SpanCollator(0)([rows[at]])
        gained = span_log_probs(model, batch, positions=False) - span_log_probs(reference, batch, positions=False)
        for reward, gain in zip(batch["rewards"].tolist(), gained.tolist(), strict=True):
            if reward:
                gains[reward > 0].append(gain)
    assert sum(gains[True]) / len(gains[True]) > sum(gains[False]) / len(gains[False]) + 0.1


@pytest.mark.parametrize(("kl", "warned"), [(0.2, True), (0, False)])
def test_moves_with_rewards_below_kl_become_less_likely_and_a_warning_says_so(
    config_file: ConfigFile, train: Train, tmp_path: Path, kl: float, warned: bool
) -> None:
    won = [row for row in rewarded(rows_of(24)) if row["type"] is None]
    for message in (each for row in won for each in row["messages"] if "reward" in each):
        message["reward"] = 0.05
    config = config_file(data=str(write_rows(tmp_path / "won.jsonl", won)), kl=kl, **LEARN)
    assert train("offline-po", config, tmp_path / "events.jsonl") == 0
    messages = [each["message"] for each in events_in(tmp_path / "events.jsonl") if each["event"] == "warning"]
    assert [each.startswith("kl: expected a weight below most rewards, got 0.2") for each in messages] == (
        [True] if warned else []
    )
    assert (steps(tmp_path / "events.jsonl")[-1]["kl"] < 0) == warned


@pytest.fixture
def gradients(config_file: ConfigFile, data_of: dict[str, Path]) -> Callable[..., torch.Tensor]:
    """The gradients of the first step of a method, in batches of a size and accumulated so often."""

    def first_step(method: str, batch: int, accumulation: int, **fields: Any) -> torch.Tensor:
        sizes = {"batch": batch, "accumulation": accumulation, "max_steps": 1, "max_grad_norm": 0}
        name = f"{method}-{batch}x{accumulation}"
        described = all_methods()[method]
        path = config_file(name, data=str(data_of[method]), **sizes, **fields)
        config = read_config(described.config, path)
        prepare(config)
        model, tokenizer = checkpoints.load(config.base)  # type: ignore[attr-defined]
        for layer in model.model.layers:
            layer.self_attn.attention_dropout = 0.0
        found = load_rows(described, config, model, tokenizer, renderer(config, model, tokenizer))
        keep = Keep()
        SpanTrainer(
            config, model, tokenizer, found.rows, None, loss=described.loss, provenance={}, callbacks=[keep]
        ).train()
        torch.use_deterministic_algorithms(False)
        return keep.gradients

    return first_step


@pytest.mark.parametrize("method", METHODS)
def test_accumulation_changes_no_gradients(method: str, gradients: Callable[..., torch.Tensor]) -> None:
    at_once = gradients(method, 8, 1)
    assert at_once.norm() > 0.01
    for batch, accumulation in ((4, 2), (1, 8)):
        assert (gradients(method, batch, accumulation) - at_once).abs().max() <= 1e-5


def test_what_the_cache_holds_is_what_the_reference_says_of_each_row_alone(
    base: Path,
    data_of: dict[str, Path],
    config_file: ConfigFile,
    gradients: Callable[..., torch.Tensor],
    tmp_path: Path,
) -> None:
    cache = tmp_path / "cache"
    computed = gradients("offline-po", 8, 1, reference_cache=str(cache))
    [kept] = cache.iterdir()
    written = kept.stat().st_mtime_ns
    read = gradients("offline-po", 4, 2, reference_cache=str(cache))
    assert (computed - read).abs().max() <= 1e-5
    assert [each.stat().st_mtime_ns for each in cache.iterdir()] == [written]

    config = read_config(
        all_methods()["offline-po"].config, config_file(data=str(data_of["offline-po"]), reference_cache=str(cache))
    )
    model, tokenizer = checkpoints.load(base)
    model.eval()
    rows = load_rows(all_methods()["offline-po"], config, model, tokenizer, renderer(config, model, tokenizer)).rows
    for at in range(len(rows)):
        number, item = rows[at]
        alone = span_log_probs(model, SpanCollator(0)([(number, item)]), positions=False).tolist()
        supervised = item.kinds[0] == SUPERVISED  # is learnt as it is, and compared with nothing
        assert item.reference == ((0.0,) * len(alone) if supervised else pytest.approx(alone, abs=1e-5))


def test_log_probabilities_of_play_are_taken_of_the_same_model_precision_and_prompt_alone(
    base: Path, tokenizer: Any, config_file: ConfigFile, tmp_path: Path
) -> None:
    render, rows = Renderer(tokenizer, 128), rows_of(3)[:5]
    data = write_rows(tmp_path / "plain.jsonl", rows)
    for row, marked in zip(rows, render_rows(read_conversations(data), render).sequences, strict=True):
        moves = [each for each in row["messages"] if each["role"] == "assistant"]
        for move, span in zip(moves, marked.spans, strict=True):
            ids = marked.ids[span.begin : span.end]
            move |= {"ids": ids, "log_probs": [-1.5] * len(ids), "prompt_sha256": ids_hash(marked.ids[: span.begin])}
        row |= {"tokenizer": render.tokenizer_hash, "policy": checkpoints.check(base), "dtype": "float32"}
    rows[1]["policy"] = "0" * 64
    rows[2]["dtype"] = "bfloat16"
    rows[3]["messages"][1]["prompt_sha256"] = ids_hash([1])
    rows[4]["engine"] = "vllm"
    config = read_config(
        all_methods()["sft-kl"].config, config_file(data=str(write_rows(tmp_path / "rows.jsonl", rows)))
    )
    model, _ = checkpoints.load(base)
    found = load_rows(all_methods()["sft-kl"], config, model, tokenizer, render)
    assert found.counts == {"stored_reference_rows": 1, "computed_reference_rows": 4}
    taken = [set(found.rows[at][1].reference) == {-1.5} for at in range(5)]
    assert taken == [True, False, False, False, False]


def test_log_probabilities_that_are_not_those_of_the_ids_are_refused(
    config_file: ConfigFile, refusal: Callable[..., str], tmp_path: Path
) -> None:
    [row, *_] = rows_of(1)
    for each in row["messages"]:
        each |= {"ids": [5, 6], "log_probs": [-1.0]} if each["role"] == "assistant" else {}
    data = write_rows(tmp_path / "rows.jsonl", [row | {"tokenizer": "x"}])
    line = refusal(config_file(data=str(data)), "sft-kl")
    assert "line 1, message 2: log_probs: expected a number up to 0 for each of its ids, got [-1.0]" in line


def test_a_cache_that_is_cut_off_is_made_anew(
    data_of: dict[str, Path], config_file: ConfigFile, train: Train, tmp_path: Path
) -> None:
    fields = {"data": str(data_of["sft-kl"]), "max_steps": 1, "reference_cache": str(tmp_path / "cache")}
    assert train("sft-kl", config_file("one", **fields), tmp_path / "one.jsonl") == 0
    [kept] = (tmp_path / "cache").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[:50])
    assert train("sft-kl", config_file("two", **fields), tmp_path / "two.jsonl") == 0
    assert kept.read_bytes() == whole


def test_a_reference_that_computes_no_numbers_is_refused_and_such_values_in_a_cache_are_made_anew(
    data_of: dict[str, Path],
    base: Path,
    config_file: ConfigFile,
    train: Train,
    refusal: Callable[..., str],
    tmp_path: Path,
) -> None:
    model, tokenizer = checkpoints.load(base)
    with torch.no_grad():
        model.model.norm.weight[0] = torch.nan
    for each in (model, tokenizer):
        each.save_pretrained(tmp_path / "broken")
    fields = {"data": str(data_of["sft-kl"]), "max_steps": 1, "reference_cache": str(tmp_path / "cache")}
    line = refusal(config_file("broken", **fields, reference=str(tmp_path / "broken")), "sft-kl")
    assert line.startswith("error: reference: expected log-probabilities that are numbers, got NaN or infinity; look")
    assert not (tmp_path / "cache").exists()
    assert train("sft-kl", config_file("one", **fields), tmp_path / "one.jsonl") == 0
    [kept] = (tmp_path / "cache").iterdir()
    whole = kept.read_bytes()
    save_file({"log_probs": load_file(kept)["log_probs"] * torch.nan}, kept)
    assert train("sft-kl", config_file("two", **fields), tmp_path / "two.jsonl") == 0
    assert kept.read_bytes() == whole


def test_another_reference_is_another_training(
    data_of: dict[str, Path], base: Path, config_file: ConfigFile, train: Train, tmp_path: Path
) -> None:
    """The reference that is named is what the model is held near to."""
    fields = {"data": str(data_of["sft-kl"])}
    assert train("sft-kl", config_file("first", **fields, **LEARN), tmp_path / "first.jsonl") == 0
    trained = tmp_path / "first" / "model"
    config = config_file("second", **fields, reference=str(trained), max_steps=1)
    assert train("sft-kl", config, tmp_path / "second.jsonl") == 0
    provenance = json.loads((tmp_path / "second" / "model" / "parlor.json").read_text())
    assert provenance["reference_sha256"] == checkpoints.check(trained)
    assert provenance["base_sha256"] == checkpoints.check(base)
    # The base says these moves less likely than the model that learnt them.
    assert steps(tmp_path / "second.jsonl")[0]["kl"] < -0.1


@pytest.mark.parametrize(
    "method", ["offline-po", *(pytest.param(each, marks=pytest.mark.long) for each in ("sft-kl", "stable-alignment"))]
)
def test_a_training_that_was_killed_ends_with_the_weights_of_an_undisturbed_one(
    method: str, data_of: dict[str, Path], killed_and_resumed: Callable[..., None], tmp_path: Path
) -> None:
    fields = {"batch": 4, "accumulation": 2, "save_every": 2, "eval_share": 0.2}
    killed_and_resumed(method, data=str(data_of[method]), **fields, **LEARN)
    begun = [each for each in events_in(tmp_path / "killed.jsonl") if each["event"] == "started"]
    assert [each["resumed_from"] for each in begun] == [None, "checkpoint-6"]
    told = [
        {
            each["step"]: {**each, "at": 0, "tokens_per_second": 0, "memory_mb": 0}
            for each in steps(tmp_path / f"{name}.jsonl")
        }
        for name in ("undisturbed", "killed")
    ]
    assert told[0] == told[1]


def test_stable_alignment_learns_which_answer_is_rated_best(
    config_file: ConfigFile, train: Train, tmp_path: Path
) -> None:
    data = write_rows(tmp_path / "rows.jsonl", comparisons_of(24))
    config = config_file(data=str(data), margin=1, **(LEARN | {"epochs": 30, "learning_rate": 0.003}))
    assert train("stable-alignment", config, tmp_path / "events.jsonl") == 0
    told = steps(tmp_path / "events.jsonl")
    penalties = [each["penalty"] for each in told]
    assert sum(penalties[-9:]) < sum(penalties[:9]) * 2 / 3
