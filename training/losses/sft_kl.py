"""w · [−ℓ + β·e^ℓ·(ℓ − ℓ_ref)] of each span: it becomes more likely, and stays near the reference model.

Source: imitation learning in Self-Play of Adversarial Language Game, arXiv 2404.10642. As in its published code, ℓ is
the mean over a span's tokens, and gradients flow through e^ℓ.
"""

from training.losses.base import SpanBatch, SpanValues, figure_of
from training.methods.sft_kl import SftKlConfig


def loss(spans: SpanBatch, config: SftKlConfig) -> SpanValues:
    """The values (S,) of the spans, and the mean of ℓ − ℓ_ref as `kl`."""
    drift = spans.log_probs - spans.reference
    penalty = spans.log_probs.exp() * drift
    return SpanValues(spans.weights * (config.kl * penalty - spans.log_probs), {"kl": figure_of(drift)})
