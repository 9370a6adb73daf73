"""Scripted members of a society as players that answer chats."""

import json
import random
from dataclasses import dataclass

from app.core.errors import Invalid, Verbatim, either
from app.core.validation import real_number
from app.players.base import ChatSampling, Generation, PlayerSpec
from app.players.scripted.chat.prompts import ANSWER, REVISE, read_prompt
from app.players.scripted.chat.speech import SPEAKERS, unreadable

CHAT = "chat"  # the option for the role in which a scripted player answers chats
_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class ScriptedChat:
    """Answers like an agent or an observer; a share of its ratings cannot be read, by default none."""

    name: str
    speaker: str
    unreadable: float = 0.0

    @property
    def at_once(self) -> int:
        """How many answers may be under way; they take no time."""
        return _AT_ONCE

    async def complete(
        self,
        messages: list[dict[str, str]],
        sampling: ChatSampling = ChatSampling(),  # noqa: ARG002, B008 - nothing is sampled
        seed: str | None = None,
    ) -> Generation:
        """The next message of a chat. The same chat and seed have the same answer."""
        rng = random.Random(f"{seed} {json.dumps(messages)}")
        asked = read_prompt(messages[-1]["content"])
        if asked.task not in (ANSWER, REVISE) and rng.random() < self.unreadable:
            text = unreadable(rng)
        else:
            text = SPEAKERS[self.speaker](asked, rng)
        return Generation(messages, text, self.name, {}, None, None, 0.0, 0)


def make_chat(spec: PlayerSpec) -> ScriptedChat:
    """The player of a registry row with the option `chat`. Raises Invalid for an option that does not exist."""
    options = dict(spec.options)
    speaker, share = options.pop(CHAT), options.pop("unreadable", 0.0)
    if options:
        raise Invalid(
            None,
            expected=f"{CHAT} and unreadable",
            got=Verbatim(", ".join(sorted(options))),
            subject=f"option of scripted player {spec.name}",
        )
    if speaker not in SPEAKERS:
        raise Invalid(CHAT, expected=either(SPEAKERS), got=speaker)
    return ScriptedChat(spec.name, speaker, real_number(share, "unreadable", 0, 1))
