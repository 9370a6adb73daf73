"""Why a language model gave no answer, as far as it decides what to do next. Pure."""

from typing import Literal

FailureKind = Literal["busy", "denied", "refused"]
BUSY: FailureKind = "busy"  # the server is away, overloaded or talks nonsense: another try later may do
DENIED: FailureKind = "denied"  # no call will be answered until a person has mended key, account, address or name
REFUSED: FailureKind = "refused"  # this very request will never be answered, as when the context is too long
MOST_BREAKS = 5  # of one call in ways that nobody has foreseen, which may pass, after which it is given up
