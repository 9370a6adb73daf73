"""The same rows give the same gradients, however an optimizer step is accumulated."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import TrainerCallback

from training import checkpoints
from training.config import read_config
from training.data import read_conversations, render_rows
from training.methods.sft import SftConfig
from training.recipe import prepare, renderer
from training.trainer import TokenTrainer


class Keep(TrainerCallback):
    """Keeps the gradients of the first step, as the optimizer is about to see them."""

    def on_pre_optimizer_step(self, *_: Any, model: Any, **__: Any) -> None:
        self.gradients = torch.cat([each.grad.flatten().clone() for each in model.parameters()])


@pytest.fixture
def gradients(config_file: Callable[..., Path]) -> Callable[[int, int], torch.Tensor]:
    """The gradients of a step of so many rows, accumulated so often."""

    def first_step(batch: int, accumulation: int) -> torch.Tensor:
        sizes = {"batch": batch, "accumulation": accumulation, "max_steps": 1, "max_grad_norm": 0}
        config = read_config(SftConfig, config_file(f"{batch}x{accumulation}", **sizes))
        prepare(config)
        model, tokenizer = checkpoints.load(config.base)
        model.config.attention_dropout = 0.0  # which would differ with the shape of a batch
        for layer in model.model.layers:
            layer.self_attn.attention_dropout = 0.0
        rows = render_rows(read_conversations(config.data), renderer(config, model, tokenizer))
        keep = Keep()
        TokenTrainer(config, model, tokenizer, rows, None, loss="sft", provenance={}, callbacks=[keep]).train()
        torch.use_deterministic_algorithms(False)
        return keep.gradients

    return first_step


def test_accumulation_of_1_2_and_8_gives_the_same_gradients(gradients: Callable[[int, int], torch.Tensor]) -> None:
    at_once = gradients(8, 1)
    assert at_once.norm() > 0.1
    for batch, accumulation in ((4, 2), (1, 8)):
        assert (gradients(batch, accumulation) - at_once).abs().max() <= 1e-6


def test_every_token_of_a_step_weighs_the_same(
    gradients: Callable[[int, int], torch.Tensor], base: Path, data: Path
) -> None:
    """The gradients are those of the mean over all tokens to be learnt, worked out here without the trainer."""
    model, tokenizer = checkpoints.load(base)
    model.eval()
    config = SftConfig(data=data, output=base / "none", base=base)
    rows = render_rows(read_conversations(data), renderer(config, model, tokenizer))
    total: torch.Tensor = torch.zeros(())
    for each in rows.sequences:
        ids = torch.tensor([each.ids])
        likely = model(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        total = total - likely[torch.tensor(each.learnt[1:])].sum()
    (total / rows.targets).backward()
    expected = torch.cat([each.grad.flatten() for each in model.parameters()])
    assert (gradients(len(rows), 1) - expected).abs().max() <= 1e-6
