"""Sequences in one row give the values and gradients that they give one by one."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from tests.training.test_span_losses import CASES
from tests.training.test_span_losses import sequence as random_sequence
from training.data import Collator
from training.log_probs import span_log_probs
from training.losses.base import find_loss, find_span_loss, step_mean
from training.packing import IMPLEMENTATION, enable_packing, model_inputs, pack
from training.rendering import MarkedTokens
from training.span_data import SpanCollator, SpanItem, span_batch

SHAPE = {
    "vocab_size": 13, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "attention_dropout": 0.0,
}  # fmt: skip


def llama(**fields: Any) -> Any:
    torch.manual_seed(4)
    model = LlamaForCausalLM(LlamaConfig(**(SHAPE | fields)))
    for weights in model.parameters():
        torch.nn.init.normal_(weights, std=0.3) if weights.dim() > 1 else None
    return model


def answers_to_queries() -> list[SpanItem]:
    """Queries whose responses begin with the same tokens; two of the last one's are equal in their first words."""
    rng = torch.Generator().manual_seed(9)
    items = []
    for size, ratings in ((9, [7.0, 2.0, 4.0]), (5, [3.0, 6.0]), (1, [5.0]), (7, [1.0, 2.0])):
        query = torch.randint(13, (size,), generator=rng).tolist()
        sequences = []
        for number, rating in enumerate(ratings):
            answer = torch.randint(13, (3 + number,), generator=rng).tolist()
            sequences.append(MarkedTokens())
            sequences[-1].extend(query, [1, 2, *answer], {"reward": rating})
        items.append(SpanItem(tuple(sequences), (0,)))
    return items


def loss_and_gradients(model: Any, module: str, config: Any, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
    values = find_span_loss(module)(span_batch(batch, span_log_probs(model, batch, positions=True)), config).values
    loss = step_mean(values, batch["kinds"], torch.bincount(batch["kinds"], minlength=2))
    return loss, torch.cat([each.flatten() for each in torch.autograd.grad(loss, model.parameters())])


@pytest.mark.parametrize("name", [*CASES, "shared"])
def test_packed_sequences_give_the_loss_and_the_gradients_of_padded_ones(name: str) -> None:
    module, config, _, made = CASES["stable-alignment" if name == "shared" else name]
    items = list(enumerate(answers_to_queries() if name == "shared" else made(1)))
    model = llama()
    padded = loss_and_gradients(model, module, config, SpanCollator(0)(items))
    assert enable_packing(model)
    batch = SpanCollator(0, packed=True)(items)
    tokens = sum(len(sequence.ids) for _, item in items for sequence in item.sequences)
    # Three queries are shared but for their last token: 2 · 8 + 4 + 6 tokens less.
    assert batch["input_ids"].shape == (1, tokens - 26 if name == "shared" else tokens)
    packed = loss_and_gradients(model, module, config, batch)
    assert padded[1].abs().max() > 1e-2
    for one, other in zip(padded, packed, strict=True):
        assert (one - other).abs().max() <= 1e-5


def test_packed_rows_of_tokens_give_the_loss_and_the_gradients_of_padded_ones() -> None:
    rng = torch.Generator().manual_seed(2)
    rows = [(at, random_sequence(rng, spans, iter([None] * spans))) for at, spans in enumerate((2, 1, 3))]
    model, loss = llama(), find_loss("sft")
    found = []
    for packed in (False, True):
        assert not packed or enable_packing(model)
        batch = Collator(0, packed)(rows)
        value = loss(model(**model_inputs(batch), use_cache=False).logits, batch["labels"], batch["weights"], None)
        gradients = torch.autograd.grad(value, model.parameters())
        found.append((value, torch.cat([each.flatten() for each in gradients])))
    for one, other in zip(*found, strict=True):
        assert (one - other).abs().max() <= 1e-5


def test_recomputing_activations_changes_no_gradients() -> None:
    module, config, *_ = CASES["stable-alignment"]
    batch = SpanCollator(0, packed=True)(list(enumerate(answers_to_queries())))
    model = llama().train()
    assert enable_packing(model)
    held = loss_and_gradients(model, module, config, batch)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    recomputed = loss_and_gradients(model, module, config, batch)
    assert (held[1] - recomputed[1]).abs().max() <= 1e-6


def test_a_packed_model_is_saved_as_any_other(tmp_path: Any) -> None:
    model = llama()
    assert enable_packing(model)
    model.save_pretrained(tmp_path)
    assert IMPLEMENTATION not in (tmp_path / "config.json").read_text()


def sliding() -> Any:
    return MistralForCausalLM(MistralConfig(**(SHAPE | {"sliding_window": 4})))


def ungrouped_gpt2() -> Any:
    return GPT2LMHeadModel(GPT2Config(vocab_size=13, n_embd=32, n_layer=2, n_head=4, n_positions=64))


@pytest.mark.parametrize("made", [sliding, lambda: llama(attn_implementation="eager")])
def test_a_model_that_attends_otherwise_is_left_as_it_is(made: Callable[[], Any]) -> None:
    model = made()
    before = model.config._attn_implementation
    assert not enable_packing(model)
    assert model.config._attn_implementation == before


def test_positions_that_are_learnt_begin_anew_in_each_sequence() -> None:
    model = ungrouped_gpt2().eval()
    sequences = [[1, 2, 3, 4], [5, 6, 7]]
    assert enable_packing(model)
    packed = pack(sequences, (0, 0))
    with torch.no_grad():
        ids, positions = torch.tensor([packed.ids]), torch.tensor([packed.position_ids])
        together = model(input_ids=ids, position_ids=positions, segments=packed.segments, use_cache=False).logits
        alone = torch.cat([model(input_ids=torch.tensor([each])).logits for each in sequences], dim=1)
    assert (together - alone).abs().max() <= 1e-5
