"""The loss of supervised fine-tuning, with and without weights."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from tests.training.conftest import rows_of, write_rows
from training.data import Collator, read_conversations, render_rows
from training.errors import TrainingRefused
from training.losses.base import IGNORED, find_loss
from training.rendering import Renderer


def test_weights_of_1_give_the_mean_over_tokens_bit_by_bit() -> None:
    torch.manual_seed(0)
    logits, labels = torch.randn(4, 9, 30, requires_grad=True), torch.randint(30, (4, 9))
    labels[:, :3] = IGNORED
    weights = labels.ne(IGNORED).float()
    plain = functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED, reduction="none"
    )
    expected = plain.sum() / labels[:, 1:].ne(IGNORED).sum()
    found = find_loss("sft")(logits, labels, weights, None)
    assert torch.equal(found, expected)
    gradients = [torch.autograd.grad(each, logits, retain_graph=True)[0] for each in (found, expected)]
    assert torch.equal(*gradients)


def test_a_message_of_weight_3_counts_as_three_of_weight_1(tokenizer: Any, tmp_path: Path) -> None:
    row = next(row for row in rows_of(24) if len(row["messages"]) >= 4)
    row["messages"][1]["weight"] = 3
    rows = render_rows(read_conversations(write_rows(tmp_path / "rows.jsonl", [row])), Renderer(tokenizer, 128))
    first, second = rows.sequences[0].spans[:2]
    assert (first.weight, second.weight) == (3.0, 1.0)
    assert first.begin < first.end <= second.begin
    batch = Collator(0)([rows[0]])
    torch.manual_seed(0)
    logits = torch.randn(*batch["input_ids"].shape, len(tokenizer))
    likely = logits[0, :-1].log_softmax(-1).gather(1, batch["input_ids"][0, 1:, None])[:, 0]
    weights = torch.tensor(rows.sequences[0].weights[1:])
    expected = -(weights * likely).sum() / weights.sum()
    assert torch.allclose(find_loss("sft")(logits, batch["labels"], batch["weights"], None), expected)


@pytest.mark.parametrize("weight", [-1, "2", True, None])
def test_a_weight_that_is_no_number_from_0_on_is_refused(weight: object, tmp_path: Path) -> None:
    row = rows_of(1)[0]
    row["messages"][1]["weight"] = weight
    with pytest.raises(TrainingRefused, match=r"line 1, message 2: weight: expected a number from 0 on, got "):
        read_conversations(write_rows(tmp_path / "rows.jsonl", [row]))
