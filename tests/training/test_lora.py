"""Adapters: little is trained, the output is a whole checkpoint, and the reference is the base without them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.adapters import adapters_over
from tests.training.conftest import events_in
from training import checkpoints
from training.errors import TrainingRefused
from training.hashes import checkpoint_hash
from training.merging import merge
from training.trainer import TokenTrainer

FIELDS = {"lora_rank": 4, "learning_rate": 0.01, "warmup": 0, "epochs": 3, "save_every": 3}
Train = Callable[..., int]
ConfigFile = Callable[..., Path]


def test_adapters_are_merged_into_a_checkpoint_like_any_other(
    base: Path, data_of: dict[str, Path], killed_and_resumed: Callable[..., None], tmp_path: Path
) -> None:
    """A training that is killed and gone on with makes the same weights as one that nobody disturbed."""
    killed_and_resumed("sft-kl", **FIELDS, data=str(data_of["sft-kl"]), eval_share=0.2)
    one, events = tmp_path / "undisturbed" / "model", tmp_path / "killed.jsonl"
    assert {path.name for path in one.iterdir()} >= {path.name for path in base.iterdir()} - {"parlor.json"}

    begun, *_, ended = events_in(events)
    assert begun["trained"] < begun["parameters"]
    evaluations = [each["loss"] for each in events_in(tmp_path / "undisturbed.jsonl") if each["event"] == "eval"]
    assert evaluations[-1] < evaluations[0]
    model, _ = checkpoints.load(one, ended["checkpoint_sha256"])
    before, _ = checkpoints.load(base)
    then, now = before.state_dict(), model.state_dict()
    assert then.keys() == now.keys()
    changed = {name.split(".")[-2] for name in then if not torch.equal(then[name], now[name])}
    assert changed == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert json.loads((one / "parlor.json").read_text())["config"]["lora_rank"] == 4


def test_only_the_layers_that_are_named_get_adapters(
    base: Path, config_file: ConfigFile, train: Train, tmp_path: Path
) -> None:
    config = config_file(
        max_steps=2, lora_rank=2, lora_alpha=8, lora_dropout=0.1, lora_targets="q_proj, v_proj",
        gradient_checkpointing=True, precision="bfloat16",
    )  # fmt: skip
    assert train("sft", config) == 0
    (then, _), (now, _) = checkpoints.load(base), checkpoints.load(tmp_path / "config" / "model")
    pairs = zip(then.named_parameters(), now.parameters(), strict=True)
    changed = {name.split(".")[-2] for (name, one), other in pairs if not torch.equal(one, other)}
    assert changed == {"q_proj", "v_proj"}


def logits_of(folder: Path) -> torch.Tensor:
    model, _ = checkpoints.load(folder)
    with torch.no_grad():
        logits: torch.Tensor = model(input_ids=torch.arange(6, 18)[None]).logits
    return logits


def test_adapters_that_are_kept_alone_are_the_model_with_their_base_and_are_gone_on_with(
    base: Path, config_file: ConfigFile, train: Train, refusal: Callable[..., str], tmp_path: Path
) -> None:
    fields = {"lora_rank": 2, "max_steps": 2, "learning_rate": 0.01, "warmup": 0}
    for name, alone in (("merged", False), ("one", True)):
        assert train("sft", config_file(name, **fields, keep_adapters=alone), tmp_path / "events") == 0
    merged, one = (tmp_path / name / "model" for name in ("merged", "one"))
    assert {path.name for path in one.iterdir()} >= {"adapter_config.json", "adapter_model.safetensors", "parlor.json"}
    assert not (one / "model.safetensors").exists()
    assert (logits_of(one) - logits_of(merged)).abs().max() <= 1e-5

    assert train("sft", config_file("two", **fields, keep_adapters=True, base=str(one)), tmp_path / "events") == 0
    two = tmp_path / "two" / "model"
    kept_over = json.loads((two / "parlor.json").read_text())["adapter_of"]
    assert (two / kept_over["path"]).resolve() == base.resolve()
    assert kept_over["sha256"] == checkpoint_hash(base)
    assert (logits_of(two) - logits_of(one)).abs().max() > 1e-3

    assert train("sft", config_file("whole", max_steps=1, base=str(two)), tmp_path / "events") == 0
    assert (tmp_path / "whole" / "model" / "model.safetensors").is_file()
    complaint = refusal(config_file("other", lora_rank=4, keep_adapters=True, base=str(one)))
    assert "lora_rank: expected 2, with lora_alpha 4 and no lora_targets, as the adapters of the base" in complaint


def test_adapters_without_their_own_base_are_refused(
    base: Path, config_file: ConfigFile, train: Train, refusal: Callable[..., str], tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(base, moved)
    fields = {"lora_rank": 2, "max_steps": 1, "keep_adapters": True}
    assert train("sft", config_file("one", **fields, base=str(moved)), tmp_path / "events") == 0
    one = tmp_path / "one" / "model"
    with (moved / "config.json").open("a") as config:
        config.write(" ")
    assert f"{moved}: expected the checkpoint with hash " in refusal(config_file("two", base=str(one)))
    shutil.rmtree(moved)
    complaint = refusal(config_file("two", base=str(one)))
    assert f"{one}: expected the base of its adapters in {moved}, got none" in complaint
    about = json.loads((one / "parlor.json").read_text())
    (one / "parlor.json").write_text(json.dumps({name: value for name, value in about.items() if name != "adapter_of"}))
    assert "expected adapters whose parlor.json names their base" in refusal(config_file("two", base=str(one)))


def test_adapters_that_lack_weights_are_refused(base: Path, tmp_path: Path) -> None:
    """Left out, they would be what they began with, and change nothing where they should."""
    adapters_over(base, tmp_path / "one")
    weights = tmp_path / "one" / "adapter_model.safetensors"
    save_file(dict(sorted(load_file(weights).items())[1:]), weights)
    checkpoints.write_provenance(tmp_path / "one", checkpoints.read_provenance(tmp_path / "one"))
    with pytest.raises(
        TrainingRefused, match=r"one: expected adapters that fit their base, got .*missing adapter keys"
    ):
        checkpoints.load(tmp_path / "one")


def test_adapters_are_merged_into_a_checkpoint_that_is_kept_as_long_as_it_is_whole(base: Path, tmp_path: Path) -> None:
    adapters_over(base, tmp_path / "one")
    output = tmp_path / "merged"
    sha256 = merge(tmp_path / "one", output)
    assert checkpoints.check(output, sha256) == sha256
    assert (logits_of(output) - logits_of(tmp_path / "one")).abs().max() == 0
    assert not checkpoints.is_adapter(output)

    weights = output / "model.safetensors"
    written = weights.stat().st_mtime_ns
    assert merge(tmp_path / "one", output) == sha256
    assert weights.stat().st_mtime_ns == written
    weights.write_bytes(weights.read_bytes()[:-1])
    assert merge(tmp_path / "one", output) == sha256
    assert checkpoints.check(output) == sha256
    adapters_over(base, tmp_path / "two", seed=2)
    assert merge(tmp_path / "two", output) != sha256
    assert (logits_of(output) - logits_of(tmp_path / "two")).abs().max() == 0
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    with pytest.raises(TrainingRefused, match="expected adapters, got none; a whole checkpoint needs no merging"):
        merge(base, output)


def test_gradient_checkpointing_changes_no_weight(config_file: ConfigFile, train: Train, tmp_path: Path) -> None:
    for name, on in (("without", False), ("with", True)):
        assert train("sft", config_file(name, max_steps=2, gradient_checkpointing=on)) == 0
    one, other = (tmp_path / name / "model" / "model.safetensors" for name in ("without", "with"))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"lora_alpha": 8}, "lora_alpha: expected lora_rank beside it, got neither; name one"),
        ({"keep_adapters": True}, "keep_adapters: expected lora_rank beside it, got neither; name one"),
        (
            {"lora_rank": 4, "lora_targets": "query"},
            "lora_targets: expected names among down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj,",
        ),
        ({"lora_rank": 4, "lora_targets": " , "}, "got none; leave it out for all linear layers"),
        ({"device": "cuda"}, "device: expected auto or cpu on a machine without a usable GPU, got cuda"),
        ({"precision": "float16"}, "precision: expected float32 or bfloat16 where no GPU is used, got float16"),
        ({"precision": "tf32", "device": "auto"}, "where no GPU is used, got tf32; train with one of these, or on a"),
    ],
)
def test_what_this_machine_or_model_does_not_have_is_refused_in_one_line(
    fields: dict[str, Any],
    complaint: str,
    config_file: ConfigFile,
    refusal: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert complaint in refusal(config_file(**fields))


def test_want_of_memory_says_what_to_lower(
    config_file: ConfigFile, train: Train, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def hungry(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(TokenTrainer, "training_step", hungry)
    assert train("sft", config_file()) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "out of memory" in line
    for remedy in (
        "lower batch and raise accumulation by as much",
        "max_length",
        "gradient_checkpointing",
        "lora_rank",
    ):
        assert remedy in line
