"""Where reasoning begins and ends in model output and in the prompts of chat templates. Loads no torch."""

import re
from collections.abc import Iterable, Sequence

MOST_REASONING = 200_000  # characters that are kept
ANALYSIS = "<|channel|>analysis<|message|>"
# The parts of channel messages (harmony, the format of gpt-oss), one token each.
CHANNEL_TOKENS = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>")
MESSAGE_END, FINAL = CHANNEL_TOKENS[-1], "final"
CLOSING_OF = {  # an opening mark and the closing one that goes with it
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    ANALYSIS: "<|channel|>final<|message|>",
}
_OPEN, _CLOSE = ("|".join(map(re.escape, marks)) for marks in (CLOSING_OF, CLOSING_OF.values()))
OPENING, CLOSING = re.compile(_OPEN), re.compile(_CLOSE)
# The head of a channel message, or the part left of a truncated one.
_HEAD = (
    r"(?:<\|start\|>[^<]{0,64}+)?<\|channel\|>(\w{0,16}+)"
    r"(?:[^<]{0,200}+(?:<\|constrain\|>[^<]{0,64}+)?<\|message\|>|\Z)"
)
_MESSAGE_HEAD, _AFTER_MESSAGE = re.compile(_HEAD), re.compile(r"<\|(?:end|return|call)\|>.*", re.DOTALL)
_BARE_CHANNELS = re.compile(r"\s*analysis(.*?)assistantfinal(.*)", re.DOTALL)  # which some servers send without marks
MARK = re.compile(f"{_OPEN}|{_CLOSE}|{_HEAD}")


def split_reasoning(content: str) -> tuple[str, str]:
    """The text of a move and the reasoning in a model's output.

    Everything before the last closing mark is reasoning, except text before the first opening mark; everything after an
    unclosed opening mark is reasoning. For messages in channels, the move is the first in the channel `final`, and
    everything else is reasoning.
    """
    if heads := list(_MESSAGE_HEAD.finditer(content)):
        return _split_channels(content, heads)
    if bare := _BARE_CHANNELS.match(content):
        return bare[2].strip(), bare[1].strip()
    if not MARK.search(content):
        return content, ""
    closings = list(CLOSING.finditer(content))
    after = closings[-1].end() if closings else 0
    thought, rest = content[:after], content[after:]
    before = ""
    if (opened := OPENING.search(thought)) and not CLOSING.search(thought[: opened.start()]):
        before, thought = thought[: opened.start()], thought[opened.start() :]
    if cut := OPENING.search(rest):
        thought, rest = f"{thought}\n{rest[cut.start() :]}", rest[: cut.start()]
    return f"{before}{rest}".strip(), MARK.sub("", thought).strip()


def _split_channels(content: str, heads: Sequence[re.Match[str]]) -> tuple[str, str]:
    """The text of a move and the reasoning, from messages with these heads and any text before the first head."""
    channels = ["", *(head[1] for head in heads)]
    begins, ends = [0, *(head.end() for head in heads)], [*(head.start() for head in heads), len(content)]
    said = [
        _AFTER_MESSAGE.sub("", content[begin:end], count=1).strip() for begin, end in zip(begins, ends, strict=True)
    ]
    move = said.pop(channels.index(FINAL)) if FINAL in channels else ""
    return move, "\n".join(filter(None, said))


def as_block(thought: str, mark: str, *, is_open: bool) -> str:
    """Reasoning as text from its opening mark up to the move, or from after that mark if the prompt already has it."""
    if mark == ANALYSIS:
        rest = f"{thought}{MESSAGE_END}<|start|>assistant{CLOSING_OF[mark]}"
    else:
        rest = f"{thought}\n{CLOSING_OF[mark]}\n\n"
        mark = f"{mark}\n"
    return rest if is_open else mark + rest


def left_open(prompt: str) -> str:
    """The opening mark that ends a prompt, so that reasoning follows; "" if there is none."""
    return _mark_at_end(prompt, CLOSING_OF)


def without_block_at_end(prompt: str) -> str:
    """A prompt without the reasoning mark or empty reasoning block at its end; unchanged if there is none."""
    for marks in (CLOSING_OF.values(), CLOSING_OF):
        if mark := _mark_at_end(prompt, marks):
            prompt = prompt.rstrip().removesuffix(mark).rstrip()
    return prompt


def _mark_at_end(text: str, marks: Iterable[str]) -> str:
    bare = text.rstrip()
    return next((mark for mark in marks if bare.endswith(mark)), "")
