"""Small local models for tests: random weights, made on the spot, of every kind that is played with differently."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from sqlalchemy import Engine
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GenerationMixin,
    GPT2Config,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PhiConfig,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
)
from transformers.modeling_outputs import CausalLMOutput

from app.core.extensions import writing
from app.registry import add_local_model
from training.checkpoints import write_provenance
from training.methods.tiny import TinyConfig
from training.tiny import make_model, make_tokenizer

WORDS = (
    "a an and again against answer as at attack attacker ball balls be begin book books can cat defend defender dog for"
    " get give hat hats hidden i in is it lemon me no of on or propose refused that the this turns us want what with"
    " word yes you zero 0 1 2 3 4 5 6 7 8 9 10 ( ) , . ? ! [message] [propose] [refused] `"
)
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# As Qwen3's: reasoning, or an empty block, stands before the last answer alone, and an argument has it left out.
STRIPS = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.role == 'assistant' and loop.last %}<think>{{ message.reasoning_content or '' }}</think>{% endif %}"
    "{{ message.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}"
)
# As gpt-oss's, in messages of channels (harmony): reasoning stands before the last answer alone.
CHANNELS = (
    "{% for message in messages %}"
    "{% if message.role == 'assistant' and loop.last and not add_generation_prompt %}{% if message.thinking %}"
    "<|start|>assistant<|channel|>analysis<|message|>{{ message.thinking }}<|end|>{% endif %}"
    "<|start|>assistant<|channel|>final<|message|>{{ message.content }}<|return|>"
    "{% else %}<|start|>{{ message.role }}{% if message.role == 'assistant' %}<|channel|>final{% endif %}<|message|>"
    "{{ message.content }}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)
# As DeepSeek-R1's: the prompt opens the block, and no answer is rendered with one.
OPENS = CHATML.removesuffix("{% endif %}") + "<think>\n{% endif %}"

_SMALL = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "max_position_embeddings": 1024,
}  # fmt: skip
_GROUPED = {**_SMALL, "num_key_value_heads": 1}
_WINDOWS = {"sliding_window": 24, "layer_types": ["sliding_attention", "full_attention"], "head_dim": 8}
# Families as they differ: positions that are learnt or turned, in part or whole; heads that share keys; windows.
ARCHITECTURES: dict[str, tuple[Callable[..., PretrainedConfig], dict[str, Any]]] = {
    "gpt2": (GPT2Config, {"n_positions": 1024, "n_embd": 16, "n_layer": 2, "n_head": 2}),
    "llama": (LlamaConfig, _GROUPED),
    "qwen3": (Qwen3Config, {**_GROUPED, "head_dim": 8}),
    "phi": (PhiConfig, {**_SMALL, "partial_rotary_factor": 0.5}),
    "mistral": (MistralConfig, {**_GROUPED, "sliding_window": 24}),
    "gemma2": (Gemma2Config, {**_GROUPED, **_WINDOWS, "query_pre_attn_scalar": 8}),
    "gemma3": (Gemma3TextConfig, {**_GROUPED, **_WINDOWS, "query_pre_attn_scalar": 8}),
}


def word_model(folder: Path, seed: int = 1, length: int = 256) -> str:
    """A Llama with a vocabulary of words, as `training.tiny` makes it; returns its hash."""
    torch.manual_seed(seed)
    tokenizer = make_tokenizer(WORDS.split(), length)
    config = TinyConfig(data=folder, output=folder, width=16, layers=2, heads=2, length=length)
    return _saved(folder, make_model(config, tokenizer), tokenizer)


def bytes_model(folder: Path, kind: str = "gpt2", template: str | None = CHATML, begins: bool = False) -> str:
    """A model of one of `ARCHITECTURES` with a tokenizer of pieces of bytes; returns its hash."""
    torch.manual_seed(2)
    tokenizer = bytes_tokenizer(template, begins)
    make_config, fields = ARCHITECTURES[kind]
    ends = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": None}
    config = make_config(vocab_size=len(tokenizer), **ends, **fields)
    return _saved(folder, AutoModelForCausalLM.from_config(config), tokenizer)


def scripted_model(folder: Path, template: str, says: Sequence[str], sliding: bool = False) -> str:
    """A model whose next token depends on the last one alone: behind a line break it says these, each once, and ends.

    `<think>` and `</think>` are tokens of its tokenizer. With `sliding` it has a sliding window.
    """
    tokenizer = thinking_tokenizer(template)
    size = len(tokenizer) + len(tokenizer) % 2
    shape = {
        "vocab_size": len(tokenizer), "hidden_size": size, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 1, "num_key_value_heads": 1, "max_position_embeddings": 1024, "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
    }  # fmt: skip
    model: Any = LlamaForCausalLM(LlamaConfig(**shape))
    if sliding:
        model = MistralForCausalLM(MistralConfig(**shape, sliding_window=8))
    [breaks] = tokenizer("\n")["input_ids"]
    chain: list[int] = [breaks, *tokenizer.convert_tokens_to_ids([*says, "<|im_end|>"])]
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(len(tokenizer), size))
        model.lm_head.weight.mul_(0.01)
        for token, following in pairwise(chain):
            model.lm_head.weight[following, token] = 8
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return write_provenance(folder, {})


def thinking_tokenizer(template: str) -> PreTrainedTokenizerFast:
    """Pieces of bytes, and tokens for the marks of reasoning, which are not special: so models have them."""
    tokenizer = bytes_tokenizer(template)
    tokenizer.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in ("<think>", "</think>")])
    return tokenizer


def channels_tokenizer(template: str = CHANNELS) -> PreTrainedTokenizerFast:
    """Pieces of bytes, and the control tokens of messages in channels."""
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_pieces()), eos_token="<|return|>", chat_template=template,
        additional_special_tokens=["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|constrain|>", "<|call|>"],
    )  # fmt: skip


class RecitingConfig(PretrainedConfig):  # type: ignore[misc]
    """Of a model that says `recited` (tokens). It attends in windows, as gpt-oss does."""

    model_type = "reciting"

    def __init__(self, vocab_size: int = 0, recited: Sequence[int] = (), **fields: Any) -> None:
        self.vocab_size, self.recited = vocab_size, list(recited)
        self.hidden_size, self.num_hidden_layers, self.max_position_embeddings = 4, 1, 1024
        self.layer_types, self.sliding_window = ["sliding_attention"], 8
        super().__init__(**fields)


class RecitingModel(PreTrainedModel, GenerationMixin):  # type: ignore[misc]
    """Goes on with what it recites: from where a sequence ends in the longest beginning of that."""

    config_class = RecitingConfig

    def __init__(self, config: RecitingConfig) -> None:
        super().__init__(config)
        self.embedding = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.post_init()

    def get_input_embeddings(self) -> torch.nn.Module:
        return self.embedding

    def prepare_inputs_for_generation(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **_: Any
    ) -> dict[str, Any]:
        return {"input_ids": input_ids}

    def forward(self, input_ids: torch.Tensor, **_: Any) -> CausalLMOutput:
        recited = self.config.recited
        logits = torch.zeros((*input_ids.shape, self.config.vocab_size))
        for row, ids in enumerate(input_ids.tolist()):
            known = max(at for at in range(len(recited)) if ids[len(ids) - at :] == recited[:at])
            logits[row, -1, recited[known]] = 99
        return CausalLMOutput(logits=logits)


def reciting_model(folder: Path, says: str) -> str:
    """A model that answers each prompt in messages of channels with the same text, marks included; returns its hash."""
    AutoConfig.register("reciting", RecitingConfig, exist_ok=True)
    AutoModelForCausalLM.register(RecitingConfig, RecitingModel, exist_ok=True)
    tokenizer = channels_tokenizer()
    model = RecitingModel(RecitingConfig(len(tokenizer), tokenizer(says)["input_ids"]))
    model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids(["<|return|>", "<|call|>"])
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return write_provenance(folder, {})


def bytes_tokenizer(template: str | None = CHATML, begins: bool = False) -> PreTrainedTokenizerFast:
    """Pieces of bytes, spaces included, and three control tokens. With `begins`, it begins each text with `</s>`."""
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_pieces()), eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>", "</s>"], chat_template=template,
        **({"bos_token": "</s>", "add_bos_token": True} if begins else {}),
    )  # fmt: skip


def register(engine: Engine, name: str, folder: Path, sha256: str, **options: Any) -> None:
    """Make it a model of the registry that people are offered; it plays both games in few words and on the CPU."""
    options = {"path": str(folder), "sha256": sha256, "max_tokens": 6, "device": "cpu", **options}
    with writing(engine) as session:
        row = add_local_model(session, name, f"Label of {name}", [], options, prompt_style="compact")
        row.offered_to_people = True


def _saved(folder: Path, model: Any, tokenizer: Any) -> str:
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(8 if weights.dim() > 1 else 1)  # fresh weights say one word again and again
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return write_provenance(folder, {})


@cache
def _pieces() -> str:
    inner = Tokenizer(BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    special = ["<|im_start|>", "<|im_end|>", "</s>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    texts = ["books hats balls [message] I want 2 books\n", "[propose] (1 books, 2 hats, 0 balls)\nno, thanks"] * 9
    inner.train_from_iterator(texts, BpeTrainer(special_tokens=special, initial_alphabet=alphabet, show_progress=False))
    return inner.to_str()
