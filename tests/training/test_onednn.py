"""Linear layers whose products are oneDNN's give what they give otherwise."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import training.onednn as onednn
from tests.training.test_packing import llama
from training.onednn import use_onednn

needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")


@pytest.fixture(autouse=True)
def faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor that oneDNN is faster on, and no layer too small."""
    monkeypatch.setattr(onednn, "is_onednn_faster", lambda: True)
    monkeypatch.setattr(onednn, "_LEAST", 0)


def values_and_gradients(model: Any, ids: torch.Tensor) -> list[torch.Tensor]:
    logits = model(input_ids=ids, use_cache=False).logits
    wanted = [each for each in model.parameters() if each.requires_grad]
    return [logits, *torch.autograd.grad(logits.square().mean(), wanted)]


@needs_onednn
@pytest.mark.parametrize("frozen", [False, True])
def test_a_model_gives_the_same_values_and_gradients(frozen: bool) -> None:
    model = llama(attention_bias=True)
    model.lm_head.weight.requires_grad_(not frozen)
    ids = torch.randint(13, (2, 7), generator=torch.Generator().manual_seed(1))
    expected = values_and_gradients(model, ids)
    use_onednn(model)
    found = values_and_gradients(model, ids)
    assert "_OneDnn" in str(model(input_ids=ids, use_cache=False).logits.grad_fn.next_functions)
    for one, other in zip(found, expected, strict=True):
        assert (one - other).abs().max() <= 1e-5


@needs_onednn
@pytest.mark.parametrize("frozen", [False, True])
def test_a_frozen_layer_does_not_keep_its_inputs(frozen: bool) -> None:
    model = nn.Sequential(nn.Linear(4, 3))
    model.requires_grad_(not frozen)
    use_onednn(model)
    values = torch.randn(5, 4, requires_grad=True)
    found = model(values)
    [(products, _)] = found.grad_fn.next_functions
    kept, weight = products.saved_tensors
    assert (kept is None, weight is None) == (frozen, False)
    found.sum().backward()
    assert values.grad is not None
    assert torch.allclose(values.grad, model[0].weight.sum(dim=0).expand(5, 4), atol=1e-6)


@needs_onednn
def test_a_model_is_saved_as_any_other(tmp_path: Path) -> None:
    model = llama()
    expected = model.state_dict()
    use_onednn(model)
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path)
    assert all(torch.equal(weights, expected[name]) for name, weights in again.state_dict().items())
    assert type(again.model.layers[0].mlp.up_proj) is nn.Linear


@needs_onednn
def test_a_training_and_its_reference_are_computed_by_it(
    config_file: Callable[..., Path], train: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    product, learnt = onednn._product, []

    def counted(values: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        learnt.append(not torch.is_inference_mode_enabled())
        return product(values, weight, bias)

    monkeypatch.setattr(onednn, "_product", counted)
    assert train("sft-kl", config_file(epochs=1, batch=8)) == 0
    assert {True, False} == set(learnt)


@needs_onednn
def test_lower_precision_is_left_to_autocast() -> None:
    model = nn.Sequential(nn.Linear(4, 3))
    use_onednn(model)
    with torch.autocast("cpu", torch.bfloat16):
        assert model(torch.randn(5, 4)).dtype == torch.bfloat16
    assert model.double()(torch.randn(5, 4, dtype=torch.float64)).dtype == torch.float64


def test_small_layers_and_those_of_other_processors_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn, "_LEAST", 13)
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(4, 4))
    use_onednn(model)
    assert [type(each) is nn.Linear for each in model] == [True, False]
    monkeypatch.setattr(onednn, "is_onednn_faster", lambda: False)
    other = nn.Sequential(nn.Linear(4, 4))
    use_onednn(other)
    assert type(other[0]) is nn.Linear
