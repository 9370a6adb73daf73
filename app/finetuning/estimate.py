"""Estimates of the charge for a training at a vendor, made before it starts."""

from typing import NamedTuple

from app.jobs.spending import dollars


class TrainingEstimate(NamedTuple):
    """The approximate number of tokens that a training will train in all its epochs.

    `price` is in US dollars per million tokens; None: unknown.
    """

    tokens: int
    epochs: int
    price: float | None

    @property
    def cost(self) -> float | None:
        """The cost in US dollars, if the price is known."""
        return None if self.price is None else self.price * self.tokens / 1e6

    @property
    def words(self) -> str:
        """For example: about 1200 trained tokens in 3 epochs, $0.0036 at $3.00 a million."""
        epochs = f"{self.epochs} epoch{'' if self.epochs == 1 else 's'}"
        priced = "" if self.price is None else f", {dollars(self.cost or 0)} at {dollars(self.price)} a million"
        return f"about {self.tokens} trained tokens in {epochs}{priced}"
