"""The request for a job at a vendor. Pure."""

from dataclasses import dataclass

from app.games.base import JSON


@dataclass(frozen=True, slots=True)
class VendorRequest:
    """A job that a vendor is to create, marked with the token.

    `model` is the vendor's name for the base; `is_tuned`: whether the base was made by a training there.
    """

    model: str
    is_tuned: bool
    file_id: str
    method: str
    config: JSON
    token: str
