"""The loss of supervised fine-tuning, with and without weights."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from tests.training.conftest import rows_of, write_rows
from training.data import Collator, read_conversations, render_rows
from training.errors import TrainingRefused
from training.losses import base
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_losses_that_overwrite_the_logits_are_the_same_and_need_no_memory_for_gradients(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "_PART_ON_CPU", 3 * 50)  # parts of three rows and one of two
    torch.manual_seed(0)
    given = (30 * torch.randn(2, 4, 50)).to(dtype)
    wanted, upstream = torch.randint(50, (2, 4)), torch.randn(2, 4)
    wanted[0, 2] = IGNORED
    found, places = [], []
    for losses_of in (base.losses_of, base.losses_overwriting):
        leaf = given.clone().requires_grad_()
        logits = leaf * 1
        logits.register_hook(lambda gradient, logits=logits: places.append((gradient.data_ptr(), logits.data_ptr())))
        losses = losses_of(logits, wanted)
        losses.backward(upstream)
        assert torch.equal(leaf.detach(), given)
        found.append((losses, leaf.grad.float()))
    assert (found[0][0] - found[1][0]).abs().max() <= 1e-5
    assert (found[0][1] - found[1][1]).abs().max() <= (1e-6 if dtype == torch.float32 else 1e-2)
    assert found[1][0][0, 2] == 0
    assert [one == other for one, other in places] == [False, True]


def test_logits_that_lie_apart_in_memory_get_their_gradients() -> None:
    torch.manual_seed(0)
    wanted, leaf = torch.randint(9, (2, 3)), torch.randn(9, 3, 2, requires_grad=True)
    gradients = []
    for losses_of in (base.losses_of, base.losses_overwriting):
        [gradient] = torch.autograd.grad(losses_of((leaf * 1).transpose(0, 2), wanted).square().sum(), leaf)
        gradients.append(gradient)
    assert torch.allclose(*gradients, atol=1e-6)


def test_logits_of_others_and_those_without_gradients_are_not_overwritten() -> None:
    torch.manual_seed(0)
    wanted = torch.randint(9, (1, 3))
    for learnt in (False, True):
        logits = torch.randn(1, 3, 9, requires_grad=learnt)
        before = logits.detach().clone()
        expected, found = base.losses_of(logits, wanted), base.losses_overwriting(logits, wanted)
        assert torch.equal(logits.detach(), before)
        assert torch.allclose(found, expected)


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
    with pytest.raises(TrainingRefused, match=r"line 1, message 2: weight: expected a number from 0 to 1000000, got "):
        read_conversations(write_rows(tmp_path / "rows.jsonl", [row]))
