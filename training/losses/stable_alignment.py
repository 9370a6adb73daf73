"""CE(best) + ratio · max(0, mean of CE(best) − CE(i) + (r_best − r_i) / scale · margin) of each query.

CE is the mean over a response's tokens, r its rating, and i ranges over the responses rated lower than the best one:
equal ratings form no pair. With `max_flow`, the largest of these terms replaces their mean.

Source: Stable Alignment, arXiv 2305.16960.
"""

import torch
from torch import Tensor

from training.losses.base import SpanBatch, SpanValues, figure_of
from training.methods.stable_alignment import StableAlignmentConfig


def loss(spans: SpanBatch, config: StableAlignmentConfig) -> SpanValues:
    """The values (Q,) of the queries, and as `penalty` the mean of the term that is multiplied by the ratio."""
    sizes = torch.bincount(spans.items).tolist()
    queries = zip((-spans.log_probs).split(sizes), spans.rewards.split(sizes), strict=True)
    pairs = [_best_and_penalty(losses, ratings, config) for losses, ratings in queries]
    best, penalty = (torch.stack(each) for each in zip(*pairs, strict=True))
    return SpanValues(best + config.ratio * penalty, {"penalty": figure_of(penalty)})


def _best_and_penalty(losses: Tensor, ratings: Tensor, config: StableAlignmentConfig) -> tuple[Tensor, Tensor]:
    """CE(best) and the penalty of one query. Shapes: losses and ratings (R,)."""
    best = int((ratings == ratings.max()).nonzero()[0])
    lower = ratings < ratings[best]
    if not lower.any():
        return losses[best], losses.new_zeros(())
    margins = (ratings[best] - ratings[lower]) / config.rating_scale * config.margin
    flows = losses[best] - losses[lower] + margins
    return losses[best], (flows.max() if config.max_flow else flows.mean()).clamp(min=0)
