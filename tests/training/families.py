"""Small tokenizers as the families of models have them, with their chat templates and control tokens."""

import json
from functools import cache
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

from tests.checkpoints import CHATML
from training.rendering import PLAIN
from training.tiny import make_tokenizer

_ASK = "{% if add_generation_prompt %}"
LLAMA_2 = (
    "{% for m in messages %}{% if m.role == 'user' %}<s>[INST] {{ m.content | trim }} [/INST]{% else %}"
    " {{ m.content | trim }} </s>{% endif %}{% endfor %}"
)
LLAMA_3 = (
    "<|begin_of_text|>{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    f"{{{{ m.content | trim }}}}<|eot_id|>{{% endfor %}}"
    f"{_ASK}<|start_header_id|>assistant<|end_header_id|>\n\n{{% endif %}}"
)
GEMMA = (
    "<bos>{% for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
    f"{{{{ m.content | trim }}}}<end_of_turn>\n{{% endfor %}}{_ASK}<start_of_turn>model\n{{% endif %}}"
)
MISTRAL = (
    "<s>{% for m in messages %}{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]{% else %}"
    "{{ m.content }}</s>{% endif %}{% endfor %}"
)
DEEPSEEK = (
    "<｜begin▁of▁sentence｜>{% for m in messages %}{% if m.role == 'user' %}<｜User｜>{{ m.content }}{% else %}"
    "<｜Assistant｜>{{ m.content }}<｜end▁of▁sentence｜>{% endif %}{% endfor %}"
    f"{_ASK}<｜Assistant｜>{{% endif %}}"
)
# The roles are added tokens that are not special; the ends of turns are.
ROLE_MARKS = (
    "{% for m in messages %}{{ '@@human@@' if m.role == 'user' else '@@robot@@' }}{{ m.content }}<eot>{% endfor %}"
    f"{_ASK}@@robot@@{{% endif %}}"
)
VICUNA = (
    "A chat. {% for m in messages %}{{ 'USER' if m.role == 'user' else 'ASSISTANT' }}: {{ m.content }}</s>{% endfor %}"
    f"{_ASK}ASSISTANT:{{% endif %}}"
)

FAMILIES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], bool]] = {
    # name: template, special tokens (the one that ends a turn first), added tokens that are not special, metaspace
    "chatml": (CHATML, ("<|im_end|>", "<|im_start|>", "<|endoftext|>"), ("<think>", "</think>", "<tool_call>"), False),
    "llama 2": (LLAMA_2, ("</s>", "<s>", "<unk>"), (), True),
    "llama 3": (LLAMA_3, ("<|eot_id|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>"), (), False),
    "gemma": (GEMMA, ("<end_of_turn>", "<start_of_turn>", "<bos>", "<eos>"), ("<unused7>", "<table>", "   "), True),
    "mistral": (MISTRAL, ("</s>", "<s>", "[INST]", "[/INST]"), ("[THINK]",), False),
    "deepseek": (
        DEEPSEEK, ("<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>"), ("<｜User｜>", "<｜Assistant｜>", "<think>"),
        False,
    ),
    "role marks that are not special": (ROLE_MARKS, ("<eot>",), ("@@human@@", "@@robot@@", "never said"), False),
    "labels within a line": (VICUNA, ("</s>",), (), True),
    "plain": (PLAIN, ("</s>",), ("<unused7>",), True),
}  # fmt: skip
NORMALIZING = "case and accents do not count"
BEGINNING = "plain, and texts begin with a token"
NAMES = (*FAMILIES, NORMALIZING, BEGINNING, "words")


@cache
def tokenizer_of(name: str) -> Any:
    """The tokenizer of a family. It is one object, so nobody may change it."""
    if name == "words":
        return make_tokenizer(["a", "user", "assistant", ":", "<", ">"], 512)
    template, special, added, metaspace = FAMILIES[{NORMALIZING: "chatml", BEGINNING: "plain"}.get(name, name)]
    inner = Tokenizer(BPE())
    if name == NORMALIZING:
        inner.normalizer = normalizers.Sequence(
            [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Replace("\u200b", "")]
        )
    if metaspace:  # as sentencepiece does: blanks are pieces, unknown characters fall apart into bytes
        inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
        alphabet = [chr(code) for code in range(33, 127)]
        inner.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    else:
        inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        inner.decoder = decoders.ByteLevel()
    texts = ["user: assistant: what people say", "<|im_ end [INST start_of_turn"] * 9
    inner.train_from_iterator(texts, BpeTrainer(initial_alphabet=alphabet, show_progress=False, vocab_size=400))
    if metaspace:
        model = json.loads(inner.to_str())["model"]
        pieces = [f"<0x{byte:02X}>" for byte in range(256)]
        vocabulary = {piece: number for number, piece in enumerate([*pieces, *model["vocab"]])}
        inner.model = BPE(vocabulary, [tuple(each) for each in model["merges"]], byte_fallback=True)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token=special[0],
        additional_special_tokens=list(special[1:]),
        chat_template=template,
        **({"bos_token": "<s>", "add_bos_token": True} if name == BEGINNING else {}),
    )
    tokenizer.add_tokens([AddedToken(each, special=False, normalized=name == NORMALIZING) for each in added])
    return tokenizer
