"""Why a language model made no move or gave no answer, what to do then, and whose fault it is. Pure."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

FailureKind = Literal["busy", "denied", "refused", "unsuited"]
BUSY: FailureKind = "busy"  # the server is down, overloaded or answers nonsense: a later retry may work
DENIED: FailureKind = "denied"  # no call will be answered until a person fixes the key, account, address or name
REFUSED: FailureKind = "refused"  # this very request will never be answered, as when the context is too long
UNSUITED: FailureKind = "unsuited"  # the model's options do not suit it: hardly any request like it will be answered
MOST_BREAKS = 5  # unforeseen failures of one call, which may pass, before it is given up

Fault = Literal["model", "settings", "vendor", "us"]
MODEL_FAULT: Fault = "model"
SETTINGS_FAULT: Fault = "settings"  # of the model's row in the registry, or of its account
VENDOR_FAULT: Fault = "vendor"  # whoever serves the model
OUR_FAULT: Fault = "us"

Outcome = Literal[
    "move", "declined", "filtered", "no_room", "too_long", "no_answer", "misconfigured", "ask_again_differently",
    "busy", "denied",
]  # fmt: skip


class Consequence(NamedTuple):
    """The consequence of an outcome that is not a move."""

    kind: FailureKind
    fault: Fault


CONSEQUENCES: Mapping[Outcome, Consequence] = {
    "declined": Consequence(REFUSED, MODEL_FAULT),
    "filtered": Consequence(REFUSED, VENDOR_FAULT),
    "no_room": Consequence(UNSUITED, SETTINGS_FAULT),
    "too_long": Consequence(REFUSED, SETTINGS_FAULT),
    "no_answer": Consequence(BUSY, VENDOR_FAULT),
    "misconfigured": Consequence(UNSUITED, SETTINGS_FAULT),
    "ask_again_differently": Consequence(UNSUITED, SETTINGS_FAULT),
    "busy": Consequence(BUSY, VENDOR_FAULT),
    "denied": Consequence(DENIED, SETTINGS_FAULT),
}
