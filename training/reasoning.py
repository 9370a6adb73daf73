"""Where reasoning begins and ends in what a model writes, and in the prompts of chat templates. Loads no torch."""

import re
from collections.abc import Iterable

MOST_REASONING = 200_000  # characters that are kept
CLOSING_OF = {  # an opening mark and the closing one that goes with it
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
}
_OPEN, _CLOSE = ("|".join(map(re.escape, marks)) for marks in (CLOSING_OF, CLOSING_OF.values()))
OPENING, CLOSING = re.compile(_OPEN), re.compile(_CLOSE)
MARK = re.compile(f"{_OPEN}|{_CLOSE}")


def split_reasoning(content: str) -> tuple[str, str]:
    """The text of a move and the reasoning in what a model wrote.

    What stands before the last closing mark is reasoning, but for text before the first opening one; after an opening
    mark that nothing closes, all is.
    """
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


def left_open(prompt: str) -> str:
    """The opening mark in which a prompt ends, so that what follows is reasoning; "" for a prompt without."""
    return _mark_at_end(prompt, CLOSING_OF)


def without_block_at_end(prompt: str) -> str:
    """A prompt up to a mark of reasoning, or an empty block of it, in which it ends; all of one that ends in none."""
    for marks in (CLOSING_OF.values(), CLOSING_OF):
        if mark := _mark_at_end(prompt, marks):
            prompt = prompt.rstrip().removesuffix(mark).rstrip()
    return prompt


def _mark_at_end(text: str, marks: Iterable[str]) -> str:
    bare = text.rstrip()
    return next((mark for mark in marks if bare.endswith(mark)), "")
