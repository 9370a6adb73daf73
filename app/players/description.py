"""What a guest is told about a partner: its kind of player, never its name.

Loads no torch: the header of its checkpoint's files says how large a local model is.
"""

from functools import lru_cache
from pathlib import Path

from app.inference.weights import parameters
from app.players.base import PlayerSpec
from app.players.local import options as local_options

PERSON, SCRIPTED, SMALL_MODEL, MODEL = "person", "scripted", "small_model", "model"
COMPUTER = "computer"  # in a study, where the kind would reveal the condition
KINDS = (PERSON, SCRIPTED, SMALL_MODEL, MODEL, COMPUTER)
SMALL = 1_000_000_000  # weights; smaller models may misunderstand plain sentences


def partner_kind(spec: PlayerSpec | None, home: Path) -> str:
    """One of KINDS; no spec is a person. `home` is PARLOR_HOME, to which the path of a local model may be relative.

    A local model whose files cannot be read here is called a model, without mention of its size.
    """
    if spec is None:
        return PERSON
    if spec.kind == "scripted":
        return SCRIPTED
    if spec.kind != "local":
        return MODEL
    weights = _weights(local_options.resolve(home, str(spec.options.get("path"))), str(spec.options.get("sha256")))
    return SMALL_MODEL if weights is not None and weights < SMALL else MODEL


@lru_cache(maxsize=256)
def _weights(folder: Path, _sha256: str) -> int | None:
    """The number of weights in the checkpoint with that hash, read once per process."""
    return parameters(folder)
