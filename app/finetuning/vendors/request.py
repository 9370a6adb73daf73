"""What a vendor is asked for. Pure."""

from dataclasses import dataclass

from app.games.base import JSON


@dataclass(frozen=True, slots=True)
class VendorRequest:
    """A job that a vendor is to create, to be marked with the token.

    `model` is what the vendor calls the base; `is_tuned`: whether that was made by a training there.
    """

    model: str
    is_tuned: bool
    file_id: str
    method: str
    config: JSON
    token: str
