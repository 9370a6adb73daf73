"""Supervised fine-tuning: the moves of the kept seats, and nothing else, become more likely.

Source: the filtered behaviour cloning of Liao, Tomlin & Klein 2024, arXiv 2406.18872, where the rows were filtered
before they came here.
"""

from training.checkpoints import checkpoint_hash, load
from training.config import SftConfig
from training.progress import Progress, StopRequest
from training.recipe import prepare, train


def run(config: SftConfig, progress: Progress, stop: StopRequest) -> None:
    """Goes on from `base` and writes `output`. Raises as `recipe.train`."""
    prepare(config)
    model, tokenizer = load(config.base, config.base_sha256)
    train(config, "sft", model, tokenizer, {"base_sha256": checkpoint_hash(config.base)}, progress, stop)
