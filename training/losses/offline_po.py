"""−w · min(A·ρ, A·clip(ρ, 1 − ε, 1 + ε)) of each span with a reward, and −α·w·ℓ of each supervised one.

ρ = e^(ℓ − ℓ_ref) and A = r − β·(ℓ − ℓ_ref), through which gradients flow. The two means, over spans with a reward and
over supervised ones, are added.

Source: offline reinforcement learning in Self-Play of Adversarial Language Game, arXiv 2404.10642.
"""

import torch

from training.losses.base import SpanBatch, SpanValues, figure_of, probability_ratio
from training.methods.offline_po import OfflinePoConfig


def loss(spans: SpanBatch, config: OfflinePoConfig) -> SpanValues:
    """The values (S,) of the spans.

    The figures cover spans with a reward: the mean reward, the mean of ℓ − ℓ_ref as `kl`, and as `clip_fraction` the
    share in which the clipped ratio decides.
    """
    drift = spans.log_probs - spans.reference
    ratio = probability_ratio(drift)
    advantage = spans.rewards - config.kl * drift
    free, clipped = advantage * ratio, advantage * ratio.clamp(1 - config.clip_range, 1 + config.clip_range)
    supervised = -config.sft_weight * spans.weights * spans.log_probs
    values = torch.where(spans.supervised, supervised, -spans.weights * torch.minimum(free, clipped))
    rewarded = ~spans.supervised
    figures = {"reward": spans.rewards, "kl": drift, "clip_fraction": (clipped < free).float()}
    return SpanValues(values, {name: figure_of(each, rewarded) for name, each in figures.items()})
