"""A small language model trained from scratch: Llama's architecture, with the words of the rows as its vocabulary.

Words are lower case and spaces carry no meaning, so text matches its words however people type it. Control tokens are
not words: `marks` ensures that no text is read as one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from training.data import Conversation, read_rows
from training.errors import TrainingRefused
from training.marks import FIRST_RENDERER, RENDERER, Marks
from training.methods.tiny import TinyConfig
from training.rendering import without_control
from training.trainer import renderer_version

PAD, UNKNOWN, END = "<pad>", "<unk>", "<|end|>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
CONTROL = (PAD, UNKNOWN, END, *ROLES)
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_WORD = r"\[\p{L}+\]|\p{L}+(?:'\p{L}+)*|\p{N}+|[^\s\p{L}\p{N}]"  # a bracketed marker is one word
_CLOSED_UP = (
    (" ,", ","), (" .", "."), (" ?", "?"), (" !", "!"), (" :", ":"), (" ;", ";"),
    ("( ", "("), (" )", ")"), ("“ ", "“"), (" ”", "”"),
)  # fmt: skip
# Quotes come in pairs: before one that opens an odd number is still to come, before one that closes an even number.
_QUOTED = (
    (Regex(r'" (?=[^"]*"(?:[^"]*"[^"]*")*[^"]*$)'), '"'),
    (Regex(r' "(?=[^"]*(?:"[^"]*"[^"]*)*$)'), '"'),
)


def make(config: TinyConfig) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """A model with fresh weights and its tokenizer, made from the rows to train on. Raises TrainingRefused."""
    conversations, _ = read_rows(config)
    words = words_of(conversations, config.min_count, config.max_words, renderer_version(config))
    tokenizer = make_tokenizer(words, config.length)
    return make_model(config, tokenizer), tokenizer


def words_of(
    conversations: Sequence[Conversation], min_count: int, max_words: int, renderer: int = RENDERER
) -> list[str]:
    """The words of the rows as this renderer version renders them, the most frequent first.

    Raises Refused where none is frequent enough.
    """
    splitter = _splitter()
    marks = Marks(CONTROL, normalized=True)
    counts: Counter[str] = Counter()
    for text in (message["content"] for each in conversations for message in each.messages):
        said = without_control(text, CONTROL) if renderer == FIRST_RENDERER else marks.broken(text)
        counts.update(_normalized_words(splitter, said))
    words = [word for word, count in sorted(counts.items(), key=lambda each: (-each[1], each[0])) if count >= min_count]
    if not words:
        raise TrainingRefused(f"min_count: expected words that occur {min_count} times in the rows, got none; lower it")
    return words[:max_words]


def make_tokenizer(words: Iterable[str], length: int) -> PreTrainedTokenizerFast:
    """A word-level tokenizer with the control tokens first, and its chat template."""
    vocabulary = {word: number for number, word in enumerate((*CONTROL, *words))}
    inner = _splitter()
    inner.model = WordLevel(vocabulary, unk_token=UNKNOWN)
    closing_up = [decoders.Replace(apart, together) for apart, together in (*_CLOSED_UP, *_QUOTED)]
    inner.decoder = decoders.Sequence([decoders.WordPiece(prefix="##", cleanup=False), decoders.Fuse(), *closing_up])
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=PAD,
        unk_token=UNKNOWN,
        eos_token=END,
        additional_special_tokens=list(ROLES),
        chat_template=TEMPLATE,
        model_max_length=length,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )


def make_model(config: TinyConfig, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """A model with new weights, drawn from torch's generator. It never emits a control token except the end."""
    end, padding = tokenizer.eos_token_id, tokenizer.pad_token_id
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=config.width,
            intermediate_size=-(-config.width * 8 // 24) * 8,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            max_position_embeddings=config.length,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=end,
            pad_token_id=padding,
        )
    )
    silent: Any = tokenizer.convert_tokens_to_ids([token for token in CONTROL if token != END])
    model.generation_config = GenerationConfig(
        do_sample=True, temperature=1.0, top_k=0, eos_token_id=end, pad_token_id=padding, suppress_tokens=silent
    )
    return model


def _splitter() -> Tokenizer:
    """Text → words, without a vocabulary yet."""
    splitter = Tokenizer(WordLevel({UNKNOWN: 0}, unk_token=UNKNOWN))
    splitter.normalizer = normalizers.Sequence(
        [
            normalizers.NFKD(),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            normalizers.Replace("’", "'"),
        ]
    )
    splitter.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(_WORD), "isolated")]
    )
    return splitter


def _normalized_words(splitter: Tokenizer, text: str) -> list[str]:
    return [word for word, _ in splitter.pre_tokenizer.pre_tokenize_str(splitter.normalizer.normalize_str(text))]
